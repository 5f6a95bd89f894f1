"""Records: what an answer rests on, the same again from a stage on, and what differs between two answers."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.operations.jobs import Id, JobId
from orchestrator.operations.operation import HttpRoute, Operation
from orchestrator.records.causes import compared
from orchestrator.records.diff import AnswerDifference
from orchestrator.records.export import KINDS, ExportFormat
from orchestrator.records.replaying import ReplayStarted
from shared.models.base import Model
from shared.models.manifest import Manifest
from shared.models.replay import ReplayStage
from shared.models.request import Name


class ReplayInput(JobId):
    """Which answer runs again, and from where. Settings of one run alone are an operator's, on the command line."""

    start: ReplayStage = Field(default=ReplayStage.PLAN, description="the first stage that runs again")
    strategy: Name | None = Field(default=None, description="another list of search stages")


class DiffInput(Model):
    """Two jobs that are done."""

    id: Id = Field(description="of a job")
    other: Id = Field(description="of the job that it is compared with")


class ExportInput(JobId):
    """Which answer is written, and as what."""

    format: ExportFormat = Field(default=ExportFormat.MARKDOWN, description="md, html, json, bibtex or csl")


class ExportedFile(Model):
    """An answer with its sources as the text of one file."""

    name: str
    media_type: str
    text: str


def _manifest(client: Ramify, given: JobId) -> Manifest:
    return client.manifest(given.id)


def _replay(client: Ramify, given: ReplayInput) -> ReplayStarted:
    return client.replay(given.id, given.start, strategy=given.strategy)


def _diff(client: Ramify, given: DiffInput) -> AnswerDifference:
    return compared(client.manifest(given.id), client.manifest(given.other))


def _export(client: Ramify, given: ExportInput) -> ExportedFile:
    kind = KINDS[given.format]
    text = kind.answer(client.result(given.id))
    return ExportedFile(name=f"{given.id}{kind.ending}", media_type=kind.media_type, text=text)


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "manifest", JobId, Manifest, _manifest, command="manifest",
        routes=(HttpRoute("GET", "/v1/jobs/{id}/manifest"),),
    ),
    Operation(
        "replay", ReplayInput, ReplayStarted, _replay, Scope.ASK, command="replay", idempotent=False, long=True,
        routes=(HttpRoute("POST", "/v1/jobs/{id}/replay", 202, location="/v1/jobs/{job_id}"),),
    ),
    Operation(
        "diff", DiffInput, AnswerDifference, _diff, command="diff", tool="diff",
        routes=(HttpRoute("GET", "/v1/jobs/{id}/diff/{other}"),),
    ),
    Operation(
        "export", ExportInput, ExportedFile, _export, command="export",
        routes=(HttpRoute("GET", "/v1/jobs/{id}/export"),),
    ),
)  # fmt: skip
