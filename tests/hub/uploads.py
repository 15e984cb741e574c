"""How the loopback Hub takes files and commits."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping

from tests.hub.content import Blob, Commit, is_lfs, make_blob
from tests.hub.exchange import Asked, Reply, json_reply, refusal
from tests.hub.routes import route
from tests.hub.world import Refused, World

_API = "/api/datasets/{id}"


@route("POST", _API + "/preupload/{revision}")
def preupload(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    repository = world.repository(asked, parts["id"], write=True)
    commit = world.commit(asked, repository, parts["revision"])
    modes = []
    for file in json.loads(asked.body)["files"]:
        mode = "lfs" if is_lfs(file["path"], file["size"]) else "regular"
        entry = {"path": file["path"], "uploadMode": mode, "shouldIgnore": False}
        known = commit.files.get(file["path"])
        if known is not None:
            entry["oid"] = known.sha256 if known.lfs else known.oid
        modes.append(entry)
    return json_reply({"files": modes, "commitOid": commit.oid})


@route("POST", "/datasets/{id}.git/info/lfs/objects/batch")
def lfs_batch(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    world.repository(asked, parts["id"], write=True)
    objects: list[dict[str, object]] = []
    for wanted in json.loads(asked.body)["objects"]:
        entry: dict[str, object] = {"oid": wanted["oid"], "size": wanted["size"]}
        if wanted["oid"] not in world.store:
            verify = f"{world.hub_url}/api/lfs/verify/{wanted['oid']}"
            upload = world.sign(f"/upload/{wanted['oid']}")
            entry["actions"] = {
                "upload": {"href": upload, "header": {}},
                "verify": {"href": verify, "header": {}},
            }
        objects.append(entry)
    return json_reply({"transfer": "basic", "objects": objects})


@route("PUT", "/upload/{oid}", origin="blobs")
def upload(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    world.check_signature(asked)
    if hashlib.sha256(asked.body).hexdigest() != parts["oid"]:
        raise Refused(Reply(400, body=b"<Code>BadDigest</Code>"))
    world.store[parts["oid"]] = make_blob("", asked.body, lfs=True)
    return Reply(200)


@route("POST", "/api/lfs/verify/{oid}")
def verify(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    stored = world.store.get(parts["oid"])
    if stored is None or stored.size != json.loads(asked.body)["size"]:
        raise Refused(refusal(404, "no such object"))
    return json_reply({})


@route("POST", _API + "/commit/{branch}")
def commit(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    repository = world.repository(asked, parts["id"], write=True)
    branch = parts["branch"]
    head = repository.branches.get(branch)
    if head is None:
        raise Refused(refusal(404, f"Invalid rev id: {branch}", "RevisionNotFound"))
    lines = [json.loads(line) for line in asked.body.splitlines() if line.strip()]
    header = next(line["value"] for line in lines if line["key"] == "header")
    wanted_parent = header.get("parentCommit")
    if wanted_parent is not None and not head.startswith(wanted_parent):
        text = f"A commit has happened since. Please refresh and try again: {branch} is at {head}"
        raise Refused(refusal(412, text))
    changes: dict[str, Blob | None] = {}
    for line in lines:
        changes.update(_change(world, repository.commits[head], line["key"], line["value"]))
    made = repository.commit(changes, branch=branch, title=header["summary"])
    address = f"{world.hub_url}/datasets/{repository.id}/commit/{made.oid}"
    return json_reply({"success": True, "commitOid": made.oid, "commitUrl": address})


def _change(
    world: World, head: Commit, key: str, value: Mapping[str, str]
) -> dict[str, Blob | None]:
    if key == "file":
        data = base64.b64decode(value["content"])
        return {value["path"]: make_blob(value["path"], data, lfs=False)}
    if key == "lfsFile":
        stored = world.store.get(value["oid"])
        if stored is None:
            text = "LFS pointer pointed to a file that does not exist"
            raise Refused(refusal(400, text))
        return {value["path"]: stored}
    if key == "deletedFile":
        return {value["path"]: None}
    if key == "deletedFolder":
        start = value["path"].rstrip("/") + "/"
        return {path: None for path in head.files if path.startswith(start)}
    return {}


@route("GET", _API + "/xet-write-token/{revision}")
def no_xet(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    # a commit made by Xet names only the file's SHA-256, by which the store cannot be searched
    raise Refused(refusal(404, "set HF_HUB_DISABLE_XET=1 to upload to a dataset here"))
