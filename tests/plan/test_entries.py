from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.plan.entries import common_entries, common_entry, largest_gaps, start_costs
from lerobot_stream.plan.share import Episodes
from tests.plan.shares import episode_sets, make_episodes


def clean(episodes: Episodes, episode: int, camera: int) -> set[int]:
    """Clean entries of one camera; the first frame always is one."""
    return {0, *episodes.entries[episode * episodes.num_cameras + camera].tolist()}


def clean_on_all(episodes: Episodes, episode: int) -> set[int]:
    every = set(range(int(episodes.lengths[episode])))
    cameras = range(episodes.num_cameras)
    return every.intersection(*(clean(episodes, episode, camera) for camera in cameras))


@given(episode_sets())
def test_common_entries_are_clean_on_every_camera(episodes: Episodes) -> None:
    starts = np.cumsum(episodes.lengths) - episodes.lengths
    wanted = [
        int(starts[e]) + f for e in range(len(episodes)) for f in sorted(clean_on_all(episodes, e))
    ]
    assert common_entries(episodes).tolist() == wanted


@given(episode_sets(), st.data())
def test_the_common_entry_before_a_frame_is_the_last(
    episodes: Episodes, data: st.DataObject
) -> None:
    episode = data.draw(st.integers(0, len(episodes) - 1))
    frame = data.draw(st.integers(0, int(episodes.lengths[episode]) - 1))
    wanted = max(f for f in clean_on_all(episodes, episode) if f <= frame)
    assert common_entry(episodes, episode, frame) == wanted


@given(episode_sets())
def test_gaps_are_between_common_entries_and_the_end(episodes: Episodes) -> None:
    wanted = [
        max(np.diff([*sorted(clean_on_all(episodes, e)), length]))
        for e, length in enumerate(episodes.lengths)
    ]
    assert largest_gaps(episodes, common_entries(episodes)).tolist() == wanted


@given(episode_sets())
def test_a_start_costs_the_frames_since_each_cameras_entry(episodes: Episodes) -> None:
    places = [(e, f) for e, n in enumerate(episodes.lengths.tolist()) for f in range(n)]
    wanted = [
        sum(
            f - max(entry for entry in clean(episodes, e, camera) if entry <= f)
            for camera in range(episodes.num_cameras)
        )
        for e, f in places
    ]
    episode, frame = np.array(places).T
    assert start_costs(episodes, episode, frame).tolist() == wanted


def test_rows_of_entries_must_match_episodes_and_cameras() -> None:
    with pytest.raises(ValueError, match="3 rows of entries for 2 episodes on 1 cameras"):
        make_episodes([4, 4], entries=[[0], [0], [0]])


def test_an_episode_without_frames_is_named() -> None:
    with pytest.raises(ValueError, match="episode 10 has 0 frames"):
        make_episodes([4, 0])
