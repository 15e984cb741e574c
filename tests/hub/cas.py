"""The store behind Xet, as folders that hf_xet itself reads and writes.

A folder can be open in one process at a time, so each process that asks gets one of its own.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import hf_xet

from tests.hub.content import Content

_FAR = 9_999_999_999
"""A time, in seconds, at which no test runs any more."""


class Cas:
    """All folders of one Hub."""

    def __init__(self, root: Path) -> None:
        """Keep folders below ``root``."""
        self._root = root
        self._written: list[Path] = []
        root.mkdir(parents=True, exist_ok=True)

    def folder_to_write(self) -> Path:
        """Make a folder for a process that wants to upload."""
        folder = Path(tempfile.mkdtemp(prefix="write-", dir=self._root))
        self._written.append(folder)
        return folder

    def folder_to_read(self, contents: Iterable[Content]) -> Path:
        """Make a folder for a process that wants to download any of these."""
        folder = Path(tempfile.mkdtemp(prefix="read-", dir=self._root))
        with hf_xet.XetSession().new_upload_commit(**_place(folder)) as commit:
            for content in contents:
                if isinstance(content, bytes):
                    commit.start_upload_bytes(content, sha256=hf_xet.SKIP_SHA256)
                else:
                    commit.start_upload_file(str(content), sha256=hf_xet.SKIP_SHA256)
        return folder

    def find(self, xet_hash: str) -> bytes | None:
        """Put together a file that some process has uploaded.

        Args:
            xet_hash: The file's hash, in hex.

        Returns:
            The bytes; ``None`` where nobody has uploaded them.
        """
        for folder in reversed(self._written):
            data = self._find_in(folder, xet_hash)
            if data is not None:
                return data
        return None

    def _find_in(self, folder: Path, xet_hash: str) -> bytes | None:
        if not (folder / "xet").exists():
            return None
        scratch = Path(tempfile.mkdtemp(prefix="copy-", dir=self._root))
        place, target = scratch / "cas", scratch / "file"
        shutil.copytree(folder, place)  # the process that wrote it may still have it open
        try:
            with hf_xet.XetSession().new_file_download_group(**_place(place)) as group:
                group.start_download_file(hf_xet.XetFileInfo(xet_hash), str(target))
            return target.read_bytes() if target.exists() else None
        except hf_xet.XetObjectNotFoundError:
            return None
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def hashes(self, contents: Sequence[Content]) -> list[str]:
        """Hash contents as Xet does, in hex."""
        scratch = Path(tempfile.mkdtemp(prefix="hash-", dir=self._root))
        paths: list[str] = []
        for number, content in enumerate(contents):
            if isinstance(content, bytes):
                path = scratch / str(number)
                path.write_bytes(content)
                paths.append(str(path))
            else:
                paths.append(str(content))
        found = [pointer.hash for pointer in hf_xet.hash_files(paths)] if paths else []
        shutil.rmtree(scratch)
        return found


def _place(folder: Path) -> dict[str, object]:
    return {
        "endpoint": f"local://{folder}",
        "token": "loopback",
        "token_expiry_unix_secs": _FAR,
    }
