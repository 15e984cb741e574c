"""Which function answers which address."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import unquote

from tests.hub.exchange import Asked, Origin, Reply, json_reply, refusal
from tests.hub.world import Refused, World

Answer = Callable[[World, Asked, Mapping[str, str]], Reply]
"""Answers one kind of request; the mapping holds the unquoted parts of the path."""

_ROUTES: list[tuple[Origin, frozenset[str], re.Pattern[str], Answer]] = []


def route(methods: str, pattern: str, *, origin: Origin = "hub") -> Callable[[Answer], Answer]:
    """Answer requests to an address by the function below.

    Args:
        methods: HTTP methods, separated by blanks.
        pattern: The path; ``{name}`` is one part of it, ``{id}`` is ``OWNER/NAME`` and
            ``{path}`` is the rest.
        origin: On which host.
    """
    expression = re.escape(pattern).replace(r"\{", "{").replace(r"\}", "}")
    expression = expression.replace("{id}", r"(?P<id>[^/]+/[^/]+?)")
    expression = expression.replace("{path}", r"(?P<path>.+)")
    expression = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", expression)

    def register(answer: Answer) -> Answer:
        _ROUTES.append((origin, frozenset(methods.split()), re.compile(expression), answer))
        return answer

    return register


def answer(world: World, asked: Asked) -> Reply:
    """Answer one request."""
    for origin, methods, pattern, function in _ROUTES:
        match = pattern.fullmatch(asked.raw_path)
        if match and origin == asked.origin and asked.method in methods:
            parts = {name: unquote(text) for name, text in match.groupdict().items()}
            try:
                return function(world, asked, parts)
            except Refused as refused:
                return refused.reply
    return refusal(404, f"no such address: {asked.method} {asked.origin} {asked.path}")


def paged(world: World, asked: Asked, entries: list[dict[str, object]]) -> Reply:
    """Answer with one page of a listing and a link to the next."""
    start = int(asked.query.get("cursor", "0"))
    stop = start + world.page_size
    reply = json_reply(entries[start:stop])
    if stop >= len(entries):
        return reply
    kept = [f"{k}={v}" for k, v in asked.query.items() if k != "cursor"]
    address = f"{world.hub_url}{asked.raw_path}?{'&'.join([*kept, f'cursor={stop}'])}"
    return reply.with_headers(Link=f'<{address}>; rel="next"')
