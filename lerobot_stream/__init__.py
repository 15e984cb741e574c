"""Train robot policies straight from LeRobotDataset v3 data, wherever it lies."""
