"""Jobs: asked, looked at, read, explained, ended and tried again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.operations.operation import HttpRoute, Operation
from orchestrator.retry import job_or_batch
from shared.models import Answer, BatchStatus, JobRequest, JobStatus
from shared.models.base import Model
from shared.models.request import Question

Id = Annotated[str, Field(min_length=1, max_length=100)]
_JOB, _BATCH = {"kind": "job"}, {"kind": "batch"}


class JobTaken(Model):
    """A question was taken: its job's id. `warning`: that it will expire while it waits."""

    job_id: str
    warning: str | None = None


class JobOrBatchId(Model):
    """What is meant by `id`; `kind` None: whichever of the two there is."""

    id: Id = Field(description="of a job or of a batch")
    kind: Literal["job", "batch"] | None = None


class JobId(Model):
    """One job."""

    id: Id = Field(description="of a job")


class ResultInput(JobId):
    """One job's answer."""

    partial: bool = Field(default=False, description="what its leaves have found so far, at any state; without the LLM")


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
        routes=(
            HttpRoute("GET", "/v1/jobs/{id}", output=JobStatus, fixed=_JOB),
            HttpRoute("GET", "/v1/batches/{id}", output=BatchStatus, fixed=_BATCH),
        ),
    ),
    Operation(
        "result", ResultInput, Answer, _result, command="result", tool="result",
        routes=(HttpRoute("GET", "/v1/jobs/{id}/result"),),
    ),
)  # fmt: skip
