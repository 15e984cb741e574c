"""What a LeRobotDataset v3 says about itself: metadata and rows."""
