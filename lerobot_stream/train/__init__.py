"""Training a policy from batches."""
