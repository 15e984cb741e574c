"""How well an order mixes: measured on the items alone, for any strategy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Mixing:
    """Measures of an order, most of them for each whole batch."""

    effective_episodes: NDArray[np.float64]
    """``(b,)`` ``1 / sum(p²)`` over the shares ``p`` of episodes in the batch."""
    near_neighbours: NDArray[np.float64]
    """``(b,)`` Share of the pairs of items less than a second apart in one episode."""
    phase: NDArray[np.float64]
    """``(b,)`` Mean of frame / length."""
    first_tenth_phase: float
    """Mean of frame / length over the first tenth of the items."""
    index_correlation: float
    """Correlation of an item's position with its frame's number in the dataset."""

    def summary(self) -> dict[str, float]:
        """Means over batches, and the worst batch, by name."""
        return {
            "effective_episodes": float(self.effective_episodes.mean()),
            "worst_effective_episodes": float(self.effective_episodes.min()),
            "near_neighbours": float(self.near_neighbours.mean()),
            "phase_sd": float(self.phase.std()),
            "first_tenth_phase": self.first_tenth_phase,
            "index_correlation": self.index_correlation,
        }


def measure_mixing(
    episode: NDArray[np.int64],
    frame: NDArray[np.int32],
    lengths: NDArray[np.int64],
    *,
    batch_size: int,
    second_frames: float,
) -> Mixing:
    """Measure the items of one epoch.

    Args:
        episode: ``(n,)`` Episode of each item, as a position in ``lengths``.
        frame: ``(n,)`` Frame number of each item.
        lengths: ``(e,)`` Frames of each episode.
        batch_size: Items of a batch; a short last batch counts only for the whole epoch.
        second_frames: Frames in a second.

    Raises:
        ValueError: There is not one whole batch, or it has a single item.
    """
    batches = len(episode) // batch_size
    if batches < 1 or batch_size < 2:
        raise ValueError(f"{len(episode)} items make no batch of {batch_size} to measure")
    whole = slice(0, batches * batch_size)
    near = max(1, int(np.ceil(second_frames)))
    same_pairs, near_pairs = _pairs(
        episode[whole].reshape(batches, batch_size), frame[whole], lengths, near
    )
    phase = frame / lengths[episode]
    first_frame = np.cumsum(lengths) - lengths
    return Mixing(
        effective_episodes=batch_size**2 / (batch_size + 2.0 * same_pairs),
        near_neighbours=near_pairs / (batch_size * (batch_size - 1) / 2),
        phase=phase[whole].reshape(batches, batch_size).mean(axis=1),
        first_tenth_phase=float(phase[: -(-len(phase) // 10)].mean()),
        index_correlation=_correlation_with_position(first_frame[episode] + frame),
    )


def _pairs(
    episode: NDArray[np.int64], frame: NDArray[np.int32], lengths: NDArray[np.int64], near: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``(b,)`` Pairs of one episode, and those of them fewer than ``near`` frames apart.

    Each item gets a place on one line; neighbours there are of one batch and episode.
    """
    batches, batch_size = episode.shape
    stride = lengths + near  # no item is near one of another episode
    stop = np.cumsum(stride)
    base = np.arange(batches, dtype=np.int64)[:, None] * stop[-1]
    place = np.sort(base + (stop - stride)[episode] + frame.reshape(batches, -1), axis=1).ravel()
    end = np.sort(base + stop[episode], axis=1).ravel()
    itself = np.arange(1, len(place) + 1)
    same = np.searchsorted(place, end) - itself
    close = np.searchsorted(place, place + near) - itself
    shape = (batches, batch_size)
    return same.reshape(shape).sum(axis=1), close.reshape(shape).sum(axis=1)


def _correlation_with_position(index: NDArray[np.int64]) -> float:
    """Pearson's correlation of numbers with their positions; 0 where one does not vary."""
    position = np.arange(len(index)) - (len(index) - 1) / 2
    centred = index - index.mean()
    scale = float(np.sqrt((position**2).sum() * (centred**2).sum()))
    return float((position * centred).sum() / scale) if scale else 0.0
