"""Servers that sources read from, all on the loopback interface."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator

import fsspec
import pytest

from tests.hub import Hub, use_hub

BUCKET = "robots"
S3_START_S = 30.0


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A Hub that huggingface_hub in this process talks to."""
    with Hub() as hub, use_hub(hub):
        yield hub


@pytest.fixture
def memory_url() -> Iterator[str]:
    """An empty folder of fsspec's memory."""
    url = f"memory://{uuid.uuid4().hex}/set"
    yield url
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """Address of an S3 server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(address, server)
        yield address
    finally:
        server.terminate()
        server.wait()


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + S3_START_S
    while True:
        try:
            with urllib.request.urlopen(f"{address}/moto-api/", timeout=5):
                return
        except OSError:
            if server.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)


@pytest.fixture
def s3_url(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty folder in S3; s3fs finds address and keys by itself."""
    settings = {
        "AWS_ENDPOINT_URL": s3_server,
        "AWS_ACCESS_KEY_ID": "loopback",
        "AWS_SECRET_ACCESS_KEY": "loopback",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    system = fsspec.filesystem("s3")  # one for all tests: making it takes a second
    if not system.exists(BUCKET):
        system.mkdir(BUCKET)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"
