"""A dry run of an ingest, over a real Redis, real queues and an embedded store: it tells, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import redis

from orchestrator.client import Ramify
from shared.settings import Settings
from tests.fakes.index_pool import IndexPool


def counts(client: Ramify, pool: IndexPool, folder: Path, **options: bool) -> dict[str, int]:
    with pool.serving():
        steps = list(client.ingest(folder, **options))  # type: ignore[arg-type]
    pool._over.clear()
    found = client.ingest_result(steps[-1].job_id).counts
    return {name: getattr(found, name) for name in ("added", "changed", "unchanged", "removed", "failed", "chunks")}


def test_it_tells_what_would_be_added_changed_and_removed_and_writes_nothing(
    client: redis.Redis, settings: Settings, tmp_path: Path
) -> None:
    folder, pool = tmp_path / "docs", IndexPool(client, settings)
    folder.mkdir()
    for name in ("same", "changes", "goes"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThis is {name}.\n")
    nothing = dict.fromkeys(("added", "changed", "unchanged", "removed", "failed", "chunks"), 0)
    with Ramify(settings) as ramify:
        assert counts(ramify, pool, folder, dry_run=True) == {**nothing, "added": 3}
        assert pool.store.info() is None
        counts(ramify, pool, folder)
        before = pool.store.info()
        (folder / "changes.md").write_text("# changes\n\nThis is another text.\n")
        (folder / "goes.md").unlink()
        (folder / "new.md").write_text("# new\n\nThis is new.\n")
        told = counts(ramify, pool, folder, dry_run=True, prune=True)
        assert told == {**nothing, "added": 1, "changed": 1, "unchanged": 1, "removed": 1}
        assert pool.store.info() == before
        done = counts(ramify, pool, folder, prune=True)
        assert {**done, "chunks": 0} == told
    pool.close()
