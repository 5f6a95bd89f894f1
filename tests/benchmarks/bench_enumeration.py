"""A list of 50,000 members through the real stack: seconds, recall, and the memory of every pool and the client.

RAMIFY_TEST_MEMBERS sets another number; as many other documents stand among them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from orchestrator.client import Ramify
from shared.settings import Settings, load_settings
from tests.acceptance.conftest import launched
from tests.fakes.listing import noise, point, put
from tests.fakes.stores import open_store

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]
MEMBERS = int(os.environ.get("RAMIFY_TEST_MEMBERS", "50000"))
#: MB that a pool's own memory may grow by: a few leaves of 2,000 rows each, and what Python keeps of them.
MOST_GROWTH = 150
_MB = 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the planted members among others."""
    made = tmp_path_factory.mktemp("stack")
    settings: Settings = load_settings(data_dir=made)
    store = open_store(settings)
    put(store, noise(MEMBERS))
    said = "Note {} saw a quokka near the queue. 关于队列。"
    put(store, (point(f"member{n}", said.format(n), tags=("zebra", "斑马")) for n in range(MEMBERS)))
    store.optimize()
    store.close()
    return made


@pytest.fixture(scope="module")
def ramify(folder: Path) -> Iterator[Ramify]:
    yield from launched(folder)


def own_memory(process: psutil.Process) -> float:
    """MB that are the process's own: without the store's files, which the kernel maps and gives back."""
    info = process.memory_info()
    return (info.rss - info.shared) / _MB


def pools(folder: Path) -> dict[str, float]:
    """Own MB of each worker pool."""
    found: dict[str, float] = {}
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
            if process.environ().get("RAMIFY_DATA_DIR") == str(folder) and "-n" in line:
                name = line[line.index("-n") + 1].split("@")[0]
                found[name] = round(found.get(name, 0.0) + own_memory(process), 1)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(
    "question", ["List all notes tagged zebra", "列出所有带斑马标签的笔记", "Which notes mention a quokka?"]
)
def test_given_many_members_when_listed_then_all_come_and_memory_stays_flat(
    ramify: Ramify, folder: Path, question: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ramify.find("warm")
    before, own = pools(folder), psutil.Process()
    begun = time.perf_counter()
    job_id = ramify.submit(question, deadline_s=600)
    ramify.wait(job_id)
    seconds = time.perf_counter() - begun
    table, after = ramify.result(job_id).table, pools(folder)
    assert table is not None
    assert (table.scanned, table.partial, table.changed) == (table.planned, False, False)
    mine, titles = own_memory(own), set[str]()
    for row in ramify.rows(job_id):
        titles.add(row.title)
    grown = own_memory(own) - mine
    with capsys.disabled():
        growth = {name: round(size - before.get(name, 0.0), 1) for name, size in after.items()}
        print(f"\n{question}: {table.coverage}, {seconds:.1f} s; own MB {after}, grown by {growth}, client {grown:.1f}")
    assert titles == {f"member{number}" for number in range(MEMBERS)}
    assert all(size - before.get(name, 0.0) < MOST_GROWTH for name, size in after.items())
    assert grown < MOST_GROWTH
