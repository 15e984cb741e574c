"""The real huggingface_hub client, in processes of its own, against the loopback Hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub import Hub, Logged

VIDEO = bytes(range(256)) * 20
INFO = b'{"codebase_version": "v3.0"}'
REPO = "robots/pick"
BUCKET = "robots/shelf"

PREAMBLE = """
import json, os, sys
from huggingface_hub import HfApi, HfFileSystem, hf_hub_download, snapshot_download
api, fs = HfApi(), HfFileSystem(skip_instance_cache=True)
REPO, BUCKET, DATASET = "robots/pick", "robots/shelf", {"repo_type": "dataset"}
out = {}
"""


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        hub.add_dataset(REPO, {"meta/info.json": INFO, "videos/a/file-000.mp4": VIDEO})
        hub.add_bucket(BUCKET, {"meta/info.json": INFO, "videos/a/file-000.mp4": VIDEO})
        yield hub


@pytest.fixture
def run(hub: Hub, tmp_path: Path) -> Any:
    def run(code: str) -> Any:
        program = f"{PREAMBLE}\n{code}\njson.dump(out, sys.stdout)"
        env = {**os.environ, **hub.env(tmp_path / "home")}
        done = subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def lines(entries: list[Logged]) -> list[str]:
    return [f"{entry.method} {entry.path}" for entry in entries]


def test_a_repository_is_described_and_listed_in_pages(hub: Hub, run: Any) -> None:
    hub.world.page_size = 1
    out = run("""
out["sha"] = api.repo_info(REPO, revision="v3.0", **DATASET).sha
tree = api.list_repo_tree(REPO, recursive=True, **DATASET)
out["sizes"] = {entry.path: getattr(entry, "size", None) for entry in tree}
found = api.get_paths_info(REPO, ["meta/info.json", "none"], **DATASET)
out["found"] = [entry.path for entry in found]
out["tags"] = [ref.name for ref in api.list_repo_refs(REPO, **DATASET).tags]
""")
    assert out["sha"] == hub.world.repositories[REPO].branches["main"]
    sizes = {path: size for path, size in out["sizes"].items() if size is not None}
    assert sizes == {"meta/info.json": len(INFO), "videos/a/file-000.mp4": len(VIDEO)}
    assert out["found"] == ["meta/info.json"]
    assert out["tags"] == ["v3.0"]
    assert len(hub.requests("*/tree/*")) == len(out["sizes"])


def test_files_are_downloaded_and_no_token_follows_the_redirect(hub: Hub, run: Any) -> None:
    out = run("""
out["file"] = hf_hub_download(REPO, "videos/a/file-000.mp4", **DATASET)
out["folder"] = snapshot_download(REPO, **DATASET)
""")
    assert Path(out["file"]).read_bytes() == VIDEO
    assert (Path(out["folder"]) / "meta/info.json").read_bytes() == INFO
    stored = hub.requests(origin="blobs")
    assert lines(stored) == [f"GET {stored[0].path}"]
    assert not stored[0].authorized
    assert all(entry.authorized for entry in hub.requests(origin="hub"))


def test_the_file_system_reads_ranges(hub: Hub, run: Any) -> None:
    out = run("""
path = f"datasets/{REPO}/videos/a/file-000.mp4"
out["part"] = list(fs.cat_file(path, start=100, end=110, cache_type="none"))
out["found"] = fs.find(f"datasets/{REPO}")
bucket = f"buckets/{BUCKET}/videos/a/file-000.mp4"
out["bucket_part"] = list(fs.cat_file(bucket, start=100, end=110, cache_type="none"))
out["xet_hash"] = fs.info(bucket)["xet_hash"]
""")
    assert bytes(out["part"]) == bytes(out["bucket_part"]) == VIDEO[100:110]
    assert len(out["found"]) == 2
    assert {entry.range for entry in hub.requests(origin="blobs")} == {"bytes=100-109"}
    assert out["xet_hash"] == hub.world.buckets[BUCKET].files["videos/a/file-000.mp4"].xet_hash


def test_a_branch_takes_one_commit_and_main_stays(hub: Hub, run: Any) -> None:
    main = hub.world.repositories[REPO].branches["main"]
    out = run("""
from huggingface_hub import CommitOperationAdd
api.create_branch(REPO, branch="side", **DATASET)
api.create_branch(REPO, branch="side", exist_ok=True, **DATASET)
add = [CommitOperationAdd("x.npz", b"n" * 9000), CommitOperationAdd("notes.txt", b"hello")]
done = api.create_commit(REPO, add, commit_message="two", revision="side", **DATASET)
out["oid"] = done.oid
again = api.upload_file(path_or_fileobj=b"n" * 9000, path_in_repo="x.npz", repo_id=REPO,
                        revision="side", **DATASET)
out["read"] = hf_hub_download(REPO, "x.npz", revision="side", **DATASET)
""")
    branches = hub.world.repositories[REPO].branches
    assert branches == {"main": main, "side": out["oid"]}
    assert Path(out["read"]).read_bytes() == b"n" * 9000
    assert len(hub.requests("*/commit/*")) == 1  # equal content is not committed again
    assert [entry.authorized for entry in hub.requests("/upload/*")] == [False]


def test_a_stale_parent_is_refused(hub: Hub, run: Any) -> None:
    stale = hub.world.repositories[REPO].branches["main"]
    hub.commit(REPO, {"other.txt": b"somebody was faster"})
    out = run(f"""
from huggingface_hub.errors import HfHubHTTPError
try:
    api.upload_file(path_or_fileobj=b"x", path_in_repo="x.txt", repo_id=REPO,
                    parent_commit="{stale}", **DATASET)
except HfHubHTTPError as error:
    out["status"] = error.response.status_code
""")
    assert out["status"] == 412


def test_the_client_names_what_is_missing_or_closed(hub: Hub, run: Any) -> None:
    hub.add_dataset("robots/gated", {"a.mp4": b"x"}, gated=True)
    out = run("""
def name(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
out["repo"] = name(api.repo_info, "robots/none", **DATASET)
out["revision"] = name(api.repo_info, REPO, revision="none", **DATASET)
out["file"] = name(hf_hub_download, REPO, "none.mp4", **DATASET)
out["gated"] = name(hf_hub_download, "robots/gated", "a.mp4", **DATASET)
out["bucket"] = name(api.bucket_info, "robots/none")
""")
    assert out == {
        "repo": "RepositoryNotFoundError",
        "revision": "RevisionNotFoundError",
        "file": "RemoteEntryNotFoundError",
        "gated": "GatedRepoError",
        "bucket": "BucketNotFoundError",
    }


def test_a_bucket_is_written_and_read_through_xet(hub: Hub, run: Any, tmp_path: Path) -> None:
    out = run(f"""
data = bytes(range(251)) * 1000
api.create_bucket("robots/new")
api.batch_bucket_files("robots/new", add=[(data, "videos/b.mp4"), (b"small", "meta/c.json")])
fs.pipe_file("buckets/robots/new/d.bin", b"piped")
target = {str(tmp_path / "b.mp4")!r}
api.download_bucket_files("robots/new", [("videos/b.mp4", target)])
out["files"] = {{f.path: f.size for f in api.list_bucket_tree("robots/new", recursive=True)}}
api.batch_bucket_files("robots/new", delete=["d.bin"])
out["info"] = api.bucket_info("robots/new").total_files
out["same"] = open(target, "rb").read() == data
out["known"] = [f.path for f in api.get_bucket_paths_info("robots/new", ["d.bin", "meta/c.json"])]
""")
    assert out["files"] == {"videos/b.mp4": 251_000, "meta/c.json": 5, "d.bin": 5}
    assert out["same"]
    assert out["info"] == 2
    assert out["known"] == ["meta/c.json"]


def test_files_that_the_server_was_given_are_downloaded_through_xet(
    hub: Hub, run: Any, tmp_path: Path
) -> None:
    target = tmp_path / "a.mp4"
    run(f'api.download_bucket_files(BUCKET, [("videos/a/file-000.mp4", {str(target)!r})])')
    assert target.read_bytes() == VIDEO
