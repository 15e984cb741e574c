"""What a person should know about a dataset before training on it."""
