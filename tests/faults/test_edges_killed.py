"""A process killed (SIGKILL) while it joins edges, then the ingest again: the edges of an undisturbed one."""

from __future__ import annotations

import os
import signal
from itertools import count
from pathlib import Path

import pytest

from shared.models import RawDocument
from shared.settings import Settings
from shared.store.embedded import EmbeddedStore
from tests.fakes.stores import embedded, open_store
from tests.support.forks import FORKS
from workers.index.pipeline import Indexer

_FIRST = {"a": "the query planner [[b]]", "b": "# B\n\nthe log compaction", "c": "# Log compaction\n\n[[b]] [[a]]"}
#: Longer than the first ones, so that the sparse vectors are encoded again, too.
_LONG = "the query planner [[b]]" + " keeps a few words of rather many lengths" * 6
_SECOND = {"a": "no more", "c": "# Query planner\n\n[[a]]", "d": f"# Log compaction\n\n{_LONG}"}
_DEADLINE_S = 120


def run(folder: Path, *versions: dict[str, str], dies_at: int | None = None) -> None:
    """Ingest one version of the notes after the other; with `dies_at`, die at that write of the last finish."""
    settings = Settings.model_validate({"data_dir": folder, "hierarchy": {"enabled": False}})
    store = embedded(folder / "store" / settings.store.collection)
    indexer = Indexer(store, None, settings)
    for number, notes in enumerate(versions, 1):
        indexer.index([
            RawDocument(source="/n", path=f"n/{name}.md", identity=f"/n/{name}.md", suffix=".md", content=text.encode())
            for name, text in notes.items()
        ])  # fmt: skip
        if dies_at is not None and number == len(versions):
            _die_at(dies_at)
        indexer.finish()
    store.close()


def _die_at(step: int) -> None:
    writes, write = count(), EmbeddedStore._write

    def dying(self: EmbeddedStore, *operations: object) -> None:
        if next(writes) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, *operations)

    EmbeddedStore._write = dying  # type: ignore[method-assign, assignment]


def edges(folder: Path) -> dict[tuple[str, int], tuple[tuple[str, ...], int]]:
    store = open_store(Settings(data_dir=folder))
    try:
        return {(hit.path, hit.ordinal): (hit.mentions, hit.backlinks) for page in store.scroll(None) for hit in page}
    finally:
        store.close()


@pytest.mark.parametrize("step", [0, 1, 2])
def test_given_a_finish_killed_when_run_again_then_edges_are_those_of_an_undisturbed_one(
    tmp_path: Path, step: int
) -> None:
    run(tmp_path / "undisturbed", _FIRST, _FIRST | _SECOND)
    child = FORKS.Process(target=run, args=(tmp_path / "killed", _FIRST, _FIRST | _SECOND), kwargs={"dies_at": step})
    child.start()
    child.join(_DEADLINE_S)
    assert child.exitcode == -signal.SIGKILL
    assert edges(tmp_path / "killed") != edges(tmp_path / "undisturbed")
    run(tmp_path / "killed", _FIRST | _SECOND)
    assert edges(tmp_path / "killed") == edges(tmp_path / "undisturbed")
