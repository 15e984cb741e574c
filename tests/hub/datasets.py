"""How the loopback Hub answers about dataset repositories."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qs

from tests.hub.content import Blob, Commit, Repository
from tests.hub.exchange import Asked, Reply, file_reply, json_reply, refusal
from tests.hub.routes import paged, route
from tests.hub.world import Refused, World

_API = "/api/datasets/{id}"


@route("GET", _API)
@route("GET", _API + "/revision/{revision}")
def info(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    repository = world.repository(asked, parts["id"])
    commit = world.commit(asked, repository, parts.get("revision", "main"))
    return json_reply(
        {
            "id": repository.id,
            "sha": commit.oid,
            "siblings": [{"rfilename": path} for path in sorted(commit.files)],
            "private": repository.private,
            "gated": "manual" if repository.gated else False,
            "disabled": False,
            "tags": [],
            "lastModified": commit.date,
            "createdAt": commit.date,
        }
    )


@route("GET", _API + "/refs")
def refs(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    repository = world.repository(asked, parts["id"])
    return json_reply(
        {
            "branches": _refs("heads", repository.branches),
            "tags": _refs("tags", repository.tags),
            "converts": [],
        }
    )


def _refs(kind: str, names: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": oid}
        for name, oid in sorted(names.items())
    ]


@route("GET", _API + "/commits/{revision}")
def commits(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    repository = world.repository(asked, parts["id"])
    head = world.commit(asked, repository, parts["revision"])
    return paged(world, asked, [_commit_entry(commit) for commit in _history(repository, head)])


def _history(repository: Repository, head: Commit) -> Iterator[Commit]:
    oid: str | None = head.oid
    while oid is not None:
        commit = repository.commits[oid]
        yield commit
        oid = commit.parent


def _commit_entry(commit: Commit) -> dict[str, object]:
    return {
        "id": commit.oid,
        "title": commit.title,
        "message": "",
        "date": commit.date,
        "authors": [{"user": "loopback"}],
    }


@route("GET", _API + "/tree/{revision}")
@route("GET", _API + "/tree/{revision}/{path}")
def tree(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    repository = world.repository(asked, parts["id"])
    commit = world.commit(asked, repository, parts["revision"])
    recursive = asked.query.get("recursive") in ("true", "True", "1")
    entries = list(_tree_entries(commit, parts.get("path", ""), recursive=recursive))
    if not entries and parts.get("path"):
        raise Refused(refusal(404, f"{parts['path']} does not exist", "EntryNotFound"))
    return paged(world, asked, entries)


def _tree_entries(commit: Commit, folder: str, *, recursive: bool) -> Iterator[dict[str, object]]:
    start = f"{folder}/" if folder else ""
    folders: set[str] = set()
    for path, blob in sorted(commit.files.items()):
        if not path.startswith(start):
            continue
        names = path[len(start) :].split("/")
        depth = len(names) - 1 if recursive else min(1, len(names) - 1)
        for level in range(1, depth + 1):
            parent = start + "/".join(names[:level])
            if parent not in folders:
                folders.add(parent)
                yield {"type": "directory", "path": parent, "size": 0, "oid": "0" * 40}
        if recursive or len(names) == 1:
            yield _file_entry(path, blob)


def _file_entry(path: str, blob: Blob) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": path, "size": blob.size, "oid": blob.oid}
    if blob.lfs:
        size = len(blob.pointer)
        entry["lfs"] = {"oid": blob.sha256, "size": blob.size, "pointerSize": size}
    return entry


@route("POST", _API + "/paths-info/{revision}")
def paths_info(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    repository = world.repository(asked, parts["id"])
    commit = world.commit(asked, repository, parts["revision"])
    wanted = parse_qs(asked.body.decode()).get("paths", [])
    found: list[dict[str, object]] = []
    for path in wanted:
        if path in commit.files:
            found.append(_file_entry(path, commit.files[path]))
        elif any(known.startswith(f"{path}/") for known in commit.files):
            found.append({"type": "directory", "path": path, "size": 0, "oid": "0" * 40})
    return json_reply(found)


@route("GET HEAD", "/datasets/{id}/resolve/{revision}/{path}")
def resolve(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    repository = world.repository(asked, parts["id"])
    if repository.gated:
        text = f"Access to dataset {repository.id} is restricted. Accept its terms first."
        raise Refused(refusal(403 if world.known(asked) else 401, text, "GatedRepo"))
    commit = world.commit(asked, repository, parts["revision"])
    blob = commit.files.get(parts["path"])
    if blob is None:
        missing = refusal(404, "Entry not found", "EntryNotFound")
        raise Refused(missing.with_headers(X_Repo_Commit=commit.oid))
    if not blob.lfs:
        return file_reply(asked, blob, blob.oid).with_headers(X_Repo_Commit=commit.oid)
    return Reply(302).with_headers(
        X_Repo_Commit=commit.oid,
        X_Linked_Etag=f'"{blob.sha256}"',
        X_Linked_Size=str(blob.size),
        Location=world.sign(f"/blobs/{blob.sha256}/{parts['path']}"),
    )


@route("GET HEAD", "/blobs/{sha256}/{path}", origin="blobs")
def blob(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    world.check_signature(asked)
    stored = world.store.get(parts["sha256"])
    if stored is None:
        raise Refused(Reply(404, {"Content-Type": "application/xml"}, b"<Code>NoSuchKey</Code>"))
    return file_reply(asked, stored, stored.sha256)


@route("POST", _API + "/branch/{branch}")
def create_branch(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    repository = world.repository(asked, parts["id"], write=True)
    if parts["branch"] in repository.branches:
        raise Refused(refusal(409, f"Reference already exists: {parts['branch']}"))
    start = json.loads(asked.body or b"{}").get("startingPoint", "main")
    repository.branches[parts["branch"]] = world.commit(asked, repository, start).oid
    return json_reply({})


@route("DELETE", _API + "/branch/{branch}")
def delete_branch(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    repository = world.repository(asked, parts["id"], write=True)
    if repository.branches.pop(parts["branch"], None) is None:
        raise Refused(refusal(404, "no such branch", "RevisionNotFound"))
    return json_reply({})


@route("POST", _API + "/tag/{revision}")
def create_tag(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    repository = world.repository(asked, parts["id"], write=True)
    name = json.loads(asked.body)["tag"]
    if name in repository.tags:
        raise Refused(refusal(409, f"Reference already exists: {name}"))
    repository.tags[name] = world.commit(asked, repository, parts["revision"]).oid
    return json_reply({})


@route("POST", "/api/repos/create")
def create_repo(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    if not world.known(asked):
        raise Refused(refusal(401, "Authentication is needed to write"))
    wanted = json.loads(asked.body)
    repo_id = f"{wanted.get('organization') or 'loopback'}/{wanted['name']}"
    address = {"url": f"{world.hub_url}/datasets/{repo_id}"}
    if repo_id in world.repositories:
        return json_reply({"error": "You already created this dataset repo", **address}, 409)
    repository = Repository(repo_id, private=bool(wanted.get("private")))
    repository.commit({}, branch="main", title="initial commit")
    world.repositories[repo_id] = repository
    return json_reply(address)


@route("GET", "/api/whoami-v2")
def whoami(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    if not world.known(asked):
        raise Refused(refusal(401, "Invalid username or password."))
    return json_reply({"type": "user", "name": "loopback", "orgs": []})
