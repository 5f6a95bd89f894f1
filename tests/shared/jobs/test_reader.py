"""From what stands in a real Redis to the answer that is read from it: forced merges, bound leaves, old answers."""

from __future__ import annotations

import json
import zlib
from types import SimpleNamespace
from typing import Any

import redis

from shared.jobs import Job, JobReader, JobStore, new_id
from shared.jobs.keys import JobKeys
from shared.language.routing import route_by_rules
from shared.models import Answer, Facet, Hit, JobRequest, LeafResult, LeafStatus, MergedHit, MergedPool, Node
from shared.models.route import Route
from shared.tasks.task_run import TaskRun
from workers.merge.answer import all_leaves, build_answer, run_aggregator
from workers.merge.tree import merge_tree

QUESTION = "Where was the founder of Northwind born?"
NODES = [
    Node(id="0.0", parent_id="0", level=1, facet=Facet.ORIGINAL, query=QUESTION),
    Node(id="0.1", parent_id="0", level=1, facet=Facet.CORE, query="Who founded Northwind?", needed_by=("0.2",)),
    Node(id="0.2", parent_id="0", level=1, facet=Facet.CORE, query="Where was #1 born?", depends_on=("0.1",)),
]


def searching(store: JobStore, aggregator: str = "reasoning") -> Job:
    """A job whose three leaves are known."""
    job_id = new_id()
    store.enqueue([(job_id, JobRequest(question=QUESTION))])
    store.start_planning(job_id, "t")
    routed = route_by_rules(QUESTION)
    store.route(
        job_id, Route(**dict(routed), row="multi_hop", planner="nested", strategy="default", aggregator=aggregator)
    )
    store.start_searching(job_id, NODES)
    job = store.job(job_id)
    assert job is not None
    return job


def record(store: JobStore, job: Job, node_id: str, text: str) -> None:
    hit = Hit(chunk_id=f"c{node_id}", doc_id=node_id, path=f"{node_id}.md", title="Notes", text=text, score=1)
    store.record_leaf(job.id, LeafResult(node_id=node_id, status=LeafStatus.DONE, hits=(hit,), reranker="lexical:v1"))


def answered(store: JobStore, job: Job) -> Answer:
    """The answer of a forced merge, as it is read back."""
    assert store.start_merging(job.id, "t", force=True)
    results = store.results(job.id)
    pool = merge_tree(list(results.values()), store.nodes(job.id), store.settings.multi_query, 20)
    store.put_pool(job.id, pool)
    assert store.start_summarising(job.id, pool)
    now: Any = store.job(job.id)
    leaves = all_leaves(store.nodes(job.id), store.leaf_states(job.id), results)
    step = TaskRun(SimpleNamespace(name="t"), store, now, SimpleNamespace())  # type: ignore[arg-type]
    name, made = run_aggregator(step, pool, leaves, store.nodes(job.id), llm=None)
    store.annotate(job.id, made.cost, made.warnings)
    answer = build_answer(step, pool, made, leaves, store.nodes(job.id)).model_copy(update={"aggregator": name})
    assert store.finish(now, answer)
    read = JobReader(store.client).answer(job.id)
    assert read == answer
    return answer


def test_given_an_identifier_when_nothing_names_it_then_the_answer_or_a_warning_says_so(store: JobStore) -> None:
    """It is the answer where the question is about it, a warning where it stands beside what is asked."""
    hit = MergedHit(chunk_id="c", doc_id="d", path="p.md", title="INC-17", text="A full disk was there.", score=1)
    pool = MergedPool(hits=(hit,))
    beside, unnamed = "Was it a full disk there at noon, ABC-4711?", "No document names ABC-4711."
    for question, text, warnings in (
        ("What happened in INC-99999?", "No document names INC-99999.", ()),
        (beside, f"Not found: {beside}\n\nThe nearest passages:\nA full disk was there. [1]", (unnamed,)),
    ):
        job_id = new_id()
        store.enqueue([(job_id, JobRequest(question=question))])
        job: Any = store.job(job_id)
        step = TaskRun(SimpleNamespace(name="t"), store, job, SimpleNamespace())  # type: ignore[arg-type]
        made = run_aggregator(step, pool, [], {}, llm=None)[1]
        assert (made.summary.text, made.warnings) == (text, warnings)


def test_given_a_deadline_while_a_leaf_waits_when_answered_then_it_says_for_what_it_waited(store: JobStore) -> None:
    job = searching(store)
    record(store, job, "0.0", "The founder of Northwind was born by the sea.")
    answer = answered(store, job)
    assert (answer.aggregator, answer.partial, answer.coverage) == ("reasoning", True, "1 of 3 leaves answered")
    first, second = answer.steps
    assert first.gap == "it did not answer: had not answered when the job's time was up"
    assert second.gap == (
        "it did not answer: was still waiting for 0.1 ('Who founded Northwind?') when the job's time was up"
    )
    assert answer.summary.text.split("\n") == [
        "Not found: Who founded Northwind?",
        "Not found: Where was #1 born?",
        "The founder of Northwind was born by the sea. [1]",
    ]


def test_given_a_bound_leaf_when_answered_then_what_was_written_into_it_is_read_from_the_store(store: JobStore) -> None:
    job = searching(store)
    record(store, job, "0.0", "The founder of Northwind was born by the sea.")
    record(store, job, "0.1", "Ada Marsh founded Northwind in 1990.")
    bound = NODES[2].model_copy(
        update={
            "query": "Where was Ada Marsh born?",
            "asked": "Where was #1 born?",
            "bound_by": "answer",
            "written": {"0.1": ("Ada Marsh",)},
        }
    )
    assert store.bind(job.id, bound)
    record(store, job, "0.2", "Ada Marsh was born in Whitby.")
    answer = answered(store, job)
    first, second = answer.steps
    assert (first.found, first.found_by, second.after) == (("Ada Marsh",), "answer", (1,))
    assert answer.summary.text.startswith("Ada Marsh was born in Whitby.")
    assert not answer.partial


def test_given_an_aggregator_that_this_worker_lacks_when_answered_then_plainly_with_a_warning(store: JobStore) -> None:
    job = searching(store, "of_a_plugin")
    record(store, job, "0.0", "The founder of Northwind was born by the sea.")
    answer = answered(store, job)
    assert (answer.aggregator, answer.steps) == ("simple", ())
    assert any("aggregator 'of_a_plugin' is not known here" in warning for warning in answer.warnings)


def test_given_an_answer_of_an_older_release_when_read_then_it_is_whole(store: JobStore, client: redis.Redis) -> None:
    old = {
        "job_id": "j" * 12, "question": "q", "state": "done", "coverage": "1 of 1 leaves answered",
        "summary": {"text": "Yes. [1]", "kind": "extractive",
                    "citations": [{"number": 1, "chunk_id": "c", "path": "p", "title": "t", "quote": "Yes."}]},
        "tree": [{"id": "0.1", "level": 1, "facet": "core", "query": "Who is Ada?", "asked": "Who is #1?",
                  "bound_by": "names"}],
    }  # fmt: skip
    client.set(JobKeys("j" * 12).answer, zlib.compress(json.dumps(old).encode()))
    read = JobReader(client).answer("j" * 12)
    assert read is not None
    assert (read.summary.text, read.aggregator, read.steps, read.table) == ("Yes. [1]", "simple", (), None)
    assert read.tree[0].written == {}
