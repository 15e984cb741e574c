"""A module imports only from layers below its own and from its own folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "lerobot_stream"
LAYERS = {
    "span": 0,
    "errors": 0,
    "counted": 0,
    "source": 1,
    "mp4": 1,
    "dataset": 2,
    "sidecar": 3,
    "plan": 4,
    "stream": 5,
    "train": 6,
    "inspect": 6,
    "profile": 6,
    "cli": 7,
}
ALWAYS_BELOW = {"plan": {"span", "errors"}}
"""Folders that may import less than their layer allows."""
MAX_LINES = 400
FILES = sorted((ROOT / PACKAGE).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file names in an import, with the line; also inside functions."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            assert node.module is not None
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield (name if name in MODULES else node.module), node.lineno


def layer_folder(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def below_stream(module: str) -> bool:
    return LAYERS.get(layer_folder(module), LAYERS["stream"]) < LAYERS["stream"]


def ours(path: Path) -> list[tuple[str, int]]:
    return [(name, line) for name, line in imports_of(path) if name.split(".")[0] == PACKAGE]


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {PACKAGE}))
def test_a_module_imports_only_from_below_and_its_own_folder(module: str) -> None:
    folder = layer_folder(module)
    for name, line in ours(MODULES[module]):
        assert name != PACKAGE, f"{module}:{line} imports the package root"
        other = layer_folder(name)
        if other == folder:
            continue
        allowed = ALWAYS_BELOW.get(folder, {f for f, n in LAYERS.items() if n < LAYERS[folder]})
        assert other in allowed, f"{module}:{line} imports {name}"


@pytest.mark.parametrize("module", [m for m in sorted(MODULES) if below_stream(m)])
def test_nothing_below_stream_imports_torch(module: str) -> None:
    heavy = {name.split(".")[0] for name, _ in imports_of(MODULES[module])}
    assert not heavy & {"torch", "torchcodec"}


def test_imports_have_no_cycle() -> None:
    graph = {m: {name for name, _ in ours(path)} - {m} for m, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("module", sorted(MODULES))
def test_modules_stay_small(module: str) -> None:
    with MODULES[module].open() as lines:
        assert sum(1 for _ in lines) <= MAX_LINES


def test_every_folder_has_a_layer() -> None:
    assert {layer_folder(module) for module in MODULES} - {""} <= set(LAYERS)
