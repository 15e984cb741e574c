"""A page that shows a dataset: one file of HTML that asks for nothing else."""

from __future__ import annotations

import html
import json
from importlib import resources

from lerobot_stream.inspect.page_data import describe_page
from lerobot_stream.inspect.page_plan import plan_thumbnails
from lerobot_stream.inspect.pictures import Pictures
from lerobot_stream.inspect.summary import Summary
from lerobot_stream.inspect.thumbnails import PER_CAMERA, Thumbnails, make_thumbnails
from lerobot_stream.source.base import Source

_TEMPLATE = "report.html"
_TITLE, _DATA = "{{ title }}", "{{ data }}"
_MAX_ROW_BYTES = 32 << 20
"""Largest row groups that are fetched for three pictures inside them."""


def make_page(summary: Summary, source: Source, *, max_thumbnails: int) -> str:
    """Make the page.

    Args:
        summary: What was found.
        source: Where the pictures are.
        max_thumbnails: Most pictures in it.

    Raises:
        StreamError: The source fails.
    """
    return render_page(summary, fetch_thumbnails(summary, source, max_thumbnails))


def fetch_thumbnails(summary: Summary, source: Source, most: int) -> list[Thumbnails]:
    """Decode the pictures of as many episodes as ``most`` pictures allow."""
    keys = summary.info.camera_keys
    if summary.rows is None or summary.videos is None or not keys:
        return []
    pictures = Pictures(
        source,
        summary.info,
        summary.table,
        summary.rows,
        summary.videos,
        max_row_bytes=_MAX_ROW_BYTES,
    )
    cells = {
        number: [key for key in keys if pictures.has(number, key)]
        for number in range(len(summary.table))
    }
    suspects = {
        episode
        for finding in summary.findings
        if finding.severity != "info"
        for episode in finding.episodes
    }
    indices = summary.table.episode_index.tolist()
    chosen = plan_thumbnails(
        [number for number, seen in cells.items() if seen],
        {number for number, episode in enumerate(indices) if episode in suspects},
        pictures=PER_CAMERA * len(keys),
        most=most,
    )
    wanted = [(number, key) for number in chosen for key in cells[number]]
    return make_thumbnails(pictures, wanted, summary.table.length.tolist())


def render_page(summary: Summary, thumbnails: list[Thumbnails]) -> str:
    """Fill the template."""
    template = resources.files("lerobot_stream.inspect").joinpath(_TEMPLATE)
    data = json.dumps(describe_page(summary, thumbnails), ensure_ascii=False, separators=(",", ":"))
    # Inside a script element nothing may look like the end of one.
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    title = html.escape(summary.identity.repo_id)
    before, after = template.read_text(encoding="utf-8").split(_DATA)
    return before.replace(_TITLE, title) + data + after.replace(_TITLE, title)
