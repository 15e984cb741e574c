"""The state of a loopback Hub and who may see what of it."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from tests.hub.cas import Cas
from tests.hub.content import Blob, Bucket, Commit, Repository
from tests.hub.exchange import Asked, Reply, refusal


class Refused(Exception):  # noqa: N818 - it carries a reply, it is no fault of the server
    """Ends a request with this reply."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


@dataclass(slots=True)
class World:
    """Everything that a loopback Hub knows."""

    cas: Cas
    """What clients upload through Xet."""
    hub_url: str = ""
    """Address of the Hub."""
    blobs_url: str = ""
    """Address of the store behind signed addresses; another origin."""
    repositories: dict[str, Repository] = field(default_factory=dict)
    """Dataset repositories by id."""
    buckets: dict[str, Bucket] = field(default_factory=dict)
    """Buckets by id."""
    store: dict[str, Blob] = field(default_factory=dict)
    """Every LFS or bucket blob by SHA-256."""
    tokens: set[str] = field(default_factory=lambda: {"hf_loopback"})
    """Tokens that are right."""
    page_size: int = 1000
    """Entries on one page of a listing."""
    sign_s: float = 3600.0
    """How long a signed address is good."""
    redirect_buckets: bool = True
    """Whether bucket files lie behind signed addresses or are served by the Hub itself."""
    generation: int = 0
    """Raised to make every signed address stale at once."""

    def sign(self, path: str) -> str:
        """Sign an address of the store."""
        expires = str(int(time.time() + self.sign_s))
        query = urlencode({"Expires": expires, "Signature": self._signature(path, expires)})
        return f"{self.blobs_url}{quote(path)}?{query}"

    def check_signature(self, asked: Asked) -> None:
        """Refuse an address that is not signed or not good any more."""
        expires = asked.query.get("Expires", "0")
        right = hmac.compare_digest(
            self._signature(asked.path, expires), asked.query.get("Signature", "")
        )
        if not right or time.time() > float(expires):
            body = b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
            raise Refused(Reply(403, {"Content-Type": "application/xml"}, body))

    def _signature(self, path: str, expires: str) -> str:
        text = f"{path}\n{expires}\n{self.generation}".encode()
        return hmac.new(b"loopback", text, hashlib.sha256).hexdigest()

    def known(self, asked: Asked) -> bool:
        """Say whether the request carries a right token; refuse a wrong one."""
        text = asked.headers.get("authorization")
        if text is None:
            return False
        if text.removeprefix("Bearer ") not in self.tokens:
            raise Refused(refusal(401, "Invalid credentials in Authorization header"))
        return True

    def repository(self, asked: Asked, repo_id: str, *, write: bool = False) -> Repository:
        """Find a repository that the asker may see."""
        known = self.known(asked)
        repository = self.repositories.get(repo_id)
        if repository is None or (repository.private and not known):
            status = 404 if known else 401
            raise Refused(refusal(status, "Repository not found", "RepoNotFound"))
        if write and not known:
            raise Refused(refusal(401, "Authentication is needed to write"))
        return repository

    def commit(self, asked: Asked, repository: Repository, revision: str) -> Commit:
        """Find a commit that the asker may see."""
        commit = repository.resolve(revision)
        if commit is None:
            text = f"Invalid rev id: {revision}"
            raise Refused(refusal(404, text, "RevisionNotFound"))
        return commit

    def bucket(self, asked: Asked, bucket_id: str, *, write: bool = False) -> Bucket:
        """Find a bucket that the asker may see."""
        known = self.known(asked)
        bucket = self.buckets.get(bucket_id)
        if bucket is None or (bucket.private and not known):
            status = 404 if known or bucket is None else 401
            raise Refused(refusal(status, "Repository not found", "RepoNotFound"))
        if write and not known:
            raise Refused(refusal(401, "Authentication is needed to write"))
        return bucket
