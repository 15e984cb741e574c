"""A storage bucket on the Hub, as it is when it is opened."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from lerobot_stream.source.base import FileInfo, Identity
from lerobot_stream.source.http import HttpClient
from lerobot_stream.source.patience import Clock, Patience
from lerobot_stream.source.published import PublishedFile, published_path
from lerobot_stream.source.refusal import Subject
from lerobot_stream.source.remote import RemoteSource


class BucketSource(RemoteSource):
    """A source that reads a storage bucket.

    A bucket has no commits: each file's content hash is its fingerprint, and a file that has
    another one when it is read is an error.

    Args:
        repo_id: The bucket, ``OWNER/NAME``.
        revision: Text to file the dataset under.
        client: Makes the calls.
        subranges: Parts to fetch a large span in.
    """

    def __init__(
        self, repo_id: str, *, revision: str = "v3.0", client: HttpClient, subranges: int = 1
    ) -> None:
        identity = Identity(repo_id, revision, f"hf://buckets/{repo_id}")
        subject = Subject(repo_id, "bucket", f"{client.endpoint}/buckets/{repo_id}")
        super().__init__(identity, client=client, subject=subject, subranges=subranges)

    def _list(self) -> Iterator[tuple[str, FileInfo]]:
        url = f"{self._client.endpoint}/api/buckets/{self.identity.repo_id}/tree?recursive=true"
        what = "the list of its files"
        for entry in self._client.get_pages(url, self._subject, what=what):
            if entry["type"] == "file":
                yield entry["path"], FileInfo(int(entry["size"]), str(entry["xetHash"]))

    def _url(self, path: str) -> str:
        repo_id = self.identity.repo_id
        return f"{self._client.endpoint}/buckets/{repo_id}/resolve/{quote(path)}"

    def find_published(self, name: str) -> PublishedFile | None:
        """Look for a file among the published ones of this bucket, in the listing it has."""
        path = published_path(name)
        info = self.list_files().get(path)
        return None if info is None else PublishedFile(self, path, info.size)


def open_bucket(
    repo_id: str,
    *,
    revision: str | None = None,
    connections: int | None = None,
    subranges: int = 1,
    patience: Patience | None = None,
    clock: Clock | None = None,
) -> BucketSource:
    """Open a storage bucket; nothing is asked for yet.

    Args:
        repo_id: The bucket, ``OWNER/NAME``.
        revision: Text to file the dataset under; ``None``: ``v3.0``.
        connections: Requests at a time; ``None``: a usual number.
        subranges: Parts to fetch a large span in.
        patience: Deadlines and waits; ``None``: the usual ones.
        clock: Where time and chance come from; ``None``: from the system.
    """
    client = HttpClient(
        connections=connections, patience=patience or Patience(), clock=clock or Clock()
    )
    return BucketSource(repo_id, revision=revision or "v3.0", client=client, subranges=subranges)
