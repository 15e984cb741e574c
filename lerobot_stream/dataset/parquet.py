"""Parquet over ranged reads: the footer, then only the column chunks asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from lerobot_stream.dataset.pointer import refuse_pointer
from lerobot_stream.errors import FormatError
from lerobot_stream.source.ranges import MAX_GAP_BYTES, SourceFile
from lerobot_stream.span import Span

TAIL_BYTES = 64 << 10
"""Bytes read from the end at first; a longer footer costs a second request."""
_MAGIC = b"PAR1"
_ENCRYPTED_MAGIC = b"PARE"
_FAULTS = (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError)


@dataclass(frozen=True, slots=True, eq=False)
class Footer:
    """A Parquet file's footer, with the way from its columns to their column chunks."""

    path: str
    """The file."""
    file_size: int
    """Bytes of the whole file."""
    metadata: pq.FileMetaData
    """What PyArrow parsed."""
    leaf_paths: tuple[str, ...]
    """Path of each leaf column: a list has one leaf, a struct one a field."""
    leaves: Mapping[str, tuple[int, ...]]
    """Numbers of the leaves below each column; columns of one name share an entry."""
    columns: tuple[str, ...]
    """Name of each column in the order of the file; a name may be there twice."""

    @property
    def num_groups(self) -> int:
        """Row groups in the file."""
        return int(self.metadata.num_row_groups)

    def projected(self, columns: Sequence[str]) -> list[int]:
        """Return the numbers of the leaves that reading some columns touches.

        PyArrow selects by dotted prefix, so that a plain column ``a`` brings along ``a.b``.
        """
        wanted = {self.leaf_paths[leaf] for name in columns for leaf in self.leaves[name]}
        return [leaf for leaf, path in enumerate(self.leaf_paths) if _is_below(path, wanted)]

    def chunk_spans(self, groups: Sequence[int], columns: Sequence[str]) -> list[Span]:
        """Return the bytes of the column chunks of some columns in some row groups.

        Raises:
            FormatError: One does not lie inside the file.
        """
        leaves = self.projected(columns)
        spans = []
        for group in groups:
            row_group = self.metadata.row_group(group)
            for leaf in leaves:
                chunk = row_group.column(leaf)
                start = chunk.data_page_offset
                if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
                    start = chunk.dictionary_page_offset
                stop = start + chunk.total_compressed_size
                if not 0 <= start <= stop <= self.file_size:
                    message = f"bytes {start} to {stop} lie outside the {self.file_size} there are"
                    where = f"row group {group}, column {self.leaf_paths[leaf]}"
                    raise FormatError(message, path=self.path, where=where)
                spans.append(Span(start, stop))
        return spans


def read_footer(file: SourceFile) -> Footer:
    """Read a footer with one request, or two where it is longer than the tail read at first.

    Raises:
        FormatError: The file is empty, a git-lfs pointer, torn or not Parquet.
    """
    path, size = file.path, file.size()
    if not size:
        raise FormatError("is empty", path=path)
    tail = file.read_span(Span(max(0, size - TAIL_BYTES), size))
    length = int.from_bytes(tail[-8:-4], "little")
    if tail[-4:] != _MAGIC or len(tail) < 12 or length > size - 12:
        _refuse(file, tail, length)
    if length + 8 > len(tail):
        tail = file.read_span(Span(size - length - 8, size))
    try:
        metadata = pq.read_metadata(pa.BufferReader(tail[-length - 8 :]))
        schema = metadata.schema.to_arrow_schema()
    except _FAULTS as error:
        raise FormatError(f"the footer can't be parsed: {_line(error)}", path=path) from error
    leaf_paths = tuple(metadata.schema.column(i).path for i in range(metadata.num_columns))
    leaves: dict[str, tuple[int, ...]] = {}
    start = 0
    for name, kind in zip(schema.names, schema.types, strict=True):
        stop = start + _num_leaves(kind)
        leaves[name] = (*leaves.get(name, ()), *range(start, stop))
        start = stop
    if start != len(leaf_paths):
        message = f"the schema has {start} leaf columns, the footer {len(leaf_paths)}"
        raise FormatError(message, path=path)
    return Footer(path, size, metadata, leaf_paths, leaves, tuple(schema.names))


def read_columns(
    file: SourceFile,
    footer: Footer,
    groups: Sequence[int],
    columns: Sequence[str],
    *,
    max_gap: int = MAX_GAP_BYTES,
) -> pa.Table:
    """Read some columns of some row groups.

    Args:
        file: The file that the footer is of.
        footer: Its footer.
        groups: Numbers of the row groups, in the order wanted.
        columns: Names of the columns.
        max_gap: Bytes worth fetching for nothing to save a request.

    Returns:
        A table with exactly these columns, in this order.

    Raises:
        FormatError: A column is missing or there twice with other values, or can't be decoded.
    """
    missing = [name for name in columns if name not in footer.leaves]
    if missing:
        raise FormatError(f"has no column {missing[0]}", path=footer.path)
    file.fetch(footer.chunk_spans(groups, columns), max_gap=max_gap)
    paths = [footer.leaf_paths[leaf] for leaf in footer.projected(columns)]
    try:
        reader = pq.ParquetFile(file, metadata=footer.metadata, pre_buffer=False)
        table = reader.read_row_groups(list(groups), columns=paths, use_threads=False)
    except _FAULTS as error:
        raise FormatError(f"can't be decoded: {_line(error)}", path=footer.path) from error
    return pa.table({name: _column(table, name, footer.path) for name in columns})


def _column(table: pa.Table, name: str, path: str) -> pa.ChunkedArray:
    first, *others = (table.column(i) for i in table.schema.get_all_field_indices(name))
    if any(not first.equals(other) for other in others):
        message = f"has {len(others) + 1} columns {name} with different values"
        raise FormatError(message, path=path)
    return first


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _is_below(path: str, wanted: set[str]) -> bool:
    if path in wanted:
        return True
    parts = path.split(".")
    return any(".".join(parts[: n + 1]) in wanted for n in range(len(parts) - 1))


def _num_leaves(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return _num_leaves(kind.storage_type)
    if pa.types.is_map(kind):
        return _num_leaves(kind.key_type) + _num_leaves(kind.item_type)
    if pa.types.is_nested(kind):
        return sum(_num_leaves(kind.field(i).type) for i in range(kind.num_fields))
    return 1


def _refuse(file: SourceFile, tail: bytes, length: int) -> None:
    """Say why a file is not Parquet."""
    path, size = file.path, file.size()
    refuse_pointer(tail if len(tail) == size else file.read_span(Span(0, 64)), path)
    if tail[-4:] == _MAGIC and len(tail) >= 12:
        raise FormatError(f"the footer claims {length} bytes of {size}", path=path)
    if tail[-4:] == _ENCRYPTED_MAGIC:
        raise FormatError("is an encrypted Parquet file, which is not supported", path=path)
    raise FormatError(
        f"has no Parquet footer: wanted PAR1 at the end of {size} bytes, found {tail[-4:]!r}",
        path=path,
        hint="the writer was stopped before it closed the file, or the file is cut off; "
        "fetch or record it again",
    )
