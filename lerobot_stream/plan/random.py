"""Random numbers that are the same on every machine: PCG64, and only ``random()``."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 16


def generator(*seeds: int) -> np.random.Generator:
    """A generator seeded by several numbers, as ``default_rng`` of the list is today."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seeds)))


def shuffled(count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The numbers ``[0, count)`` in random order."""
    return np.argsort(rng.random(count), kind="stable")


def exponential(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Independent ``Exp(1)`` draws.

    ``np.log`` differs in the last bit between processors; this logarithm is made of
    operations that IEEE 754 rounds exactly, and is right to ten digits.
    """
    draws = rng.random(count)
    for start in range(0, count, _BLOCK):
        block = draws[start : start + _BLOCK]
        block[:] = _minus_log(1.0 - block)
    return draws


def _minus_log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """``-log(x)`` for ``0 < x <= 1``, by ``log m = 2 artanh((m - 1) / (m + 1))``."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < math.sqrt(0.5)
    mantissa = np.where(small, mantissa * 2.0, mantissa)
    exponent = exponent - small
    s = (mantissa - 1.0) / (mantissa + 1.0)
    s2 = s * s
    series = np.full_like(s2, 1.0 / 13.0)
    for odd in (11.0, 9.0, 7.0, 5.0, 3.0, 1.0):
        series = series * s2 + 1.0 / odd
    result: NDArray[np.float64] = -(exponent * math.log(2.0) + 2.0 * s * series)
    return np.maximum(result, 0.0)
