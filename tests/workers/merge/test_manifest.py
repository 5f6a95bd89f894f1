"""The manifest of an answer: small, the same for the same run, and without anything that differs from run to run."""

from __future__ import annotations

import random
import uuid
import zlib

import pytest

from shared.jobs import Job, State
from shared.jobs.codec import pack_small
from shared.models import Answer, Facet, Hit, JobRequest, LeafResult, LeafStatus, MergedHit, Node, Source, Summary
from shared.models.hits import StageTrace
from shared.models.manifest import Manifest
from shared.models.support import Citation
from shared.settings import Settings, load_settings
from tests.fakes.walked_jobs import route
from workers.merge.manifest import manifest_of

PARTS = (
    "bm25", "bm25_rank", "dense", "dense_rank", "fused", "lexical_fused", "lexical_words", "lexical_lead",
    "lexical_pairs", "lexical_title", "rerank_raw", "rerank", "leaf",
)  # fmt: skip
LEAVES, RESULTS = 8, 20


def job(job_id: str = "job-1", **request: object) -> Job:
    asked = JobRequest.model_validate({"question": "Why do queues lose messages?", **request})
    return Job(
        id=job_id, state=State.SUMMARISING, request=asked, created_at=1.0, updated_at=2.0, deadline_s=60.0, left_s=60.0
    )


def answer(**changes: object) -> Answer:
    """Of eight leaves, each result found by three of them: scores of many digits, passages of 40 documents."""
    draw = random.Random(7)
    chunks = [
        {
            "chunk_id": str(uuid.UUID(int=draw.getrandbits(128))),
            "doc_id": str(uuid.UUID(int=draw.getrandbits(128))),
            "path": f"docs/part-{draw.randrange(9)}/page-{draw.randrange(999)}-of-the-corpus.md",
            "title": f"Page {number} of the corpus",
            "version": f"{draw.getrandbits(64):016x}",
            "text": "A passage.",
        }
        for number in range(40)
    ]
    nodes = [
        Node(id=f"0.{n}", parent_id="0", level=1, facet=Facet.CORE, query=f"What does part {n} of the pipeline do?")
        for n in range(LEAVES)
    ]
    leaves = tuple(
        LeafResult(
            node_id=node.id, status=LeafStatus.DONE, candidates=100, mode="default", reranker="lexical:v2",
            index_version=3, stages=(StageTrace(stage="fusion", ms=draw.random(), hits=9),),
            hits=tuple(Hit(**chunk, score=draw.random()) for chunk in draw.sample(chunks, 5)),
        )
        for node in nodes
    )  # fmt: skip
    results = tuple(
        MergedHit(
            **chunk, score=draw.random(), parts={name: draw.random() * 20 for name in PARTS},
            sources=tuple(Source(node_id=f"0.{n}", facet="core", rank=n + 1, score=draw.random()) for n in range(3)),
        )
        for chunk in chunks[:RESULTS]
    )  # fmt: skip
    text = " ".join(f"Sentence {n} says {draw.getrandbits(64):x} of the matter. [{n + 1}]" for n in range(10))
    citations = tuple(
        Citation(number=n + 1, chunk_id=hit.chunk_id, doc_id=hit.doc_id, path=hit.path, title=hit.title)
        for n, hit in enumerate(results[:10])
    )
    made = Answer(
        job_id="job-1", question="Why do queues lose messages?", state="done", coverage="8 of 8 leaves answered",
        tree=tuple(nodes), leaves=leaves, results=results, route=route(), warnings=("b", "a"),
        summary=Summary(text=text, kind="extractive", citations=citations), timings_ms={"total": 12.0},
    )  # fmt: skip
    return made.model_copy(update=changes)


def test_at_eight_leaves_it_takes_less_than_8_kb_and_reads_back(settings: Settings) -> None:
    llm = load_settings(llm_model="m", llm_base_url="http://127.0.0.1:9/v1", rerank={"provider": "chat"})
    found = manifest_of(job(), answer(), llm)
    assert len(pack_small(found)) <= 8000
    assert len(zlib.compress(found.model_dump_json().encode())) <= 8000, "written out with its defaults, too"
    assert Manifest.model_validate_json(found.model_dump_json()) == found
    assert found.intact
    assert {"summarise", "rerank"} <= found.record.prompts.keys()
    assert set(manifest_of(job(), answer(), settings).record.prompts) == set(), "no LLM reads one"


def test_ids_times_costs_lanes_and_the_order_of_warnings_change_no_byte_of_the_record(settings: Settings) -> None:
    first = manifest_of(job(), answer(), settings)
    leaves = tuple(leaf.model_copy(update={"timings_ms": {}, "index_version": 9}) for leaf in answer().leaves)
    other = answer(job_id="job-2", leaves=leaves, warnings=("a", "b"), timings_ms={"total": 99.0})
    again = manifest_of(job("job-2", lane="batch", deadline_s=9, idempotency_key="k"), other, settings)
    assert again.digest == first.digest
    assert again.record.model_dump_json() == first.record.model_dump_json()
    assert (first.run.index_versions, again.run.index_versions) == ((3,), (9,))


@pytest.mark.parametrize(
    "changes", [{"warnings": ("c",)}, {"results": answer().results[1:]}, {"degraded_at": {"0.1": ("out_of_time",)}}]
)
def test_what_the_answer_is_decides_the_digest(settings: Settings, changes: dict[str, object]) -> None:
    assert manifest_of(job(), answer(**changes), settings).digest != manifest_of(job(), answer(), settings).digest


def test_documents_stand_by_path_with_their_content_versions_and_whether_they_are_cited(settings: Settings) -> None:
    found, given = manifest_of(job(), answer(), settings), answer()
    hits = [*given.results, *(hit for leaf in given.leaves for hit in leaf.hits)]
    assert found.versions == {hit.doc_id: hit.version for hit in hits}
    assert [one.path for one in found.record.documents] == sorted(one.path for one in found.record.documents)
    cited = {citation.doc_id for citation in given.summary.citations}
    assert {one.doc_id for one in found.record.documents if one.cited} == cited


def test_settings_that_differ_from_the_defaults_stand_with_their_values_and_secrets_do_not() -> None:
    own = load_settings(
        multi_query={"top_n_per_leaf": 9}, llm_model="m", llm_base_url="http://127.0.0.1:9/v1",
        llm_api_key="sk-1234567890", llm_api_key_for="http://127.0.0.1:9", embedding={"provider": "none"},
    )  # fmt: skip
    found = manifest_of(job(), answer(), own)
    assert found.record.settings.values == {"multi_query.top_n_per_leaf": 9}
    assert found.record.models["llm"].model == "m"
    assert "sk-1234567890" not in found.model_dump_json()
    assert "strategies.deep" not in found.record.settings.fingerprint, "no leaf was searched by it"


def test_who_is_told_and_whose_it_is_stand_in_no_record(settings: Settings) -> None:
    hook = "https://hooks.example/t0ken"
    found = manifest_of(job(webhook=hook, tenant="acme", top_n=5, queue_limit_s=9), answer(), settings)
    assert found.record.options == {"top_n": 5}
    assert "t0ken" not in found.model_dump_json()
    assert found.digest == manifest_of(job(top_n=5), answer(), settings).digest
