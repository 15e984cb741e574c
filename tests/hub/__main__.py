"""Serves a loopback Hub from a process of its own, until its standard input ends."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.hub.server import Hub


def main() -> None:
    """Serve folders as datasets and buckets; the first line printed is the address."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", action="append", default=[], metavar="OWNER/NAME=FOLDER")
    parser.add_argument("--bucket", action="append", default=[], metavar="OWNER/NAME=FOLDER")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--mb-per-s", type=float, help="bytes each connection gets, in MB/s")
    options = parser.parse_args()
    bandwidth = options.mb_per_s * 1e6 if options.mb_per_s else None
    with Hub(latency_s=options.latency_ms / 1000, bandwidth=bandwidth, port=options.port) as hub:
        for text in options.dataset:
            name, _, folder = text.partition("=")
            hub.add_dataset(name, Path(folder))
        for text in options.bucket:
            name, _, folder = text.partition("=")
            hub.add_bucket(name, Path(folder))
        sys.stdout.write(f"{hub.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
