"""Columns of the items in the making, against plain indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lerobot_stream.dataset.rows import Rows
from lerobot_stream.stream.columns import OpenColumns
from lerobot_stream.stream.episode import EpisodeData
from lerobot_stream.stream.layout import Layout
from lerobot_stream.stream.window import Window

LAYOUT = Layout(
    columns={
        "": (np.dtype(np.int64), ()),
        "action": (np.dtype(np.float32), (3,)),
        "flag": (np.dtype(np.bool_), ()),
        "grid": (np.dtype(np.int16), (2, 2)),
        "seen": (np.dtype(np.float64), (2,)),
        "spoken": (np.dtype(object), ()),
        "task_index": (np.dtype(np.int64), ()),
    },
    cameras={},
    windows={"seen": Window(np.array([-2, 0, 1])), "spoken": Window(np.array([0, 3]))},
    tasks={0: "fold"},
)


def make_episode(number: int, length: int) -> EpisodeData:
    rng = np.random.default_rng(number)
    columns: dict[str, NDArray[Any]] = {}
    for key, (dtype, shape) in LAYOUT.columns.items():
        values = rng.integers(0, 999, (length, *shape))
        columns[key] = (values.astype(str) if key == "spoken" else values).astype(dtype)
    return EpisodeData(number, length, Rows(length, columns, {}), {})


@given(st.data())
def test_every_item_gets_what_indexing_gives(data: st.DataObject) -> None:
    episodes = [make_episode(number, 4 + 3 * number) for number in range(3)]
    items = [(episode, frame) for episode in episodes for frame in range(episode.length)]
    order = data.draw(st.permutations(range(len(items))))
    open_columns = OpenColumns(LAYOUT, data.draw(st.integers(1, 40)))
    put, taken = set[int](), 0
    places = np.argsort(order)  # of each item in the stream
    while taken < len(items):
        wanted = min(len(items), taken + data.draw(st.integers(1, 6)))
        while not put.issuperset(range(taken, wanted)):
            first = min(set(range(wanted)) - put)
            episode, _ = items[order[first]]
            own = [n for n, item in enumerate(items) if item[0] is episode]
            left = [n for n in own if places[n] not in put]
            run = data.draw(st.lists(st.sampled_from(left), unique=True, max_size=5))
            chosen = np.array(list({order[first], *run}))
            open_columns.put(places[chosen], np.array([items[n][1] for n in chosen]), episode)
            put.update(places[chosen].tolist())
        got = open_columns.take(taken, wanted)
        for place in range(taken, wanted):
            _check(got, place - taken, *items[order[place]])
        taken = wanted


def _check(got: dict[str, NDArray[Any]], row: int, episode: EpisodeData, frame: int) -> None:
    assert got.keys() == {*LAYOUT.columns, "seen_is_pad", "spoken_is_pad"}
    for key, column in episode.rows.columns.items():
        window = LAYOUT.windows.get(key)
        assert got[key].dtype == column.dtype
        assert got[key].flags.c_contiguous
        if window is None:
            np.testing.assert_array_equal(got[key][row], column[frame])
            continue
        shown = window.numbers(np.array([frame]), episode.length)[0]
        np.testing.assert_array_equal(got[key][row], column[shown])
        is_pad = window.is_pad(np.array([frame]), episode.length)[0]
        np.testing.assert_array_equal(got[f"{key}_is_pad"][row], is_pad)
