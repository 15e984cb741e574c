"""A dataset repository on the Hub, at one commit."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from lerobot_stream.errors import MissingFileError, SourceError
from lerobot_stream.source.base import FileInfo, Identity
from lerobot_stream.source.http import HttpClient
from lerobot_stream.source.patience import Clock, Patience
from lerobot_stream.source.published import BRANCH, PublishedFile, published_path
from lerobot_stream.source.refusal import Subject
from lerobot_stream.source.remote import RemoteSource
from lerobot_stream.source.root import is_commit
from lerobot_stream.source.verdict import Verdict

logger = logging.getLogger(__name__)

VERSION_TAG = "v3.0"
"""The tag that LeRobot puts on what it uploads in this format."""


class HubSource(RemoteSource):
    """A source that reads one commit of a dataset repository.

    The commit pins the content, so that files have no fingerprints.

    Args:
        repo_id: ``OWNER/NAME``.
        commit: Forty hex digits.
        client: Makes the calls.
        subranges: Parts to fetch a large span in.
    """

    def __init__(
        self, repo_id: str, commit: str, *, client: HttpClient, subranges: int = 1
    ) -> None:
        if not is_commit(commit):
            raise ValueError(f"{commit!r} is not a commit")
        identity = Identity(repo_id, commit, f"hf://datasets/{repo_id}@{commit}")
        subject = dataset_subject(repo_id, client.endpoint)
        super().__init__(identity, client=client, subject=subject, subranges=subranges)

    def _list(self) -> Iterator[tuple[str, FileInfo]]:
        repo_id, commit = self.identity.repo_id, self.identity.revision
        url = f"{self._client.endpoint}/api/datasets/{repo_id}/tree/{commit}"
        query, what = "?recursive=true&expand=false", "the list of its files"
        for entry in self._client.get_pages(url + query, self._subject, what=what):
            if entry["type"] == "file":
                yield entry["path"], FileInfo(int(entry["size"]))

    def _url(self, path: str) -> str:
        repo_id, commit = self.identity.repo_id, self.identity.revision
        return f"{self._client.endpoint}/datasets/{repo_id}/resolve/{commit}/{quote(path)}"

    def find_published(self, name: str) -> PublishedFile | None:
        """Look for a file on the branch of published ones, with one request.

        Returns:
            The file at the commit that the branch means now; None where there is no such
            branch or no such file.

        Raises:
            SourceError: The Hub refuses, or patience has ended.
        """
        path, repo_id = published_path(name), self.identity.repo_id
        url = f"{self._client.endpoint}/datasets/{repo_id}/resolve/{BRANCH}/{quote(path)}"
        subject, what = replace(self._subject, path=path), "a published file"
        try:
            _, reply, judgement = self._client.look_up("HEAD", url, subject, what=what)
        except MissingFileError:
            return None
        commit = reply.headers.get("x-repo-commit", "")
        says_size = "content-length" if judgement.verdict is Verdict.USE else "x-linked-size"
        size = reply.headers.get("x-linked-size") or reply.headers.get(says_size, "")
        if not is_commit(commit) or not size.isdecimal():
            message = f"the Hub says commit {commit!r} and size {size!r} of a published file"
            raise SourceError(message, path=path)
        found = HubSource(repo_id, commit, client=self._client)
        found._listing = {path: FileInfo(int(size))}
        return PublishedFile(found, path, int(size))


def open_hub(
    repo_id: str,
    *,
    revision: str | None = None,
    connections: int | None = None,
    subranges: int = 1,
    patience: Patience | None = None,
    clock: Clock | None = None,
) -> HubSource:
    """Open a dataset repository at the commit that a revision means now.

    Args:
        repo_id: ``OWNER/NAME``.
        revision: Branch, tag or commit; ``None``: the tag ``v3.0`` if there is one, else the
            branch ``main``.
        connections: Requests at a time; ``None``: a usual number.
        subranges: Parts to fetch a large span in.
        patience: Deadlines and waits; ``None``: the usual ones.
        clock: Where time and chance come from; ``None``: from the system.

    Raises:
        MissingFileError: There is no such dataset or revision.
        AccessError: It needs a token, another one, or accepted terms.
        SourceError: The Hub cannot be asked.
    """
    client = HttpClient(
        connections=connections, patience=patience or Patience(), clock=clock or Clock()
    )
    commit = _find_commit(client, repo_id, revision)
    return HubSource(repo_id, commit, client=client, subranges=subranges)


def dataset_subject(repo_id: str, endpoint: str) -> Subject:
    """Name a dataset repository for errors."""
    return Subject(repo_id, "dataset", f"{endpoint}/datasets/{repo_id}")


def _find_commit(client: HttpClient, repo_id: str, revision: str | None) -> str:
    if revision is not None and is_commit(revision):
        return revision
    subject = dataset_subject(repo_id, client.endpoint)
    api = f"{client.endpoint}/api/datasets/{repo_id}"
    if revision is None:
        refs, _ = client.get_json(
            f"{api}/refs", subject, kind=dict, what="the list of its revisions"
        )
        tags, branches = (_commits(refs, kind, repo_id) for kind in ("tags", "branches"))
        return _choose(repo_id, tags, branches)
    url = f"{api}/revision/{quote(revision, safe='')}?expand=sha"
    found, _ = client.get_json(url, subject, kind=dict, what=f"the commit of revision {revision}")
    commit = found.get("sha")
    if not isinstance(commit, str) or not is_commit(commit):
        message = f"revision {revision} has no commit: found {commit!r}"
        raise SourceError(message, path=repo_id)
    logger.info("%s: %s → %s", repo_id, revision, commit)
    return commit


def _choose(repo_id: str, tags: dict[str, str], branches: dict[str, str]) -> str:
    """Choose as LeRobot does, but take an untagged repository as it is."""
    main = branches.get("main")
    tagged = tags.get(VERSION_TAG) or branches.get(VERSION_TAG)
    if tagged is not None:
        behind = "" if tagged == main else f" (main is at {main})"
        logger.info("%s: %s → %s%s", repo_id, VERSION_TAG, tagged, behind)
        return tagged
    if main is None:
        message = f"has neither a tag {VERSION_TAG} nor a branch main"
        hint = f"name a revision: {', '.join(sorted({*tags, *branches})) or 'there is none'}"
        raise SourceError(message, path=repo_id, hint=hint)
    logger.info("%s: no tag %s, reading main → %s", repo_id, VERSION_TAG, main)
    return main


def _commits(refs: dict[str, Any], kind: str, repo_id: str) -> dict[str, str]:
    """Commits by name; a reply of another form than the Hub's is refused."""
    try:
        commits = {str(ref["name"]): str(ref["targetCommit"]) for ref in refs.get(kind, [])}
    except (KeyError, TypeError) as error:
        message = f"the list of its revisions is not understood: {error!r} among the {kind}"
        raise SourceError(message, path=repo_id) from error
    for name, commit in commits.items():
        if not is_commit(commit):
            message = f"the list of its revisions says commit {commit!r} of {name}"
            raise SourceError(message, path=repo_id)
    return commits
