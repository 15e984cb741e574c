"""From a plan to batches: fetch, decode, window, gather."""
