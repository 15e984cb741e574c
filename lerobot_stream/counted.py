"""How many of a thing, as people write it: ``1 video``, ``2 videos``."""

from __future__ import annotations


def counted(count: int | str, noun: str) -> str:
    """Write a number with its noun.

    Args:
        count: How many, or that as text where it is to be formatted otherwise.
        noun: Singular of a noun whose plural ends in ``s``.
    """
    return f"{count} {noun}" if str(count) == "1" else f"{count} {noun}s"
