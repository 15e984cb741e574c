"""The servers that sources are tested with serve whole datasets here."""

from tests.source.conftest import hub, memory_url, s3_server, s3_url

__all__ = ["hub", "memory_url", "s3_server", "s3_url"]
