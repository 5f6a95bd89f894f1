"""Questions as jobs: what is submitted, what becomes of each end, how a corpus gets in once. The client is a fake."""

import json

import pytest

from orchestrator.documents.ingest import Progress
from orchestrator.evaluation.dataset import load_dataset
from orchestrator.evaluation.pipeline import (
    IN_FLIGHT,
    Pipeline,
    document_ids,
    ensure_ingested,
    namespace_of,
    outcome_of,
)
from orchestrator.evaluation.runner import ArmQuestion, run_arms
from shared.errors import RamifyError
from shared.models import DocumentOutcome, DocumentStatus, MergedHit, SearchResult
from shared.models.enumeration import ListRow, ListTable
from shared.settings import load_settings
from tests.fakes.labelled import QUESTIONS, write_set
from tests.fakes.ramify_client import FakeRamify, answer, hit


class EvalClient(FakeRamify):
    """Answers with two chunks of d2, then one of d1; a corpus is empty until it is ingested."""

    def __init__(self, tmp_path, ends=lambda _: "done", bad=0):
        super().__init__(ends)
        self.settings = load_settings(data_dir=tmp_path / "data")
        self.bad, self.ingested, self.cancelled, self.most_open = bad, [], [], 0

    def status(self, job_id):
        self.most_open = max(self.most_open, len(self.requests) - self.finished)
        return super().status(job_id)

    finished = 0

    def result(self, job_id):
        self.finished += 1
        found = answer(job_id, self.requests[job_id].question)
        paths = ("corpus.jsonl#d2", "corpus.jsonl#d2", "corpus.jsonl#d1")
        hits = tuple(MergedHit(**hit(n, path=path).model_dump()) for n, path in enumerate(paths, 1))
        times = {"queued": 900.0, "searching": 30.0, "merging": 12.0, "total": 1000.0}
        return found.model_copy(update={"results": hits, "timings_ms": times})

    def cancel(self, job_id):
        self.cancelled.append(job_id)
        return True

    def find(self, query, **options):
        known = any(namespace == options["filters"]["namespace"] for _, namespace, _ in self.ingested)
        return SearchResult(hits=(hit(),) if known else (), mode="bm25_only")

    def ingest(self, paths, *, prune=False, namespace="default"):
        self.ingested.append((paths[0], namespace, prune))
        rows = paths[0].read_text(encoding="utf-8").splitlines()
        for place, row in enumerate(rows):
            failed = place < self.bad
            outcome = DocumentOutcome(
                path=f"corpus.jsonl#{json.loads(row)['id']}",
                status=DocumentStatus.FAILED if failed else DocumentStatus.ADDED,
                reason="text: is empty" if failed else "",
            )
            yield Progress(read=1, total=1, outcomes=(outcome,))


def asked(count=3, **fields):
    return [ArmQuestion(question_id=q["id"], text=q["text"], strategy="hybrid", **fields) for q in QUESTIONS[:count]]


def test_given_questions_when_run_then_each_is_a_job_in_the_namespace_and_documents_rank_by_their_best_chunk(tmp_path):
    client = EvalClient(tmp_path)
    found = list(Pipeline(client, "eval-1").answers(asked()))
    request = client.requests["job00000"]
    assert (request.strategy, request.decompose, request.top_n, request.summary) == ("hybrid", False, 60, False)
    assert (request.filters.namespace, request.lane) == ("eval-1", "batch")
    assert [one.documents for one in found] == [("d2", "d1")] * 3
    assert (found[0].ms, found[0].job_ms) == (42.0, 1000.0)
    assert client.most_open <= IN_FLIGHT
    assert client.cancelled == []


def test_given_a_plan_when_run_then_it_is_the_jobs_own(tmp_path):
    client = EvalClient(tmp_path)
    list(Pipeline(client, "eval-1").answers(asked(1, subqueries=("a", "b"))))
    request = client.requests["job00000"]
    assert ([entry.query for entry in request.subqueries], request.decompose) == (["a", "b"], True)


def test_given_the_arm_adaptive_when_run_then_the_job_names_no_strategy_and_the_stack_decides(tmp_path):
    client = EvalClient(tmp_path)
    (found,) = Pipeline(client, "eval-1").answers([asked(1)[0].model_copy(update={"strategy": "adaptive"})])
    request = client.requests["job00000"]
    assert (request.strategy, request.decompose, request.filters.namespace) == (None, True, "eval-1")
    assert (found.strategy, found.documents) == ("adaptive", ("d2", "d1"))


def test_given_a_complete_list_when_answered_then_its_rows_are_the_documents_found():
    rows = tuple(ListRow(doc_id=name, uri="u", path=f"corpus.jsonl#{name}", title=name) for name in ("d3", "d1"))
    found = answer("job00001", "list all").model_copy(
        update={"results": (), "table": ListTable(rows=rows, understood="all")}
    )
    assert document_ids(outcome_of("q", "adaptive", found).documents) == ("d3", "d1")


def test_given_jobs_that_fail_when_run_then_they_are_outcomes_with_the_reason(tmp_path):
    client = EvalClient(tmp_path, ends=lambda q: "failed" if q == "queues load" else "done")
    refused = ArmQuestion(question_id="q9", text="\0", strategy="x")
    outcomes = list(Pipeline(client, "eval-1").answers([*asked(2), refused]))
    found = {one.question_id: one for one in outcomes}
    assert found["q2"].error == "none of the 2 leaves answered"
    assert "control character" in found["q9"].error
    assert found["q1"].error is None


def test_given_an_end_before_the_jobs_when_run_then_they_are_cancelled(tmp_path):
    client = EvalClient(tmp_path, ends=lambda q: "done" if q == "redis streams order" else "searching")
    answers = Pipeline(client, "eval-1").answers(asked())
    next(answers)
    answers.close()
    assert client.cancelled == ["job00001"]


def test_given_caches_when_run_then_a_warning_says_what_they_do_to_the_figures(tmp_path):
    assert "caches are on" in Pipeline(EvalClient(tmp_path), "eval-1", ("said before",)).warnings[1]


def test_given_a_corpus_when_ensured_twice_then_it_is_ingested_once_with_nothing_but_its_text(tmp_path):
    rows = [{"id": 7, "title": "T", "text": "a", "url": "http://x", "tags": ["t"]}, {"id": "d1", "text": "b"}]
    corpus = load_dataset(write_set(tmp_path / "s", documents=rows, qrels=[("q1", "d1", 1)], packed=True)).corpus
    client = EvalClient(tmp_path)
    for rebuild in (False, False, True):
        given = ensure_ingested(client, corpus, lambda *_: None, rebuild=rebuild)
        assert given == (namespace_of(corpus), ())
    (file, namespace, pruned), (_, _, pruned_again) = client.ingested
    assert (namespace, pruned, pruned_again) == (f"eval-{corpus.digest[:12]}", False, True)
    kept = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert kept == [{"id": "7", "title": "T", "text": "a"}, {"id": "d1", "title": "", "text": "b"}]


def test_given_a_store_that_was_emptied_when_ensured_then_the_corpus_goes_in_again(tmp_path):
    corpus = load_dataset(write_set(tmp_path / "s")).corpus
    ensure_ingested(EvalClient(tmp_path), corpus, lambda *_: None)
    emptied = EvalClient(tmp_path)
    ensure_ingested(emptied, corpus, lambda *_: None)
    assert len(emptied.ingested) == 1


def test_given_documents_that_are_refused_when_ensured_then_some_are_a_warning_and_all_an_error(tmp_path):
    corpus = load_dataset(write_set(tmp_path / "s")).corpus
    client = EvalClient(tmp_path, bad=1)
    said = "1 of 4 documents could not be taken; the first: corpus.jsonl#d1: text: is empty"
    assert ensure_ingested(client, corpus, lambda *_: None)[1] == (said,)
    assert ensure_ingested(client, corpus, lambda *_: None)[1] == (said,), "it is said again when it is kept"
    with pytest.raises(RamifyError, match="4 of 4 documents could not be taken"):
        ensure_ingested(EvalClient(tmp_path, bad=4), corpus, lambda *_: None, rebuild=True)


def test_given_a_strategy_whose_first_answers_are_errors_when_run_then_it_is_not_asked_on(tmp_path):
    data = load_dataset(write_set(tmp_path / "s"))
    client = EvalClient(tmp_path, ends=lambda _: "failed")
    with pytest.raises(RamifyError, match="strategy hybrid fails on its first questions: none of the 2 leaves"):
        run_arms(Pipeline(client, "n"), data.questions, ["hybrid"], {}, lambda: None)


def test_given_two_strategies_when_run_then_they_take_turns_in_going_first(tmp_path):
    data = load_dataset(write_set(tmp_path / "s"))
    client, count = EvalClient(tmp_path), []
    found = run_arms(Pipeline(client, "n"), data.questions, ["hybrid", "bm25_only"], {}, lambda: count.append(1))
    order = [request.strategy for request in client.requests.values()]
    assert order == ["hybrid", "bm25_only", "bm25_only", "hybrid", "hybrid", "bm25_only"]
    assert [one.question_id for one in found["bm25_only"]] == ["q1", "q2", "q3"]
    assert len(count) == 6
