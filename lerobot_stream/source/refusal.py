"""From a refusal of the Hub to the error that says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lerobot_stream.errors import AccessError, MissingFileError, SourceError
from lerobot_stream.source.verdict import Judgement, Verdict
from lerobot_stream.source.where import host

_LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a call is about, for its errors."""

    repo_id: str
    """``OWNER/NAME``."""
    kind: str
    """``dataset`` or ``bucket``."""
    page: str
    """Address of its page on the Hub."""
    path: str | None = None
    """The file; ``None``: the whole of it."""

    @property
    def name(self) -> str:
        """The place that an error names first."""
        return self.path or self.repo_id


def refused_by_hub(
    judgement: Judgement, status: int, headers: Mapping[str, str], subject: Subject, *, url: str
) -> SourceError:
    """Explain why the Hub did not give what was asked for.

    Args:
        judgement: What the reply was taken for.
        status: Its status.
        headers: Its headers by lower-case name.
        subject: What the call is about.
        url: Where it went.
    """
    code = headers.get("x-error-code", "")
    if judgement.verdict is Verdict.DENIED:
        return _denied(status, code, headers, subject, url)
    if judgement.verdict is Verdict.MISSING:
        return _missing(code, headers, subject, url)
    said = headers.get("x-error-message")
    message = f"{host(url)} {judgement.reason}" + (f": {said}" if said else "")
    return SourceError(message, path=subject.name)


def _denied(
    status: int, code: str, headers: Mapping[str, str], subject: Subject, url: str
) -> AccessError:
    thing = f"{subject.kind} {subject.repo_id}"
    if code == "GatedRepo":
        hint = f"accept its terms at {subject.page}, then {_LOG_IN}"
        return AccessError(f"{thing} is gated ({status})", path=subject.name, hint=hint)
    if "credentials" in headers.get("x-error-message", ""):
        message = f"{host(url)} does not know the token it was sent ({status})"
        return AccessError(message, path=subject.name, hint=_LOG_IN)
    if status == 401:
        message = f"{thing} does not exist on {host(url)}, or needs a token (401)"
        return AccessError(message, path=subject.name, hint=f"check the name; {_LOG_IN}")
    message = f"{host(url)} does not let this token read {thing} ({status})"
    hint = f"use a token with access to {subject.page}: {_LOG_IN}"
    return AccessError(message, path=subject.name, hint=hint)


def _missing(code: str, headers: Mapping[str, str], subject: Subject, url: str) -> MissingFileError:
    thing = f"{subject.kind} {subject.repo_id}"
    if code == "RepoNotFound":
        hint = f"check the name; for a private one {_LOG_IN}"
        return MissingFileError(f"no {thing} on {host(url)}", path=subject.name, hint=hint)
    if code == "RevisionNotFound":
        said = headers.get("x-error-message", "no such revision")
        return MissingFileError(f"{said}, in {thing} on {host(url)}", path=subject.name)
    return MissingFileError(f"not found in {thing} on {host(url)}", path=subject.name)


def refused_by_store(
    judgement: Judgement, status: int, subject: Subject, *, url: str
) -> SourceError:
    """Explain why a signed address did not give what was asked for, even when it was new."""
    name = host(url)
    if judgement.verdict is Verdict.DENIED:
        return AccessError(
            f"{name} refuses the address that the Hub signed, twice ({status})",
            path=subject.name,
            hint="check this machine's clock and any proxy on the way",
        )
    if judgement.verdict is Verdict.MISSING:
        return MissingFileError(f"{name} has no such file ({status})", path=subject.name)
    return SourceError(f"{name} {judgement.reason}", path=subject.name)


def endless(subject: Subject, *, url: str) -> SourceError:
    """Explain that a redirect leads to a redirect, and so on."""
    return SourceError(f"{host(url)} redirects without an end", path=subject.name)


def changed(judgement: Judgement, subject: Subject) -> SourceError:
    """Explain that a file is not the one that was listed."""
    return SourceError(
        f"changed while in use: {judgement.reason}",
        path=subject.name,
        hint="start again when nothing writes to the dataset",
    )


def gave_up(
    reason: str, subject: Subject, *, url: str, status: int, tries: int, spent_s: float
) -> SourceError:
    """Explain that patience has ended."""
    name = host(url)
    effort = f"after {tries} tries in {spent_s:.0f} s"
    if status == 429:
        return SourceError(
            f"{name} limits the rate of requests: still 429 {effort}",
            path=subject.name,
            hint="use fewer ranks, workers or connections at once, or wait some minutes",
        )
    hint = "try again later"
    if not status:
        hint = "check the network; a dataset on this machine is read where its root says"
    return SourceError(f"{name} {reason} {effort}", path=subject.name, hint=hint)


def offline(what: str, subject: Subject, *, url: str) -> SourceError:
    """Explain what cannot be had offline."""
    return SourceError(
        f"{what} must come from {host(url)}, and HF_HUB_OFFLINE is set",
        path=subject.name,
        hint="unset HF_HUB_OFFLINE, or name the folder where the dataset lies as its root",
    )
