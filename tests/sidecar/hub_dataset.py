"""A dataset of three videos on a loopback Hub, for this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from huggingface_hub import constants

from lerobot_stream.sidecar.build import build_sidecar
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.sidecar.store import open_sidecar
from lerobot_stream.source.base import Source
from lerobot_stream.source.hub import HubSource, open_hub
from lerobot_stream.source.patience import Clock, Patience
from lerobot_stream.source.published import BRANCH
from tests.hub import TOKEN, Hub, use_hub
from tests.hub.exchange import Asked, Reply
from tests.sidecar.memory import make_mp4

REPO = "robots/arm"
PATHS = ["videos/a.mp4", "videos/b.mp4", "videos/c.mp4"]
READS = {"GET", "HEAD"}


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """Does something behind the client's back, and answers rightly."""

    act: Callable[[], object]

    def apply(self, asked: Asked, reply: Reply) -> Reply:
        self.act()
        return reply


@dataclass
class OnHub:
    """The repository, and what is done to it."""

    hub: Hub
    folder: Path
    commit: str
    """The commit on ``main`` that has the tag ``v3.0``."""

    def source(self, commit: str | None = None) -> HubSource:
        """Open the dataset; nobody waits for the server."""
        clock = Clock(sleep=lambda seconds: None)
        return open_hub(
            REPO, revision=commit or self.commit, patience=Patience(tries=3), clock=clock
        )

    def build(self, source: Source | None = None, *, subset: bool = False) -> Path:
        """Build the sidecar outside any cache."""
        output = self.folder / "built.npz"
        paths = PATHS[:2] if subset else PATHS
        return build_sidecar(source or self.source(), paths, output=output, subset=subset)

    def open(self, source: Source, *, cache: Path, paths: list[str] = PATHS) -> Sidecar:
        """Open the sidecar by way of a cache."""
        return open_sidecar(source, paths, dataset_paths=PATHS, cache_dir=cache, lock_timeout_s=5)

    def put(self, path: str, content: bytes, *, branch: str = BRANCH) -> str:
        """Commit a file; a new branch starts at the tagged commit."""
        repository = self.hub.world.repositories[REPO]
        repository.branches.setdefault(branch, self.commit)
        return self.hub.commit(REPO, {path: content}, branch=branch)

    def read(self, path: str, *, branch: str = BRANCH) -> bytes | None:
        """Read a file from a branch; None where there is none."""
        repository = self.hub.world.repositories[REPO]
        head = repository.branches.get(branch)
        blob = repository.commits[head].files.get(path) if head else None
        return None if blob is None else blob.read(0, blob.size)

    def num_commits(self, branch: str = BRANCH) -> int:
        """Commits of a branch since the tagged one."""
        repository = self.hub.world.repositories[REPO]
        at, count = repository.branches[branch], 0
        while at != self.commit:
            parent = repository.commits[at].parent
            assert parent is not None
            at, count = parent, count + 1
        return count

    def methods(self) -> set[str]:
        """Methods of the requests that were sent, which are then forgotten."""
        found = {entry.method for entry in self.hub.requests()}
        self.hub.log.clear()
        return found

    def video_requests(self) -> int:
        """Range requests for videos so far."""
        return sum(entry.range is not None for entry in self.hub.requests("*.mp4"))


@contextmanager
def dataset_on_hub(folder: Path, *, token: str | None = TOKEN) -> Iterator[OnHub]:
    """Serve the dataset and let huggingface_hub of this process talk to it."""
    files = {path: make_mp4(folder, 10 + i) for i, path in enumerate(PATHS)}
    with Hub() as hub, use_hub(hub, token=token), pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        patch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
        yield OnHub(hub, folder, hub.add_dataset(REPO, files))
