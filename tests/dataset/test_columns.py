from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lerobot_stream.dataset.columns import (
    column_dtype,
    feature_array,
    number_array,
    picture_bytes,
    placed,
)
from lerobot_stream.dataset.info import Feature
from lerobot_stream.errors import FormatError


def column(values: Any, kind: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


def nested(values: Any, *, fixed: bool) -> pa.ChunkedArray:
    """Rows of ``values`` as lists in lists, in two chunks, cut out of a longer array."""
    kind = pa.from_numpy_dtype(values.dtype)
    for size in reversed(values.shape[1:]):
        kind = pa.list_(kind, size) if fixed else pa.list_(kind)
    padding = values[:1].tolist() * 2
    whole = pa.array([*padding, *values.tolist(), *padding], kind)
    middle = len(values) // 2
    return pa.chunked_array([whole.slice(2, middle), whole.slice(2 + middle, len(values) - middle)])


shapes = arrays.array_shapes(min_dims=2, max_dims=5, min_side=1, max_side=4)
numbers = st.sampled_from(["float32", "float64", "int64", "int32", "uint8", "bool"])


@given(numbers.flatmap(lambda dtype: arrays.arrays(dtype, shapes)), st.booleans())
def test_lists_of_any_depth_become_arrays_of_the_features_shape(values: Any, fixed: bool) -> None:
    feature = Feature(str(values.dtype), values.shape[1:], None)
    found = feature_array(nested(values, fixed=fixed), feature)
    assert found.dtype == values.dtype
    expected = values.reshape(len(values)) if values.shape[1:] == (1,) else values
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(1,), ()])
@pytest.mark.parametrize("stored", [column([1.5, 2.5]), column([[1.5], [2.5]])])
def test_one_value_a_row_is_one_number(shape: tuple[int, ...], stored: pa.ChunkedArray) -> None:
    found = feature_array(stored, Feature("float32", shape, None))
    assert found.dtype == np.float32
    assert found.tolist() == [1.5, 2.5]


def test_values_stored_flat_take_the_features_shape() -> None:
    found = feature_array(column([[1, 2, 3, 4, 5, 6]]), Feature("int64", (2, 3), None))
    assert found.tolist() == [[[1, 2, 3], [4, 5, 6]]]


def test_an_array_is_memory_of_its_own() -> None:
    stored = column(np.arange(6.0))
    found = feature_array(stored, Feature("float64", (1,), None))
    assert found.flags.owndata
    assert found.flags.writeable
    found[:] = 0
    assert stored.to_pylist() == list(np.arange(6.0))


def test_text_becomes_objects() -> None:
    for stored in (column(["a", "bc"]), column(["a", "bc"]).dictionary_encode()):
        found = feature_array(stored, Feature("string", (1,), None))
        assert found.dtype == object
        assert found.tolist() == ["a", "bc"]


def test_what_numpy_has_no_number_for_becomes_objects() -> None:
    rows = [[{"role": "user"}], [{"role": "robot"}]]
    found = feature_array(column(rows), Feature("language", (1,), None))
    assert found.shape == (2,)
    assert found.tolist() == rows


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("float32", "float32"),
        (">f8", "float64"),
        ("bool", "bool"),
        *((name, "object") for name in ("string", "language", "float128", "complex64", "V8", "")),
        *((name, "object") for name in ("(2,)f4", "f4,f4", "f4;", "datetime64", "(")),
    ],
)
def test_a_column_is_of_a_type_that_torch_has_or_objects(name: str, dtype: str) -> None:
    assert column_dtype(name) == dtype
    assert column_dtype(name).isnative


def test_a_text_that_is_no_utf8_is_refused() -> None:
    stored = pa.chunked_array([pa.array([b"a\xff"]).view(pa.string())])
    with pytest.raises(FormatError, match="can't be converted"):
        feature_array(stored, Feature("string", (1,), None))


@pytest.mark.parametrize("kind", [pa.int64(), pa.list_(pa.float32(), 2), pa.list_(pa.int64())])
def test_no_rows_are_an_empty_array(kind: pa.DataType) -> None:
    shape = (2,) if pa.types.is_nested(kind) else (1,)
    for stored in (pa.chunked_array([], kind), column([], kind)):
        found = feature_array(stored, Feature("float32", shape, None))
        assert found.shape == ((0, 2) if shape == (2,) else (0,))


class Matrix(pa.ExtensionType):  # type: ignore[misc]
    """A type of somebody else's, as the datasets library registers them."""

    def __init__(self) -> None:
        super().__init__(pa.list_(pa.list_(pa.float32())), "test.matrix")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Matrix:
        return cls()


def test_extension_types_are_read_as_what_they_store() -> None:
    storage = pa.array([[[1, 2], [3, 4]]], pa.list_(pa.list_(pa.float32())))
    stored = pa.chunked_array([pa.ExtensionArray.from_storage(Matrix(), storage)])
    assert feature_array(stored, Feature("float32", (2, 2), None)).tolist() == [[[1, 2], [3, 4]]]


@pytest.mark.parametrize(
    ("stored", "dtype", "expected"),
    [
        (column([1, 0]), "bool", [True, False]),
        (column([1.0, 2.0]), "int64", [1, 2]),
        (column([1, 2], pa.int32()), "float32", [1.0, 2.0]),
        (column([0.1], pa.float64()), "float32", [float(np.float32(0.1))]),
    ],
)
def test_a_column_of_another_type_is_converted_if_nothing_is_lost(
    stored: pa.ChunkedArray, dtype: str, expected: list[Any]
) -> None:
    found = feature_array(stored, Feature(dtype, (1,), None))
    assert found.dtype == dtype
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("stored", "feature", "message"),
    [
        (column([1, None]), Feature("int64", (1,), None), "1 of 2 values are null"),
        (column([[1.0], None]), Feature("float32", (1,), None), "1 of 2 values are null"),
        (column([[1, None]]), Feature("int64", (2,), None), "1 of 2 values are null"),
        (column([[1, 2], [3]]), Feature("int64", (2,), None), "lists have 1 to 2 values"),
        (
            column([[1, 2], [3, 4]]),
            Feature("int64", (3,), None),
            r"wanted 3 values a row for shape \[3\], found 2",
        ),
        (column([1, 2]), Feature("int64", (2,), None), "wanted 2 values a row"),
        (column([300]), Feature("uint8", (1,), None), "wanted uint8, found int64 values it can't"),
        (column([0.5]), Feature("int64", (1,), None), "wanted int64, found float64 values"),
        (column([float("nan")]), Feature("int64", (1,), None), "values it can't hold"),
        (column(["1"]), Feature("int64", (1,), None), "wanted int64, found object"),
        (column([{"a": 1}]), Feature("int64", (1,), None), "wanted numbers or lists, found struct"),
        (
            column([[("a", 1.0)]], pa.map_(pa.string(), pa.float32())),
            Feature("float32", (1,), None),
            "can't be converted",
        ),
    ],
)
def test_values_that_break_the_features_promise_are_refused(
    stored: pa.ChunkedArray, feature: Feature, message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        feature_array(stored, feature)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (column([1, 2]), [1, 2]),
        (column([1, 2], pa.int32()), [1, 2]),
        (column([1, None]), [1.0, np.nan]),
        (column([1.5, None]), [1.5, np.nan]),
        (column([None, None]), [np.nan, np.nan]),
        (pa.chunked_array([], pa.int64()), []),
    ],
)
def test_numbers_that_may_be_missing_are_nan_there(
    stored: pa.ChunkedArray, expected: list[float]
) -> None:
    found = number_array(stored)
    np.testing.assert_array_equal(found, np.array(expected))
    assert found.dtype == (np.float64 if np.isnan(expected).any() else np.int64)


@pytest.mark.parametrize("stored", [column(["1"]), column([[1]]), column([True])])
def test_a_column_of_something_else_is_no_numbers(stored: pa.ChunkedArray) -> None:
    with pytest.raises(FormatError, match="wanted numbers, found"):
        number_array(stored)


IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def test_pictures_are_the_bytes_of_each_row() -> None:
    rows = [{"bytes": b"one", "path": "1.png"}, {"bytes": b"two", "path": None}]
    assert picture_bytes(column(rows, IMAGE)) == [b"one", b"two"]
    assert picture_bytes(column([b"one", b"two"])) == [b"one", b"two"]
    assert picture_bytes(column([b"one"], pa.large_binary())) == [b"one"]
    assert picture_bytes(pa.chunked_array([], IMAGE)) == []


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (
            column([{"bytes": b"x"}, {"path": "1.png"}], IMAGE),
            "1 of 2 pictures are not in the file",
        ),
        (column([{"bytes": b"x"}, None], IMAGE), "1 of 2 pictures are not in the file"),
        (column([{"path": "1.png"}]), "wanted a struct with bytes"),
        (column(["1.png"]), "wanted encoded pictures, found string"),
    ],
)
def test_pictures_that_are_elsewhere_are_refused(stored: pa.ChunkedArray, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        picture_bytes(stored)


def test_an_error_gets_the_place_it_lacks() -> None:
    with (
        pytest.raises(FormatError, match=r"^a\.parquet: column b: is odd$"),
        placed("a.parquet", "b"),
    ):
        raise FormatError("is odd")
    with pytest.raises(FormatError, match=r"^c: d: is odd$"), placed("a.parquet", "b"):
        raise FormatError("is odd", path="c", where="d")
