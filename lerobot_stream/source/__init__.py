"""Where the bytes of a dataset come from."""
