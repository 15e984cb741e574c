"""Real movies taken apart into boxes, changed, and put together again."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

CONTAINERS = frozenset(b"moov trak mdia minf stbl edts dinf mvex".split())


@dataclass
class Node:
    """A box: either bytes or boxes inside."""

    kind: bytes
    body: bytes = b""
    children: list[Node] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        body = b"".join(child.to_bytes() for child in self.children) or self.body
        return struct.pack(">I4s", 8 + len(body), self.kind) + body

    def __getitem__(self, path: str) -> Node:
        """Give the first box at a path of kinds."""
        node = self
        for kind in path.split("/"):
            node = next(child for child in node.children if child.kind == kind.encode())
        return node

    def replace(self, path: str, *nodes: Node) -> None:
        """Put other boxes, or none, in the place of one."""
        parent, _, last = path.rpartition("/")
        inside = (self[parent] if parent else self).children
        at = next(i for i, child in enumerate(inside) if child.kind == last.encode())
        inside[at : at + 1] = nodes


def parse(data: bytes) -> list[Node]:
    """Take bytes apart; only 32-bit sizes are met in the clips of tests."""
    nodes = []
    at = 0
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + size]
        if kind in CONTAINERS:
            nodes.append(Node(kind, children=parse(body)))
        else:
            nodes.append(Node(kind, body))
        at += size
    return nodes


def change(data: bytes, edit: Callable[[Node], None]) -> bytes:
    """Change the movie box of a file in which it lies last, so that no sample moves."""
    nodes = parse(data)
    if nodes[-1].kind != b"moov":
        raise ValueError("the movie box does not lie last")
    edit(nodes[-1])
    return b"".join(node.to_bytes() for node in nodes)


def full(kind: str, *words: int, version: int = 0, flags: int = 0, tail: bytes = b"") -> Node:
    """Make a box with version, flags and 32-bit numbers."""
    packed = b"".join((word & 0xFFFFFFFF).to_bytes(4) for word in words)
    return Node(kind.encode(), version.to_bytes(1) + flags.to_bytes(3) + packed + tail)
