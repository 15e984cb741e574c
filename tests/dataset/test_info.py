from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.dataset.info import Feature, parse_info
from lerobot_stream.errors import DatasetError, FormatError, StreamError

TOP = "observation.images.top"


def info(**changes: Any) -> dict[str, Any]:
    names = ["height", "width", "channels"]
    raw: dict[str, Any] = {
        "codebase_version": "v3.0",
        "robot_type": "arm",
        "total_episodes": 2,
        "total_frames": 30,
        "fps": 30,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": {
            "action": {"dtype": "float32", "shape": [2], "names": ["x", "y"]},
            TOP: {"dtype": "video", "shape": [48, 64, 3], "names": names},
            "timestamp": {"dtype": "float32", "shape": [1], "names": None},
            "observation.images.hand": {"dtype": "image", "shape": [3, 48, 64], "names": None},
        },
    }
    return raw | changes


def parse(raw: dict[str, Any]) -> Any:
    return parse_info(json.dumps(raw).encode())


def test_features_are_sorted_into_columns_and_cameras_in_file_order() -> None:
    found = parse(info())
    assert found.column_keys == ("action", "timestamp")
    assert found.video_keys == (TOP,)
    assert found.image_keys == ("observation.images.hand",)
    assert found.camera_keys == (TOP, "observation.images.hand")


def test_paths_come_from_the_templates() -> None:
    found = parse(info(data_path="rows/{chunk_index}/{file_index:05d}.parquet"))
    assert found.data_file(1, 23) == "rows/1/00023.parquet"
    assert found.video_file(TOP, 1, 1234) == f"videos/{TOP}/chunk-001/file-1234.mp4"
    assert found.is_data_file("rows/1/00023.parquet")
    assert not found.is_data_file("data/chunk-000/file-000.parquet")


def test_a_camera_that_is_not_stored_as_video_has_no_video_file() -> None:
    with pytest.raises(KeyError, match="hand"):
        parse(info()).video_file("observation.images.hand", 0, 0)


@pytest.mark.parametrize("fps", [30, 30.0, 29.97, 0.5])
def test_the_rate_is_a_float_however_it_is_written(fps: float) -> None:
    found = parse(info(fps=fps)).fps
    assert found == fps
    assert isinstance(found, float)


def test_what_the_wild_leaves_out_is_not_needed() -> None:
    raw = info(total_episodes=2.0)
    del raw["robot_type"]
    found = parse(raw)
    assert found.robot_type is None
    assert found.total_episodes == 2
    assert found.raw["total_frames"] == 30


def test_a_dataset_without_video_needs_no_video_path() -> None:
    raw = info(video_path=None)
    del raw["features"][TOP]
    assert parse(raw).video_path is None


def test_it_crosses_a_process_border() -> None:
    found = parse(info())
    copy = pickle.loads(pickle.dumps(found))
    assert copy.features == found.features
    assert copy.data_file(0, 0) == found.data_file(0, 0)


@pytest.mark.parametrize(
    ("shape", "names", "expected"),
    [
        ([48, 64, 3], ["height", "width", "channels"], (48, 64, 3)),
        ([48, 64, 3], ["height", "width", "channel"], (48, 64, 3)),
        ([3, 48, 64], ["channels", "height", "width"], (48, 64, 3)),
        ([3, 48, 64], ["channels", "width", "height"], (64, 48, 3)),
        ([3, 48, 64], None, (48, 64, 3)),
        ([48, 64, 3], None, (48, 64, 3)),
        ([48, 64, 1], {"axes": []}, (48, 64, 1)),
        ([48, 64, 3], ["channels", "height", "width"], (48, 64, 3)),
        ([3, 48, 64], ["height", "width", "channels"], (48, 64, 3)),
        ([3, 3, 3], ["red", "green", "blue"], (3, 3, 3)),
        ([48, 64], None, (48, 64, 1)),
    ],
)
def test_a_picture_is_read_in_either_order(
    shape: list[int], names: object, expected: tuple[int, int, int]
) -> None:
    feature = Feature("video", tuple(shape), names)
    assert (feature.height, feature.width, feature.channels) == expected


def test_a_picture_of_one_axis_is_refused() -> None:
    with pytest.raises(DatasetError, match=r"2 or 3 axes, found shape \[5\]"):
        _ = Feature("video", (5,), None).height


@pytest.mark.parametrize("version", ["v2.1", "v2.0", "2.1", "v1.6"])
def test_an_older_version_is_named_with_the_converter(version: str) -> None:
    with pytest.raises(
        DatasetError, match=f"wanted a LeRobotDataset v3, found {version}"
    ) as caught:
        parse(info(codebase_version=version))
    assert "lerobot.datasets.v30.convert_dataset_v21_to_v30 --repo-id=" in str(caught.value.hint)


def test_the_version_is_looked_at_before_anything_else() -> None:
    with pytest.raises(DatasetError, match=r"found v2\.1"):
        parse({"codebase_version": "v2.1"})


def test_a_newer_version_is_not_guessed_at() -> None:
    with pytest.raises(DatasetError, match=r"found v4\.0") as caught:
        parse(info(codebase_version="v4.0"))
    assert "update" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"codebase_version": None}, "codebase_version: wanted a version such as v3.0, found None"),
        ({"codebase_version": "three"}, "found 'three'"),
        ({"fps": 0}, "fps: wanted frames a second above 0 and up to 100000, found 0"),
        ({"fps": -30}, "fps: wanted frames a second above 0"),
        ({"fps": 1e9}, "fps: wanted frames a second above 0"),
        ({"fps": float("nan")}, "fps: wanted frames a second above 0"),
        ({"fps": True}, "fps: wanted a number, found True"),
        ({"fps": "30"}, "fps: wanted a number, found '30'"),
        ({"total_episodes": None}, "total_episodes: wanted a count, found None"),
        ({"total_frames": -1}, "total_frames: wanted a count, found -1"),
        ({"total_frames": 1.5}, "total_frames: wanted a count, found 1.5"),
        ({"features": []}, "features: wanted an object, found list"),
        ({"features": {"a": []}}, "features/a: wanted dtype and shape"),
        ({"features": {"a": {"dtype": "int64"}}}, "features/a: wanted dtype and shape"),
        ({"features": {"a": {"dtype": "int64", "shape": [-1]}}}, r"features/a: [-1] is no shape"),
        ({"features": {"a": {"dtype": "int8", "shape": [1 << 40]}}}, "more than 1073741824"),
        ({"data_path": None}, "data_path: wanted a path template, found None"),
        ({"data_path": "a/{0}"}, "found '0'"),
        ({"data_path": "a/{chunk_index.__class__}"}, "found 'chunk_index.__class__'"),
        ({"data_path": "a/{chunk_index!r}"}, "found 'chunk_index'"),
        ({"data_path": "a/{chunk_index:09999999d}"}, "found 'chunk_index':'09999999d'"),
        ({"data_path": "a/{chunk_index"}, "is no template"),
        ({"data_path": "a/{video_key}"}, "found 'video_key'"),
        ({"video_path": None}, "video_path: wanted a path template, found None"),
        ({"video_path": "{video_key:99d}"}, "found 'video_key':'99d'"),
    ],
)
def test_a_wrong_value_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StreamError) as caught:
        parse(info(**changes))
    assert str(caught.value).startswith("meta/info.json: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"data_path": "../{chunk_index}/{file_index}.parquet"}, "../0/0.parquet"),
        ({"data_path": "/{chunk_index}/{file_index}.parquet"}, "/0/0.parquet"),
        ({"data_path": "s3://b/{file_index}.parquet"}, "s3://b/0.parquet"),
        ({"video_path": "{video_key}/../../{file_index}.mp4"}, f"{TOP}/../../0.mp4"),
    ],
)
def test_a_template_that_leads_outside_is_refused(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(DatasetError) as caught:
        parse(info(**changes))
    assert f"{path!r} leads outside the dataset" in str(caught.value)


def test_a_video_key_that_leads_outside_is_refused() -> None:
    raw = info(features={"../up": {"dtype": "video", "shape": [8, 8, 3]}})
    with pytest.raises(DatasetError, match="leads outside"):
        parse(raw)


def test_the_file_layout_of_v2_under_a_v3_label_is_named() -> None:
    path = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
    with pytest.raises(DatasetError, match="one file an episode, the layout of v2") as caught:
        parse(info(data_path=path))
    assert "convert_dataset_v21_to_v30" in str(caught.value.hint)


def test_two_cameras_may_not_share_their_files() -> None:
    camera = {"dtype": "video", "shape": [8, 8, 3]}
    raw = info(features={"a": camera, "b": camera}, video_path="videos/{file_index}.mp4")
    with pytest.raises(DatasetError, match="puts 2 cameras into the same files"):
        parse(raw)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a git-lfs pointer"),
        (b'{"fps": 3', "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"fps": 1' + b"0" * 5000 + b"}", "is not JSON"),
        (b"[]", "wanted a JSON object, found list"),
    ],
)
def test_a_file_that_is_no_json_object_is_named(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=r"meta/info\.json") as caught:
        parse_info(data)
    assert message in str(caught.value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(info())), values)
def test_any_value_anywhere_is_read_or_refused_as_a_fault_of_the_file(
    key: str, value: object
) -> None:
    blamed: str | None = "meta/info.json"
    try:
        parse(info(**{key: value}))
    except StreamError as error:
        blamed = error.path
    assert blamed == "meta/info.json"
