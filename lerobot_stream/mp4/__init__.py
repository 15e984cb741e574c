"""MP4 as bytes in, bytes out: boxes, sample tables, spans, mini-MP4s."""
