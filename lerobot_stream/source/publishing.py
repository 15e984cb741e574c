"""Writing files beside a dataset on the Hub; no other module of this package writes there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from huggingface_hub import CommitOperationAdd, HfApi, get_token
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RevisionNotFoundError,
)
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

from lerobot_stream.errors import AccessError, MissingFileError, SourceError
from lerobot_stream.source.base import Source
from lerobot_stream.source.bucket import BucketSource
from lerobot_stream.source.http import HTTP_ERROR
from lerobot_stream.source.hub import HubSource
from lerobot_stream.source.published import BRANCH
from lerobot_stream.source.root import shown
from lerobot_stream.source.where import host

_DATASET = "dataset"
_TIMEOUT_S = 30.0
_LOG_IN = "log in with a token that may: `hf auth login`, or set HF_TOKEN"
_AGAIN = "publish again; what is already there is not written twice"


class BranchMovedError(SourceError):
    """Somebody else has put a commit on the branch meanwhile."""


class Place(Protocol):
    """Where files can be published."""

    def address(self, path: str) -> str:
        """Return the page of a published file."""
        ...

    def plan_steps(self, path: str) -> list[str]:
        """Say what writing a file would do, in words, one line a change; nothing is written.

        Raises:
            SourceError: The Hub does not say how things are.
        """
        ...

    def write(self, file: Path, path: str, *, title: str) -> None:
        """Publish a file with one commit; what was there before stays.

        Args:
            file: The file.
            path: Where to, relative to the repository or bucket.
            title: First line of the commit's message.

        Raises:
            BranchMovedError: Another commit came between; nothing was written.
            SourceError: The Hub refuses.
        """
        ...


def find_place(source: Source) -> Place | None:
    """Give the place where files of a dataset are published; None where it has none."""
    if isinstance(source, HubSource):
        return DatasetPlace(source.identity.repo_id, source.identity.revision)
    if isinstance(source, BucketSource):
        return BucketPlace(source.identity.repo_id)
    return None


class DatasetPlace:
    """The branch of published files of a dataset repository.

    Args:
        repo_id: ``OWNER/NAME``.
        commit: Where the branch starts if it has to be made.
    """

    def __init__(self, repo_id: str, commit: str) -> None:
        self._repo_id = repo_id
        self._commit = commit
        self._api = HfApi()

    def address(self, path: str) -> str:
        """Return the page of a published file."""
        return f"{self._api.endpoint}/datasets/{self._repo_id}/blob/{BRANCH}/{path}"

    def plan_steps(self, path: str) -> list[str]:
        """Say what writing a file would do; see :class:`Place`."""
        steps = [f"one commit on branch {BRANCH} with {path}"]
        if self._head() is None:
            steps.insert(0, f"branch {BRANCH} from commit {self._commit}")
        return steps

    def write(self, file: Path, path: str, *, title: str) -> None:
        """Publish a file with one commit; see :class:`Place`."""
        head = self._head() or self._make_branch()
        with _refusals(f"dataset {self._repo_id}", self._api.endpoint):
            self._api.create_commit(
                self._repo_id,
                [CommitOperationAdd(path_in_repo=path, path_or_fileobj=file)],
                commit_message=title,
                repo_type=_DATASET,
                revision=BRANCH,
                parent_commit=head,
            )

    def _head(self) -> str | None:
        with _refusals(f"dataset {self._repo_id}", self._api.endpoint):
            try:
                info = self._api.repo_info(self._repo_id, revision=BRANCH, repo_type=_DATASET)
            except RevisionNotFoundError:
                return None
        return str(info.sha)

    def _make_branch(self) -> str:
        with _refusals(f"dataset {self._repo_id}", self._api.endpoint):
            self._api.create_branch(
                self._repo_id,
                branch=BRANCH,
                revision=self._commit,
                repo_type=_DATASET,
                exist_ok=True,  # another publisher may have made it just now
            )
        return self._head() or self._commit


class BucketPlace:
    """The folder of published files in a bucket.

    Args:
        repo_id: The bucket, ``OWNER/NAME``.
    """

    def __init__(self, repo_id: str) -> None:
        self._repo_id = repo_id
        self._api = HfApi()

    def address(self, path: str) -> str:
        """Return the address of a published file."""
        return f"hf://buckets/{self._repo_id}/{path}"

    def plan_steps(self, path: str) -> list[str]:
        """Say what writing a file would do; see :class:`Place`."""
        return [f"{path} in bucket {self._repo_id}"]

    def write(self, file: Path, path: str, *, title: str) -> None:
        """Publish a file; a bucket has no commits, so the title is not kept."""
        with _refusals(f"bucket {self._repo_id}", self._api.endpoint):
            self._check_rights()
            self._api.batch_bucket_files(self._repo_id, add=[(file, path)])

    def _check_rights(self) -> None:
        """Ask for what writing needs; refused later, nobody could read why."""
        url = f"{self._api.endpoint}/api/buckets/{self._repo_id}/xet-write-token"
        reply = get_session().get(url, headers=build_hf_headers(), timeout=_TIMEOUT_S)
        hf_raise_for_status(reply)


@contextmanager
def _refusals(thing: str, endpoint: str) -> Iterator[None]:
    """Turn what huggingface_hub raises into an error that says what to do."""
    name = host(endpoint)
    try:
        yield
    except OfflineModeIsEnabled as error:
        message = f"publishing to {thing} needs {name}, and HF_HUB_OFFLINE is set"
        raise SourceError(message, hint="unset HF_HUB_OFFLINE") from error
    except HfHubHTTPError as error:
        raise _refusal(error, thing, name) from error
    except (HTTP_ERROR, OSError, RuntimeError) as error:
        cause = error.__cause__ or error  # an upload that fails is only said to have failed
        if isinstance(cause, HfHubHTTPError):
            raise _refusal(cause, thing, name) from error
        message = shown(f"publishing failed ({type(cause).__name__}: {cause})")
        raise SourceError(message, path=thing, hint=_AGAIN) from error


def _refusal(error: HfHubHTTPError, thing: str, name: str) -> SourceError:
    status = error.response.status_code
    if status == 412:
        return BranchMovedError(f"branch {BRANCH} has changed meanwhile", path=thing, hint=_AGAIN)
    if isinstance(error, GatedRepoError):
        hint = "accept its terms on its page, with the account of your token"
        return AccessError(f"{thing} is gated ({status})", hint=hint)
    if status in (401, 403):
        message = f"{name} does not let {_who()} write to {thing} ({status})"
        return AccessError(message, hint=_LOG_IN)
    if isinstance(error, RevisionNotFoundError):
        return BranchMovedError(f"branch {BRANCH} has gone meanwhile", path=thing, hint=_AGAIN)
    if status == 404:
        message = f"no {thing} on {name}, or it may not be seen ({status})"
        return MissingFileError(message, hint="check the name; for a private one " + _LOG_IN)
    if status == 429:
        message = f"{name} limits the rate of requests (429)"
        return SourceError(message, path=thing, hint=f"wait some minutes, then {_AGAIN}")
    message = f"{name} answered {status}: {error.server_message or error}".splitlines()[0]
    return SourceError(shown(message), path=thing, hint=_AGAIN)


def _who() -> str:
    return "this token" if get_token() else "anybody without a token"
