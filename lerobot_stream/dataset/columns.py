"""Arrow columns as NumPy arrays of a feature's type and shape."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lerobot_stream.dataset.info import Feature
from lerobot_stream.errors import FormatError

_MAX_WHOLE = 1 << 62


@contextmanager
def placed(path: str, column: str) -> Iterator[None]:
    """Name file and column on a FormatError from inside that does not know them.

    Args:
        path: The file.
        column: The column, or what else is being read there.
    """
    try:
        yield
    except FormatError as error:
        error.path = error.path or path
        error.where = error.where or f"column {column}"
        raise


@contextmanager
def _converting() -> Iterator[None]:
    """Say what PyArrow raises as a FormatError."""
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise FormatError(f"can't be converted: {' '.join(str(error).split())}") from error


def column_dtype(name: str) -> np.dtype[Any]:
    """Return the type of the array that a feature's column becomes.

    Args:
        name: The type as info.json names it.

    Returns:
        A number type that torch knows, in this machine's byte order; object for text and all else.
    """
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        return np.dtype(object)
    is_number = dtype.kind in "biuf" and dtype.itemsize <= 8
    return dtype.newbyteorder("=") if is_number else np.dtype(object)


def feature_array(column: pa.ChunkedArray, feature: Feature) -> NDArray[Any]:
    """Convert a column to an array of its own memory.

    Args:
        column: ``n`` rows of numbers, text, or lists nested to any depth.
        feature: The type and shape promised.

    Returns:
        ``(n,)`` where a row is one value, else ``(n, *shape)``. Text, and what torch has no
        number type for, comes as an object array ``(n,)``.

    Raises:
        FormatError: There are nulls, lists of other lengths, or values the type can't hold.
    """
    num_rows = len(column)
    dtype = column_dtype(feature.dtype)
    if dtype.kind == "O":
        return np.fromiter(column_values(column), object, num_rows)
    with _converting():
        flat = _flat(column)
    num_values = math.prod(feature.shape)
    if len(flat) != num_rows * num_values:
        found = len(flat) / num_rows if num_rows else len(flat)
        shape = list(feature.shape)
        raise FormatError(f"wanted {num_values} values a row for shape {shape}, found {found:g}")
    values = _cast(flat, dtype)
    return values if feature.shape in ((), (1,)) else values.reshape(num_rows, *feature.shape)


def number_array(column: pa.ChunkedArray) -> NDArray[np.float64 | np.int64]:
    """Convert a column of plain numbers that may be missing.

    Returns:
        ``(n,)`` int64 for whole numbers without gaps, else float64 with NaN for what is missing.

    Raises:
        FormatError: It is not a column of numbers.
    """
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise FormatError(f"wanted numbers, found {kind}")
    if pa.types.is_integer(kind) and not column.null_count:
        whole: NDArray[np.int64] = np.array(column.to_numpy(), np.int64)
        return whole
    values: NDArray[np.float64] = np.array(column.cast(pa.float64()).to_numpy(), np.float64)
    return values


def whole_array(column: pa.ChunkedArray) -> NDArray[np.float64 | np.int64]:
    """Convert a column of whole numbers, none of them missing.

    Raises:
        FormatError: One is missing, no whole number, or larger than any count.
    """
    values = number_array(column)
    sound = np.isfinite(values) & (np.abs(values) < _MAX_WHOLE)
    if not sound.all() or (values != np.floor(values)).any():
        raise FormatError("wanted a whole number in every row")
    return values


def column_values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column as Python has them.

    Raises:
        FormatError: A text is no UTF-8, or Python can't hold a value.
    """
    with _converting():
        values: list[Any] = column.to_pylist()
    return values


def picture_bytes(column: pa.ChunkedArray) -> list[bytes]:
    """Return the encoded pictures of an image column.

    Args:
        column: ``struct{bytes, path}`` or plain binary.

    Raises:
        FormatError: A picture is not stored in the column.
    """
    array = _whole(column)
    if pa.types.is_struct(array.type):
        if array.type.get_field_index("bytes") < 0:
            raise FormatError(f"wanted a struct with bytes, found {array.type}")
        array = pc.struct_field(array, "bytes")
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        raise FormatError(f"wanted encoded pictures, found {array.type}")
    if array.null_count:
        raise FormatError(f"{array.null_count} of {len(array)} pictures are not in the file")
    pictures: list[bytes] = array.to_pylist()
    return pictures


def _whole(column: pa.ChunkedArray) -> pa.Array:
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array


def _flat(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return the innermost values, after a look at every list on the way."""
    array = _whole(column)
    while pa.types.is_nested(array.type):
        if not hasattr(array, "flatten") or pa.types.is_struct(array.type):
            raise FormatError(f"wanted numbers or lists, found {array.type}")
        _refuse_nulls(array)
        lengths = pc.list_value_length(array).to_numpy(zero_copy_only=False)
        if len(lengths) and lengths.min() != lengths.max():
            raise FormatError(f"lists have {lengths.min()} to {lengths.max()} values")
        array = array.flatten()
    _refuse_nulls(array)
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


def _refuse_nulls(array: pa.Array) -> None:
    if array.null_count:
        raise FormatError(f"{array.null_count} of {len(array)} values are null")


def _cast(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert to a copy; whole numbers and truth values must survive unchanged."""
    if values.dtype == dtype:
        return values.copy()
    if values.dtype.kind not in "biuf":
        raise FormatError(f"wanted {dtype}, found {values.dtype}")
    with np.errstate(invalid="ignore", over="ignore"):
        cast = values.astype(dtype)
    if dtype.kind != "f" and not np.array_equal(cast, values):
        raise FormatError(f"wanted {dtype}, found {values.dtype} values it can't hold")
    return cast
