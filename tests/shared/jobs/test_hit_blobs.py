"""Hits in Redis: each chunk once while a job is open, once in its answer afterwards, and nothing else is left."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import redis

from shared.jobs import JobReader, JobStore, codec, hit_blobs
from shared.jobs.keys import JobKeys, new_id
from shared.jobs.note import Note
from shared.models import Answer, Cost, Facet, Hit, JobRequest, LeafResult, MergedHit, MergedPool, Node, SearchResult
from shared.models.hits import Effect, Source, StageTrace, Via, as_half_floats

VIA = Via(chunk_id="c0", bridge="zebra", hop=1, how="name", precedence=1)
HITS = tuple(
    Hit(
        chunk_id=f"c{n}", doc_id="d", path=f"n/{n}.md", title=f"T{n}", text=f"关于 zebra {n} " * 40, heading="H",
        date="2025-01-02", tags=("a", "b"), part="timeline", backlinks=n, refs=("title:x",), score=1 / 3**n,
        snippet="…zebra", via=VIA if n else None, parts={"bm25": 1 / (n + 7), "rerank": 0.1},
        explain=(Effect(stage="fusion", effect=0.1, detail={"rank": 1.0, "by": "x"}),), vector=as_half_floats((0.1, n)),
    )
    for n in range(4)
)  # fmt: skip
MERGED = tuple(
    MergedHit(**dict(hit), sources=(Source(node_id="0.1", facet="core", rank=2, score=0.3),)) for hit in HITS
)


def both(value: Any) -> Any:
    """What comes back of it, from the memory of this process and, in another one, from what stands beside."""
    blob, chunks = hit_blobs.pack(value)
    found = []
    for _ in range(2):
        hit_blobs._read.clear()
        found.append(hit_blobs.unpack(blob, type(value), lambda names: [chunks.get(name) for name in names]))
        found.append(hit_blobs.unpack(blob, type(value), never))
    assert found[0] == found[1] == found[2]
    return found[0]


def never(names: list[str]) -> Sequence[object]:
    raise AssertionError(f"{names} are known")


@pytest.mark.parametrize(
    "value",
    [
        SearchResult(mode="deep", hits=HITS, stages=(StageTrace(stage="fusion", ms=1.5, hits=4),), candidates=9),
        LeafResult(node_id="0.1", status="done", hits=HITS, stages=(StageTrace(stage="rerank", ms=0.3, hits=4),)),
        LeafResult(node_id="0.1", status="failed", error="no store"),
        MergedPool(hits=MERGED, per_leaf={"0.1": ("c0",)}),
    ],
)
def test_given_hits_when_packed_then_they_come_back_as_they_were_and_the_blob_holds_no_text(value: Any) -> None:
    assert both(value) == value
    assert "zebra 1" not in zlib.decompress(hit_blobs.pack(value)[0]).decode()


def test_given_an_answer_when_packed_then_it_comes_back_and_each_text_stands_in_it_once() -> None:
    plain = [hit.model_copy(update={"vector": ()}) for hit in HITS]
    merged = tuple(hit.model_copy(update={"vector": ()}) for hit in MERGED)
    leaves = tuple(LeafResult(node_id=f"0.{n}", status="done", hits=tuple(plain)) for n in range(3))
    answer = Answer(job_id="j", question="q", state="done", coverage="all", results=merged, leaves=leaves)
    blob = hit_blobs.pack_answer(answer)
    assert hit_blobs.unpack_answer(blob) == answer
    assert zlib.decompress(blob).decode().count(plain[2].text) == 1
    assert hit_blobs.unpack_answer(codec.pack(answer)) == answer, "as earlier releases stored it"
    assert hit_blobs.unpack(codec.pack(leaves[0]), LeafResult, never) == leaves[0]


def test_given_snippets_that_an_answer_tells_already_when_packed_then_they_are_not_stored_again() -> None:
    shown = ("关于 zebra 1 关于 zebra…", "zebra 1 关于", "of no text…", "…", "", f"{HITS[1].text.strip()}…")
    hits = tuple(HITS[1].model_copy(update={"snippet": snippet, "vector": ()}) for snippet in shown)
    leaves = (LeafResult(node_id="0.1", status="done", hits=hits),)
    answer = Answer(job_id="j", question="q", state="done", coverage="all", leaves=leaves)
    blob = hit_blobs.pack_answer(answer)
    assert hit_blobs.unpack_answer(blob) == answer
    (stored,) = json.loads(zlib.decompress(blob))["leaves"]
    assert [hit.get("snippet", "") for hit in stored["hits"]] == ["", "", "of no text…", "…", "", ""]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data["hits"][1].pop("score"),
        lambda data: data["hits"][1].update(score="much"),
        lambda data: data["hits"][1].update(ref=7),
        lambda data: data["hits"][1].update(ref="f" * 32),
        lambda data: data.update(hits={"a": 1}),
        lambda data: data["hits"].append(5),
        lambda data: data.update(status=7),
    ],
)
def test_given_a_blob_that_somebody_has_changed_when_read_then_it_is_refused(
    spoil: Callable[[dict[str, Any]], None],
) -> None:
    blob, chunks = hit_blobs.pack(LeafResult(node_id="0.1", status="done", hits=HITS))
    data = json.loads(zlib.decompress(blob))
    spoil(data)
    with pytest.raises(ValueError):
        hit_blobs.unpack(codec.compressed(data), LeafResult, lambda names: [chunks.get(name) for name in names])


def test_given_a_chunk_that_was_changed_beside_its_blob_when_read_then_no_other_reader_gets_it() -> None:
    value = LeafResult(node_id="0.1", status="done", hits=HITS[:1])
    blob, chunks = hit_blobs.pack(value)
    (right,) = chunks.values()
    forged = codec.compressed(json.loads(zlib.decompress(right)) | {"text": "forged"})
    hit_blobs._read.clear()
    assert hit_blobs.unpack(blob, LeafResult, lambda _: [forged]).hits[0].text == "forged", "as any blob of its job"
    assert hit_blobs.unpack(blob, LeafResult, lambda _: [right]) == value


def test_given_a_leaf_that_was_read_when_read_again_then_neither_its_blob_nor_its_chunks_are_read() -> None:
    value = LeafResult(node_id="0.2", status="done", hits=HITS[:2])
    blob, chunks = hit_blobs.pack(value)
    first = hit_blobs.unpack(blob, LeafResult, lambda names: [chunks[name] for name in names])
    known = set[str]()
    assert hit_blobs.unpack(blob, LeafResult, lambda _: [], known) is first
    assert known == set(chunks)


@pytest.fixture
def job_id(store: JobStore) -> str:
    """Searching, with one leaf searched and one recorded."""
    made = new_id()
    store.enqueue([(made, JobRequest(question="why?"))])
    store.start_planning(made, "t")
    nodes = [Node(id=f"0.{n}", parent_id="0", level=1, facet=Facet.CORE, query="q") for n in range(2)]
    store.start_searching(made, nodes)
    store.put_candidates(made, "0.0", SearchResult(mode="hybrid", hits=HITS))
    store.put_candidates(made, "0.1", SearchResult(mode="hybrid", hits=HITS))
    store.record_leaf(made, LeafResult(node_id="0.1", status="done", hits=HITS[:2]))
    return made


def test_the_event_of_a_leaf_has_the_score_of_its_best_hit(client: redis.Redis, job_id: str) -> None:
    told = [event.data for event in JobReader(client).events(job_id, 0.05) if event.data.get("status") == "done"]
    assert [(data["id"], data["hits"], data["score"]) for data in told] == [("0.1", "2", f"{HITS[0].score:.6g}")]


def test_given_a_job_when_it_is_done_then_only_its_answer_is_left_and_its_leaves_are_read_from_that(
    store: JobStore, client: redis.Redis, job_id: str
) -> None:
    keys = JobKeys(job_id)
    assert len({*client.hkeys(keys.chunks)} - {b""}) == len(HITS), "each once, though two leaves have found them"
    found = store.candidates(job_id, "0.0")
    assert found is not None
    store.record_leaf(job_id, LeafResult(node_id="0.0", status="done", hits=found.hits))
    leaves = store.results(job_id)
    assert {name: leaf.hits for name, leaf in leaves.items()} == {"0.0": HITS, "0.1": HITS[:2]}
    store.start_merging(job_id, "t")
    store.put_pool(job_id, MergedPool(hits=MERGED))
    assert store.pool(job_id) == MergedPool(hits=MERGED)
    store.start_summarising(job_id, MergedPool(hits=MERGED[:1]))
    job = store.job(job_id)
    assert job is not None
    answer = Answer(
        job_id=job_id, question="q", state="done", coverage="", leaves=tuple(leaves.values()), results=MERGED[:1]
    )
    assert store.finish(job, answer)
    assert not client.exists(keys.chunks, keys.results, keys.candidates, keys.pool)
    assert JobReader(client).answer(job_id) == answer
    assert store.results(job_id) == leaves
    assert store.results(job_id, ["0.1"]) == {"0.1": leaves["0.1"]}


def test_given_chunks_that_are_lost_when_read_then_the_leaf_is_as_one_that_is_lost(
    store: JobStore, client: redis.Redis, job_id: str
) -> None:
    client.delete(JobKeys(job_id).chunks)
    hit_blobs._read.clear()
    assert store.candidates(job_id, "0.0") is None
    assert store.results(job_id)["0.1"].status == "failed"


def test_given_a_redis_that_has_lost_what_a_process_knows_when_left_again_then_it_is_whole_and_counted_once(
    store: JobStore, client: redis.Redis, job_id: str
) -> None:
    """As behind a failover, which may take the last second with it."""
    keys, found = JobKeys(job_id), SearchResult(mode="hybrid", hits=HITS)
    note = Note("0.0", Cost(llm_calls=1), ("the disk is full",))

    def lose() -> JobStore:
        """Returns the store of another process, which knows nothing."""
        client.delete(keys.chunks, keys.warnings)
        hit_blobs._read.clear()
        return JobStore(client, store.settings)

    store.annotate(job_id, warnings=note.warnings)
    other = lose()
    assert store.put_candidates(job_id, "0.0", found, note)
    assert other.candidates(job_id, "0.0") == found
    assert client.lrange(keys.warnings, 0, -1) == [b"the disk is full"]
    other = lose()
    assert store.record_leaf(job_id, LeafResult(node_id="0.0", status="done", hits=HITS), note) == 0
    assert other.results(job_id, ["0.0"])["0.0"].hits == HITS
    store.start_merging(job_id, "t")
    for leave in (store.put_pool, store.start_summarising):
        other = lose()
        assert leave(job_id, MergedPool(hits=MERGED), note)
        assert other.pool(job_id) == MergedPool(hits=MERGED)
    assert JobReader(client).status(job_id).cost.llm_calls == 4


def test_given_thousands_of_hits_when_kept_then_all_come_back(store: JobStore, job_id: str) -> None:
    many = tuple(HITS[0].but(chunk_id=f"m{n}") for n in range(4500))
    assert store.put_candidates(job_id, "0.0", SearchResult(mode="hybrid", hits=many))
    hit_blobs._read.clear()
    found = store.candidates(job_id, "0.0")
    assert found is not None
    assert [hit.chunk_id for hit in found.hits] == [hit.chunk_id for hit in many]


def test_given_chunks_that_stand_in_the_job_when_its_leaf_is_recorded_then_they_are_not_sent_again(
    store: JobStore, client: redis.Redis, job_id: str
) -> None:
    """Also by a worker that has only read them."""
    hit = HITS[0].but(chunk_id="large", text=secrets.token_hex(100_000))
    store.put_candidates(job_id, "0.0", SearchResult(mode="hybrid", hits=(hit,)))
    reader = JobStore(client, store.settings)
    found = reader.candidates(job_id, "0.0")
    assert found is not None
    before = client.info("stats")["total_net_input_bytes"]
    assert reader.record_leaf(job_id, LeafResult(node_id="0.0", status="done", hits=found.hits)) == 0
    assert client.info("stats")["total_net_input_bytes"] - before < 20_000
    assert JobStore(client, store.settings).results(job_id)["0.0"].hits == (hit,)


def test_given_a_warning_that_could_not_be_sent_when_it_is_said_again_then_it_is_kept(
    store: JobStore, client: redis.Redis, job_id: str
) -> None:
    keys = JobKeys(job_id)
    client.rename(keys.job, "elsewhere")
    client.set(keys.job, "of another program")
    with pytest.raises(redis.ResponseError):
        store.annotate(job_id, warnings=["the disk is full"])
    client.rename("elsewhere", keys.job)
    for _ in range(2):
        store.annotate(job_id, warnings=["the disk is full"])
    assert client.lrange(keys.warnings, 0, -1) == [b"the disk is full"]
