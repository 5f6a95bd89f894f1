"""A shard's leaf and its columns: its rows lie in the job store, the LLM fills columns, the clock cuts it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from shared.jobs.tables import Tables
from shared.models import Facet, LeafStatus, Node
from shared.models.enumeration import Scan
from shared.models.plan import Shard
from shared.providers.llm.client import LLMReply
from shared.settings import Settings, load_settings
from shared.store import ChunkStore
from tests.fakes.listing import noise, point, put
from workers.enumerate.shard import fill_columns, read_shard, record_shard

NODE = Node(id="0.1", parent_id="0", level=1, facet=Facet.CORE, query="part 1 of 1", shard=Shard(number=1, of=1))
REPLY = '<rows><row id="1"><field column="1">Ada</field></row><row id="2"><field column="1">Eve</field></row></rows>'


@pytest.fixture
def settings(redis_url: str, tmp_path: Path) -> Settings:
    llm = {"llm_base_url": "http://localhost:9/v1", "llm_model": "fake"}
    return load_settings(redis={"url": redis_url}, data_dir=tmp_path, enumeration={"page_rows": 10}, **llm)


@pytest.fixture
def step(settings: Settings, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A step of a job that goes on; `done` is what its leaf recorded."""
    client = redis.Redis.from_url(settings.redis.url.get_secret_value())
    made = SimpleNamespace(done=[], spent=[])
    asked = SimpleNamespace(tenant="default")
    made.job = SimpleNamespace(id=f"leaf-{abs(hash(request.node.name)):x}", terminal=False, request=asked)
    made.jobs = SimpleNamespace(
        client=client,
        settings=settings,
        job=lambda _: made.job,
    )
    made.record_leaf = made.done.append
    made.annotate = lambda cost, warnings: made.spent.append((cost, list(warnings)))
    yield made
    client.close()


class Scripted:
    def complete(
        self, prompt: str, *, timeout_s: float, max_tokens: int | None = None, check: object = None
    ) -> LLMReply:
        assert "Run by Ada" in prompt
        return LLMReply(text=REPLY, calls=1)


def test_given_columns_when_a_leaf_runs_then_the_llm_fills_those_that_stand_in_the_text(
    store: ChunkStore, settings: Settings, step: Any
) -> None:
    put(store, [point("a", "Run by Ada."), point("b", "Run by nobody."), point("c", "Owner: Carl")])
    tables = Tables(step.jobs.client, settings)
    tables.put_scan(step.job.id, Scan(columns=("owner",), documents=3))
    read, columns_missing = read_shard(step, NODE, SimpleNamespace(store=lambda _: store), 30.0)  # type: ignore[arg-type]
    assert columns_missing
    record_shard(step, NODE, read, fill_columns(step, NODE, Scripted(), 30.0))
    rows = tables.page(step.job.id, NODE.id, 0)
    assert [row.fields for row in rows] == [{"owner": "Ada"}, {}, {"owner": "Carl"}]
    report = tables.report(step.job.id, NODE.id)
    assert report is not None
    assert (report.scanned, report.by, report.dropped) == (3, "llm", 1)
    assert tables.excerpts(step.job.id, NODE.id).rows == ()
    assert [(leaf.node_id, leaf.status, leaf.candidates) for leaf in step.done] == [("0.1", LeafStatus.DONE, 3)]
    assert step.spent[0][0].llm_calls == 1


def test_given_no_time_when_a_leaf_runs_then_it_keeps_what_it_read_and_says_it_was_cut(
    store: ChunkStore, settings: Settings, step: Any
) -> None:
    put(store, noise(500))
    tables = Tables(step.jobs.client, settings)
    tables.put_scan(step.job.id, Scan(documents=500))
    begun = time.monotonic()
    read, columns_missing = read_shard(step, NODE, SimpleNamespace(store=lambda _: store), 0.0)  # type: ignore[arg-type]
    assert not columns_missing
    record_shard(step, NODE, read)
    assert time.monotonic() - begun < 10
    report = tables.report(step.job.id, NODE.id)
    assert report is not None
    assert report.cut
    assert 0 < report.scanned < 500
    assert step.done[0].status is LeafStatus.DONE
