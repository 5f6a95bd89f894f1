"""How fast a tree is ingested, and how much faster when nothing has changed. Whole stack, keyword search only.

RAMIFY_TEST_TREE names a folder; without it, 5,000 files are made of the Python library's own sources.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.client import Ramify
from tests.acceptance.conftest import launched

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]
FILES = 5000
LEAST_RATIO = 20


@pytest.fixture
def ramify(tmp_path: Path) -> Iterator[Ramify]:
    yield from launched(tmp_path / "stack")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    if named := os.environ.get("RAMIFY_TEST_TREE"):
        return Path(named)
    sources = sorted(Path(sysconfig.get_paths()["purelib"]).rglob("*.py"))
    sources += sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py"))
    for number, source in enumerate(sources[:FILES]):
        target = tmp_path / "tree" / f"part{number % 50}" / f"{number}_{source.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    return tmp_path / "tree"


def _timed(ramify: Ramify, tree: Path) -> float:
    began = time.monotonic()
    last = list(ramify.ingest(tree))[-1]
    seconds = time.monotonic() - began
    parts = ", ".join(f"{name} {spent:.1f} s" for name, spent in sorted(last.parts.items(), key=lambda part: -part[1]))
    print(f"{last.total} files in {seconds:.2f} s, {last.total / seconds:.0f} files/s; {parts}")
    return seconds


def test_a_second_run_with_nothing_changed_is_twenty_times_faster(ramify: Ramify, tree: Path) -> None:
    first = _timed(ramify, tree)
    second = min(_timed(ramify, tree) for _ in range(2))
    print(f"ratio {first / second:.0f}")
    assert first / second >= LEAST_RATIO
