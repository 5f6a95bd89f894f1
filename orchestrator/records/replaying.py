"""Runs an answer again from a stage on: what stands before it comes from the record of the job, or of a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from celery import Celery
from pydantic import Field

from orchestrator.remote import call_pool
from orchestrator.retries.resume import planning_notes
from orchestrator.submitting import Submitter
from shared.contract import TaskName
from shared.errors import ConflictError, DamagedError, InputError, NoAnswerError, NotFoundError, RamifyError
from shared.jobs import JobReader, JobStore, new_id
from shared.jobs.keys import JobKeys
from shared.jobs.tenant_scope import no_such_job
from shared.models import Answer, JobRequest
from shared.models.base import Model
from shared.models.enumeration import ValuesReply, ValuesRequest
from shared.models.manifest import Manifest
from shared.models.replay import PlanningNotes, Replay, ReplayStage
from shared.models.route import PlannerName
from shared.settings.changed import checked_changes
from shared.settings.fingerprint import STRATEGY, fingerprint

_INFO_S = 10.0
#: No definition has this name: counting those that do is the cheapest question whose reply tells the index version.
_NO_SYMBOL = "-"
#: Parts of a fingerprint that decide what a search finds.
_OF_SEARCH = ("search", "embedding", "store", "multi_query")


class ReplayStarted(Model):
    """A replay that was started: its job. `replay_of`: the job that it goes on from, empty for a manifest file."""

    job_id: str
    replay_of: str = ""
    digest: str = Field(description="of the manifest that it goes on from")
    start: ReplayStage


class Replaying:
    """Makes the new jobs. Every method may raise redis.exceptions.RedisError."""

    def __init__(self, app: Celery, jobs: JobStore, submitter: Submitter) -> None:
        self._app, self._jobs, self._submitter = app, jobs, submitter
        self._reader = JobReader(jobs.client)

    def job(
        self, job_id: str, start: ReplayStage, settings: Mapping[str, Any], strategy: str | None = None
    ) -> ReplayStarted:
        """A new job that has what the old one had before `start`.

        Raises: RamifyError and InputError, in one sentence, for what is not kept any more; LaneFullError.
        """
        old = self._jobs.job(job_id)
        if old is None:
            raise no_such_job(job_id)
        if not old.terminal:
            raise ConflictError("job id", job_id, f"it is still {old.state.value}: wait for its end")
        manifest = manifest_or_error(self._reader, job_id)
        self._check_list(manifest, start)
        strategies = {leaf.id: leaf.strategy for leaf in manifest.record.leaves}
        if start.keeps_leaves:
            answer = self._reader.answer(job_id)
            self._check_leaves(job_id, manifest, answer, start)
            _check_folds(answer, settings)
        elif start is ReplayStage.RERANK:
            self._check_candidates(job_id, manifest)
        replay = Replay(of=job_id, digest=manifest.digest, start=start, strategies=strategies)
        return self._submit(old.request, replay, settings, strategy)

    def file(
        self, manifest: Manifest, start: ReplayStage, settings: Mapping[str, Any], strategy: str | None, tenant: str
    ) -> ReplayStarted:
        """The same of a manifest, on this installation's corpus and settings. Raises: as `job`."""
        if start not in {ReplayStage.PLAN, ReplayStage.SEARCH}:
            fix = "a manifest holds no passages: replay it from plan or from search"
            raise ConflictError("from", start.value, fix)
        self._check_list(manifest, start)
        record = manifest.record
        request = JobRequest.model_validate({**record.options, "question": record.question, "tenant": tenant})
        replay = Replay(
            digest=manifest.digest, start=start, route=record.plan.route, nodes=record.plan.nodes,
            planning=_recorded_notes(manifest),
        )  # fmt: skip
        return self._submit(request, replay, settings, strategy)

    def _submit(
        self, request: JobRequest, replay: Replay, settings: Mapping[str, Any], strategy: str | None
    ) -> ReplayStarted:
        changes: dict[str, Any] = {
            "replay": replay.model_copy(update={"settings": checked_changes(settings)}),
            "idempotency_key": None,
            "webhook": None,
        }
        if strategy is not None:
            changes |= {"strategy": strategy, "mode": None}
        asked = JobRequest.model_validate({**dict(request), **changes})
        job_ids, full = self._submitter.submit([(new_id(), self._submitter.checked(asked))])
        if full:
            raise full
        return ReplayStarted(job_id=job_ids[0], replay_of=replay.of, digest=replay.digest, start=replay.start)

    @staticmethod
    def _check_list(manifest: Manifest, start: ReplayStage) -> None:
        route = manifest.record.plan.route
        if route and route.planner is PlannerName.ENUMERATION and start is not ReplayStage.PLAN:
            raise ConflictError("from", start.value, "a list is read anew from the corpus: replay it from plan")

    def _check_leaves(self, job_id: str, manifest: Manifest, answer: Answer | None, start: ReplayStage) -> None:
        """Raises: InputError where what the leaves had found is not kept."""
        kept = {leaf.node_id: bool(leaf.hits) for leaf in answer.leaves} if answer else {}
        lost = [leaf.id for leaf in manifest.record.leaves if leaf.hits and not kept.get(leaf.id)]
        if answer is None or lost or not all(hit.text for hit in answer.results):
            keep = "(jobs.keep = full keeps it)"
            fix = f"what the leaves of job {job_id} found is not kept {keep}: replay it from search"
            raise ConflictError("from", start.value, fix)

    def _check_candidates(self, job_id: str, manifest: Manifest) -> None:
        """Raises: InputError where candidates are neither kept nor can be found again as they were."""
        if self._jobs.client.hlen(JobKeys(job_id).candidates) > 1:
            return
        own, then = fingerprint(self._jobs.settings), manifest.record.settings.fingerprint
        parts = [*_OF_SEARCH, *(name for name in then if name.startswith(STRATEGY))]
        changed = next((name for name in parts if own.get(name) != then.get(name)), None)
        why = f"{changed} is set otherwise now" if changed else ""
        if not why and [self._index_version(manifest.run.tenant)] != list(manifest.run.index_versions):
            why = "the corpus has been written since"
        if why:
            fix = f"its candidates are not kept (jobs.keep = candidates keeps them) and {why}: replay it from search"
            raise ConflictError("from", ReplayStage.RERANK.value, fix)

    def _index_version(self, tenant: str) -> int:
        """That of the collection now. Raises: NotRunningError when no search worker answers in time."""
        cheapest = ValuesRequest(tenant=tenant, symbol=_NO_SYMBOL)
        raw = call_pool(self._app, self._jobs.settings, TaskName.SEARCH_VALUES, cheapest, _INFO_S)
        reply = ValuesReply.of_record(raw)
        if reply.values is None:
            raise RamifyError(reply.error or "the search pool did not say which state the corpus is in")
        return reply.values.index_version


def _check_folds(answer: Answer | None, settings: Mapping[str, Any]) -> None:
    """Raises: InputError for a threshold that only vectors could be held against."""
    limits = settings.get("multi_query")
    if answer and answer.folds is not None and isinstance(limits, Mapping) and "dedup_threshold" in limits:
        fix = "an answer keeps no vectors, so its near-duplicates stay as they were: replay it from rerank"
        raise InputError("--set", "multi_query.dedup_threshold", fix)


def replay_stage(given: ReplayStage | str) -> ReplayStage:
    """The stage of that name. Raises: InputError with the known ones."""
    try:
        return ReplayStage(given)
    except ValueError:
        raise InputError("from", given, f"choose from {', '.join(ReplayStage)}") from None


def _recorded_notes(manifest: Manifest) -> PlanningNotes:
    """Those that the digest vouches for: each stands in the record, too."""
    record, told = manifest.record, manifest.run.planning
    return PlanningNotes(
        warnings=tuple(text for text in told.warnings if text in record.warnings),
        degraded={
            item: codes for item, codes in told.degraded.items() if set(codes) <= set(record.degraded.get(item, ()))
        },
    )


def with_planning(jobs: JobStore, manifest: Manifest) -> Manifest:
    """With what was said while the job was planned: a replay of a file of it starts with that."""
    record, run = manifest.record, manifest.run
    if record.plan.route is None or not (record.warnings or record.degraded):
        return manifest
    with suppress(DamagedError, NotFoundError):
        notes = planning_notes(jobs, run.job_id, record.plan.route)
        return manifest.model_copy(update={"run": run.model_copy(update={"planning": notes})})
    return manifest


def manifest_or_error(reader: JobReader, job_id: str) -> Manifest:
    """Raises: NoAnswerError for a job without one."""
    if (found := reader.manifest(job_id)) is not None:
        return found
    status = reader.status(job_id)
    if status.ingest is not None:
        raise NoAnswerError(f"job {job_id} puts documents in: only an answer has a manifest", terminal=True)
    if not status.terminal:
        raise NoAnswerError(f"job {job_id} is {status.state}: it has a manifest when it is done", terminal=False)
    if status.state != "done":
        told = f"job {job_id} ended {status.state}, without an answer: `ramify retry {job_id}` tries it again"
        raise NoAnswerError(told, terminal=True)
    told = f"job {job_id} was answered by a release that wrote no manifests: ask the question again"
    raise NoAnswerError(told, terminal=True)
