"""Jobs: asked, listed, looked at, read, explained, ended and tried again; batches too, where an id may be of either."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.growth import Growth, LeafView
from orchestrator.operations.operation import HttpRoute, Operation
from orchestrator.retries.retry import Retried, job_or_batch
from shared.jobs.job_list import STATES
from shared.models import Answer, BatchStatus, JobRequest, JobStatus, Node
from shared.models.base import Model
from shared.models.degraded import OnOutage
from shared.models.enumeration import ListRow
from shared.models.ingest import IngestResult
from shared.models.request import Question
from shared.models.status import BatchWhy, Why
from shared.models.told import ServerPath

Id = Annotated[str, Field(min_length=1, max_length=100)]
Limit = Annotated[int, Field(ge=1, le=10_000)]
_JOB, _BATCH = {"kind": "job"}, {"kind": "batch"}


class JobTaken(Model):
    """A question was taken: its job's id. `warning`: that it will expire while it waits."""

    job_id: str
    warning: str | None = None


class JobOrBatchId(Model):
    """What is meant by `id`; `kind` None: whichever of the two there is."""

    id: Id = Field(description="of a job or of a batch")
    kind: Literal["job", "batch"] | None = None


class Nothing(Model):
    """It takes nothing."""


class JobId(Model):
    """One job."""

    id: Id = Field(description="of a job")


class ResultInput(JobId):
    """One job's answer."""

    partial: bool = Field(default=False, description="what its leaves have found so far, at any state; without the LLM")


class JobsInput(Model):
    """Which jobs are listed."""

    limit: Limit = Field(default=20, description="how many")
    state: tuple[Annotated[str, Field(json_schema_extra={"enum": list(STATES)})], ...] = Field(
        default=(), max_length=20, description="in one of these states, or ended so: failed, degraded, open ..."
    )
    batch: Id | None = Field(default=None, description="the jobs that answer this batch's lines")
    degraded: bool | None = Field(default=None, description="only answers made without something, or none such")


class StaleInput(Model):
    """How many stale answers are listed."""

    limit: Limit = Field(default=20, description="how many")


class Jobs(Model):
    """Jobs, newest first. `cut`: there are more than were looked at, and some of them may be wanted."""

    jobs: tuple[JobStatus, ...]
    cut: bool = False


class TreeNode(Model):
    """A node of a job's tree as far as it is. `status`, `hits`, `score` and the times (Unix ms) are a leaf's.

    `score`: of its best hit. `ended_ms` 0: it is open; in the tree of an answer it is how long the leaf took.
    """

    node: Node
    status: str | None = None
    hits: int | None = None
    score: float | None = None
    error: str = ""
    since_ms: int = 0
    ended_ms: int = 0


class JobTree(Model):
    """A job's tree at a moment: its nodes in the order of their ids, without the question itself."""

    job_id: str
    question: ServerPath
    state: str
    partial: bool = False
    error: str = ""
    nodes: tuple[TreeNode, ...] = ()
    warnings: tuple[str, ...] = ()


class RetryInput(JobOrBatchId):
    """What is tried again, and how."""

    degraded: StrictBool = Field(default=False, description="repair answers that were made without something")
    deadline_s: float | None = Field(default=None, gt=0, le=86_400, description="seconds of each new job from its turn")
    queue_limit_s: float | None = Field(
        default=None, gt=0, le=2_592_000, description="seconds that each may wait for its turn"
    )
    on_outage: OnOutage | None = Field(default=None, description="when a server fails: wait for it, or go on without")


class Cancelled(Model):
    """What a cancel has ended. `cancelled`: how many open jobs. `state`: of the job that was named.

    `takes_no_more_lines`: the batch was still being read.
    """

    id: str
    cancelled: int
    state: str | None = None
    takes_no_more_lines: bool = False


def _ask(client: Ramify, given: Question) -> JobTaken:
    job_id = client.submit(JobRequest(**{name: getattr(given, name) for name in given.model_fields_set}))
    return JobTaken(job_id=job_id, warning=client.too_slow(job_id))


def _status(client: Ramify, given: JobOrBatchId) -> JobStatus | BatchStatus:
    if given.kind == "job":
        return client.status(given.id)
    if given.kind == "batch":
        return client.batch_status(given.id)
    return job_or_batch(given.id, client.status, client.batch_status)


def _result(client: Ramify, given: ResultInput) -> Answer:
    return client.result(given.id, partial=given.partial)


def _rows(client: Ramify, given: JobId) -> Iterator[ListRow]:
    return client.rows(given.id)


def _ingest_report(client: Ramify, given: JobId) -> IngestResult:
    return client.ingest_result(given.id)


def _jobs(client: Ramify, given: JobsInput) -> Jobs:
    found = client.jobs(given.limit, state=given.state, batch=given.batch, degraded=given.degraded)
    return Jobs(jobs=tuple(found), cut=found.cut)


def _stale_jobs(client: Ramify, given: StaleInput) -> Jobs:
    return Jobs(jobs=tuple(client.stale_jobs(given.limit)))


def _tree(client: Ramify, given: JobId) -> JobTree:
    return tree_of(given.id, client.tree(given.id))


def tree_of(job_id: str, growth: Growth) -> JobTree:
    """A tree as it is told to callers."""
    nodes = sorted(growth.nodes.values(), key=lambda node: [int(part) for part in node.id.split(".")])
    return JobTree(
        job_id=job_id,
        question=growth.question,
        state=growth.state,
        partial=growth.partial,
        error=growth.error,
        nodes=tuple(_node(node, growth.leaves.get(node.id)) for node in nodes),
        warnings=growth.warnings,
    )


def _node(node: Node, leaf: LeafView | None) -> TreeNode:
    return TreeNode(node=node, **vars(leaf)) if leaf else TreeNode(node=node)


def _why(client: Ramify, given: JobOrBatchId) -> Why | BatchWhy:
    if given.kind is not None:
        _status(client, given)  # an id of the other kind is not found
    return client.why(given.id)


def _cancel(client: Ramify, given: JobOrBatchId) -> Cancelled:
    if isinstance(_status(client, given), JobStatus):
        ended = client.cancel(given.id)
        return Cancelled(id=given.id, cancelled=int(ended), state=client.status(given.id).state)
    count = client.cancel_batch(given.id)
    early = client.batch_status(given.id).cancelled_early
    return Cancelled(id=given.id, cancelled=count, takes_no_more_lines=early)


def _retry(client: Ramify, given: RetryInput) -> Retried:
    if given.kind is not None:
        _status(client, given)
    limits = {"deadline_s": given.deadline_s, "queue_limit_s": given.queue_limit_s}
    return client.retry(given.id, degraded=given.degraded, on_outage=given.on_outage, **limits)


def _refresh(client: Ramify, given: JobOrBatchId) -> Retried:
    if given.kind is not None:
        _status(client, given)
    return client.refresh(given.id)


def _refresh_stale(client: Ramify, _: Nothing) -> Retried:
    return client.refresh_stale()


def _of_both(method: Literal["GET", "POST", "DELETE"], end: str, outputs: tuple[Any, Any], **more: Any) -> Any:
    """The routes of an operation whose id may be a job's or a batch's."""
    return (
        HttpRoute(method, f"/v1/jobs/{{id}}{end}", output=outputs[0], fixed=_JOB, **more),
        HttpRoute(method, f"/v1/batches/{{id}}{end}", output=outputs[1], fixed=_BATCH, **more),
    )


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "ask", Question, JobTaken, _ask, Scope.ASK, command="ask", tool="ask", idempotent=False, long=True,
        routes=(
            HttpRoute(
                "POST", "/v1/jobs", 202, headers={"idempotency_key": "Idempotency-Key"}, location="/v1/jobs/{job_id}"
            ),
        ),
    ),
    Operation(
        "status", JobOrBatchId, JobStatus | BatchStatus, _status, command="status", tool="status",
        routes=_of_both("GET", "", (JobStatus, BatchStatus)),
    ),
    Operation(
        "result", ResultInput, Answer, _result, command="result", tool="result", waits=True,
        routes=(HttpRoute("GET", "/v1/jobs/{id}/result"),),
    ),
    Operation(
        "rows", JobId, ListRow, _rows, command="result", rows=True, routes=(HttpRoute("GET", "/v1/jobs/{id}/rows"),)
    ),
    Operation(
        "ingest_report", JobId, IngestResult, _ingest_report, command="result",
        routes=(HttpRoute("GET", "/v1/ingests/{id}"),),
    ),
    Operation("tree", JobId, JobTree, _tree, routes=(HttpRoute("GET", "/v1/jobs/{id}/tree"),)),
    Operation("jobs", JobsInput, Jobs, _jobs, command="jobs", routes=(HttpRoute("GET", "/v1/jobs"),)),
    Operation(
        "why", JobOrBatchId, Why | BatchWhy, _why, command="why", routes=_of_both("GET", "/why", (Why, BatchWhy))
    ),
    Operation(
        "cancel", JobOrBatchId, Cancelled, _cancel, Scope.ASK, command="cancel", tool="cancel",
        routes=_of_both("DELETE", "", (Cancelled, Cancelled)),
    ),
    Operation(
        "refresh", JobOrBatchId, Retried, _refresh, Scope.ASK, command="refresh", tool="refresh", idempotent=False,
        long=True,
        routes=_of_both("POST", "/refresh", (Retried, Retried), status=202),
    ),
    Operation(
        "stale_jobs", StaleInput, Jobs, _stale_jobs, command="jobs", routes=(HttpRoute("GET", "/v1/stale-answers"),)
    ),
    Operation(
        "refresh_stale", Nothing, Retried, _refresh_stale, Scope.ASK, command="refresh", idempotent=False, long=True,
        routes=(HttpRoute("POST", "/v1/stale-answers/refresh", 202),),
    ),
    Operation(
        "retry", RetryInput, Retried, _retry, Scope.ASK, command="retry", idempotent=False, long=True,
        routes=_of_both("POST", "/retry", (Retried, Retried), status=202),
    ),
)  # fmt: skip
