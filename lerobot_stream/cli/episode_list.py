"""Episodes as people write them: a count, or a list such as ``0,4,7-9``."""

from __future__ import annotations

_MOST = 100_000_000


def parse_episodes(text: str) -> list[int]:
    """Read a list of episodes.

    Args:
        text: ``12`` for the first twelve, or ``0,4,7-9`` (``3,`` for episode 3 alone).

    Returns:
        Episode indices, rising, each once.

    Raises:
        ValueError: It is neither.
    """
    if text.strip().isdecimal():
        return list(range(_sensible(int(text))))
    chosen: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        start, dash, stop = part.partition("-")
        if not start.isdecimal() or (dash and not stop.isdecimal()):
            raise ValueError(f"--episodes: wanted a count or a list like 0,4,7-9, found {text!r}")
        first, last = int(start), int(stop or start)
        _sensible(max(1, last - first + 1))
        chosen.update(range(first, last + 1))
    if not chosen:
        raise ValueError(f"--episodes: wanted a count or a list like 0,4,7-9, found {text!r}")
    return sorted(chosen)


def _sensible(count: int) -> int:
    if count < 1:
        raise ValueError("--episodes: 0 chooses no episode; episode 0 alone is 0-0")
    if count > _MOST:
        raise ValueError(f"--episodes: wanted at most {_MOST:,}, found {count:,}")
    return count
