"""The index of a dataset's videos: built once, stored, checked."""
