"""What a replay takes over from the answer that it goes on from: near-duplicates, or the whole merged list."""

from __future__ import annotations

from shared.errors import RamifyError
from shared.jobs import JobReader
from shared.models import Answer, MergedPool
from shared.models.replay import ReplayStage
from shared.tasks.task_run import TaskRun


def recorded_answer(run: TaskRun) -> Answer | None:
    """The answer whose leaves a replay has; None for any other job. Raises: RamifyError where it is gone."""
    replay = run.job.request.replay
    if replay is None or not replay.of or not replay.start.keeps_leaves:
        return None
    answer = JobReader(run.jobs.client).answer(replay.of)
    if answer is None:
        raise RamifyError(f"the answer of job {replay.of} is gone: ask the question again")
    return answer


def recorded_pool(run: TaskRun, pool: MergedPool, before: Answer | None) -> MergedPool | None:
    """`pool` with the results of the record in their final order; None unless only the summary is to be made anew."""
    replay = run.job.request.replay
    if before is None or replay is None or replay.start is not ReplayStage.SUMMARY:
        return None
    return pool.model_copy(update={"hits": before.results, "reranked_by": before.reranked_by})
