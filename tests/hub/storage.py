"""How the loopback Hub answers about storage buckets."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from urllib.parse import quote

from tests.hub.content import Bucket, Stored, make_blob
from tests.hub.exchange import Asked, Reply, file_reply, json_reply, refusal
from tests.hub.routes import paged, route
from tests.hub.world import Refused, World

_API = "/api/buckets/{id}"


@route("POST", _API)
def create(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    if not world.known(asked):
        raise Refused(refusal(401, "Authentication is needed to write"))
    exists = parts["id"] in world.buckets
    private = bool(json.loads(asked.body or b"{}").get("private"))
    world.buckets.setdefault(parts["id"], Bucket(parts["id"], private=private))
    return json_reply({"url": f"{world.hub_url}/buckets/{parts['id']}"}, 409 if exists else 200)


@route("GET", _API)
def info(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    bucket = world.bucket(asked, parts["id"])
    return json_reply(
        {
            "id": bucket.id,
            "private": bucket.private,
            "createdAt": bucket.created,
            "size": sum(stored.blob.size for stored in bucket.files.values()),
            "totalFiles": len(bucket.files),
        }
    )


@route("GET", _API + "/tree")
@route("GET", _API + "/tree/{path}")
def tree(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    bucket = world.bucket(asked, parts["id"])
    prefix = parts.get("path", "")
    recursive = asked.query.get("recursive") in ("true", "True", "1")
    entries: list[dict[str, object]] = []
    folders: set[str] = set()
    for path, stored in sorted(bucket.files.items()):
        if not path.startswith(prefix):
            continue
        below = path[len(prefix) :].lstrip("/")
        if recursive or "/" not in below:
            entries.append(_entry(path, stored))
            continue
        folder = path[: len(path) - len(below)] + below.split("/", 1)[0]
        if folder not in folders:
            folders.add(folder)
            entries.append({"type": "directory", "path": folder, "uploadedAt": stored.mtime})
    return paged(world, asked, entries)


def _entry(path: str, stored: Stored) -> dict[str, object]:
    return {
        "type": "file",
        "path": path,
        "size": stored.blob.size,
        "xetHash": stored.xet_hash,
        "mtime": stored.mtime,
        "uploadedAt": stored.mtime,
    }


@route("POST", _API + "/paths-info")
def paths_info(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    bucket = world.bucket(asked, parts["id"])
    wanted = json.loads(asked.body)["paths"]
    return json_reply([_entry(path, bucket.files[path]) for path in wanted if path in bucket.files])


@route("GET HEAD", "/buckets/{id}/resolve/{path}")
def resolve(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    bucket = world.bucket(asked, parts["id"])
    stored = bucket.files.get(parts["path"])
    if stored is None:
        raise Refused(refusal(404, "Entry not found", "EntryNotFound"))
    token = f"{world.hub_url}/api/buckets/{bucket.id}/xet-read-token"
    about = {
        "X-Xet-Hash": stored.xet_hash,
        "X-Linked-Size": str(stored.blob.size),
        "X-Linked-Etag": f'"{stored.xet_hash}"',
        "Link": f'<{token}>; rel="xet-auth"',
    }
    if not world.redirect_buckets:
        reply = file_reply(asked, stored.blob, stored.xet_hash)
        return Reply(reply.status, {**reply.headers, **about}, reply.body, reply.whole)
    location = world.sign(f"/blobs/{stored.blob.sha256}/{parts['path']}")
    return Reply(302, {**about, "Location": location})


@route("GET", _API + "/xet-read-token")
@route("GET", _API + "/xet-write-token")
def xet_token(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    writes = asked.path.endswith("write-token")
    bucket = world.bucket(asked, parts["id"], write=writes)
    contents = [stored.blob.content for stored in bucket.files.values() if stored.blob.size]
    folder = world.cas.folder_to_write() if writes else world.cas.folder_to_read(contents)
    address = f"local://{quote(str(folder))}"
    expires = int(time.time()) + 3600
    reply = json_reply({"casUrl": address, "accessToken": "loopback", "exp": expires})
    return reply.with_headers(
        X_Xet_Cas_Url=address, X_Xet_Access_Token="loopback", X_Xet_Token_Expiration=str(expires)
    )


@route("POST", _API + "/batch")
def batch(world: World, asked: Asked, parts: Mapping[str, str]) -> Reply:
    bucket = world.bucket(asked, parts["id"], write=True)
    failed: list[dict[str, str]] = []
    lines = [json.loads(line) for line in asked.body.splitlines() if line.strip()]
    for line in lines:
        problem = _change(world, bucket, line)
        if problem:
            failed.append({"path": line["path"], "error": problem})
    done = len(lines) - len(failed)
    answer = {"success": not failed, "processed": len(lines), "succeeded": done, "failed": failed}
    return json_reply(answer, 422 if failed else 200)


def _change(world: World, bucket: Bucket, line: Mapping[str, str]) -> str | None:
    path = line["path"]
    if line["type"] == "deleteFile":
        return None if bucket.files.pop(path, None) else "no such file"
    data = _content(world, line["xetHash"])
    if data is None:
        return f"no content with hash {line['xetHash']}"
    blob = make_blob(path, data, lfs=True)
    world.store[blob.sha256] = blob
    bucket.put(path, blob, line["xetHash"])
    return None


def _content(world: World, xet_hash: str) -> bytes | None:
    for bucket in world.buckets.values():
        for stored in bucket.files.values():
            if stored.xet_hash == xet_hash:
                return stored.blob.read(0, stored.blob.size)
    return world.cas.find(xet_hash)
