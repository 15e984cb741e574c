"""A pinned copy of a Hub dataset's files in the LeRobot cache."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from huggingface_hub import hf_hub_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
)

from lerobot_stream.errors import AccessError, SourceError
from lerobot_stream.source.base import Source
from lerobot_stream.source.home import lerobot_home
from lerobot_stream.source.hub import HubSource
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.root import shown

_THREADS = 8


def download_files(source: Source, paths: Collection[str]) -> Source:
    """Bring files of a dataset to this machine.

    They are kept under ``$HF_LEROBOT_HOME/hub``, a folder a commit, so that revisions never mix
    and a file that is there is not fetched again.

    Args:
        source: A Hub dataset; a folder is returned as it is.
        paths: Files that are wanted.

    Returns:
        The folder with the files.

    Raises:
        ValueError: The dataset is on neither.
        SourceError: A file cannot be fetched or stored.
    """
    if isinstance(source, LocalSource):
        return source
    if not isinstance(source, HubSource):
        raise ValueError(
            f"{source.identity.data_root} can only be streamed: use --dataset.streaming=true"
        )
    repo_id, commit = source.identity.repo_id, source.identity.revision

    def fetch(path: str) -> Path:
        try:
            file = hf_hub_download(
                repo_id,
                path,
                repo_type="dataset",
                revision=commit,
                cache_dir=lerobot_home() / "hub",
            )
        except GatedRepoError as error:
            raise AccessError(_line(error), path=path, hint="hf auth login") from error
        except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
            raise SourceError(f"cannot be downloaded: {_line(error)}", path=path) from error
        except OSError as error:
            raise SourceError(
                f"cannot be stored: {error.strerror or error}",
                path=path,
                hint="make room under HF_LEROBOT_HOME, or use --dataset.streaming=true",
            ) from error
        return Path(file)

    with ThreadPoolExecutor(_THREADS) as threads:
        files = dict(zip(paths, threads.map(fetch, paths), strict=True))
    root = next(file.parents[path.count("/")] for path, file in files.items())
    return LocalSource(root, repo_id=repo_id, revision=commit)


def _line(error: Exception) -> str:
    return shown(next(iter(str(error).strip().splitlines()), type(error).__name__))
