"""What the merge of a replay takes over: the recorded results for a new summary, folds alone for a new merge."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import redis

from shared.errors import RamifyError
from shared.jobs import JobStore
from shared.models import Answer, Hit, JobRequest, LeafResult, LeafStatus, MergedHit, MergedPool
from shared.models.hits import Folds
from shared.models.replay import Replay, ReplayStage
from shared.settings import Settings
from shared.settings.sections import MultiQuerySettings
from tests.fakes.walked_jobs import WalkedJob, node
from workers.merge.recorded import recorded_answer, recorded_pool
from workers.merge.tree import merge_tree


def hit(name: str, score: float, **more: Any) -> Hit:
    return Hit(chunk_id=name, doc_id="d", path="p", title=name, text=f"all of {name}", score=score, **more)


def leaf(*hits: Hit) -> LeafResult:
    return LeafResult(node_id="0.0", status=LeafStatus.DONE, hits=hits, reranker="lexical:v2")


def run(client: redis.Redis, start: ReplayStage | None, of: str = "old") -> Any:
    replay = Replay(of=of, start=start) if start else None
    request = JobRequest(question="why?", replay=replay)
    return SimpleNamespace(jobs=SimpleNamespace(client=client), job=SimpleNamespace(request=request))


def test_near_duplicates_that_vectors_showed_stay_left_out_when_the_vectors_are_gone() -> None:
    nodes, limits = {"0.0": node("0.0"), "0.1": node("0.1")}, MultiQuerySettings()
    found = [hit("a", 0.9, vector=(1.0, 0.0)), hit("b", 0.8, vector=(1.0, 0.001)), hit("c", 0.7, vector=(0.0, 1.0))]
    before = merge_tree([leaf(*found)], nodes, limits, 10)
    assert before.folds == Folds(first={"b": "a"})
    bare = [one.but(vector=()) for one in found]
    again = merge_tree([leaf(*bare)], nodes, limits, 10, known=before.folds)
    assert [one.chunk_id for one in again.hits] == ["a", "c"]
    assert (again.per_leaf, again.folded, again.folds) == (before.per_leaf, before.folded, before.folds)
    assert len(merge_tree([leaf(*bare)], nodes, limits, 10).hits) == 3, "by their words alone they differ"
    assert merge_tree([leaf(*bare)], nodes, limits, 10).folds is None, "what words decide is decided again"


def test_a_new_summary_has_the_results_in_their_final_order_and_a_new_merge_has_not(
    client: redis.Redis, settings: Settings
) -> None:
    store = JobStore(client, settings)
    store.enqueue([("old", JobRequest(question="why?"))])
    store.admit()
    walked = WalkedJob(store, "old").to("summarising")
    results = tuple(MergedHit(**dict(hit(name, 1.0))) for name in "ba")
    answer = Answer(job_id="old", question="why?", state="done", coverage="", results=results, reranked_by="endpoint:m")
    assert store.finish(walked.job, answer)
    pool = MergedPool(hits=results[::-1], per_leaf={"0.0": ("a", "b")})
    for start, taken in ((ReplayStage.SUMMARY, True), (ReplayStage.MERGE, False)):
        before = recorded_answer(run(client, start))
        assert before == answer
        found = recorded_pool(run(client, start), pool, before)
        assert (found is not None) == taken
        if found is not None:
            assert [one.chunk_id for one in found.hits] == ["b", "a"]
            assert (found.per_leaf, found.reranked_by) == (pool.per_leaf, "endpoint:m")


@pytest.mark.parametrize("start", [None, ReplayStage.PLAN, ReplayStage.SEARCH, ReplayStage.RERANK])
def test_other_jobs_ask_for_no_record(client: redis.Redis, start: ReplayStage | None) -> None:
    assert recorded_answer(run(client, start)) is None


def test_an_answer_that_has_expired_meanwhile_fails_the_replay_in_a_sentence(client: redis.Redis) -> None:
    with pytest.raises(RamifyError, match="the answer of job old is gone: ask the question again"):
        recorded_answer(run(client, ReplayStage.MERGE))
