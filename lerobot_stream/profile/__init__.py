"""What a stream of a dataset delivers, and what that costs."""
