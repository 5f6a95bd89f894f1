"""What became of each line of a batch, and what it has cost. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from orchestrator.intake import paid_models
from orchestrator.planning.preview import preview
from shared.errors import RamifyError
from shared.jobs import JobReader, JobStore, State
from shared.jobs.states import TERMINAL, outcome_of
from shared.models import Cost, JobRequest, JobStatus
from shared.models.batch import LineKind, LineRecord, LineReport
from shared.providers.metering import NANO, price
from shared.settings import Settings

#: The state of a job that has expired from Redis.
GONE = "gone"


class Accounting:
    """Reports of batches, streamed with flat memory. May raise redis.exceptions.RedisError."""

    def __init__(self, jobs: JobStore, settings: Settings) -> None:
        self._jobs, self._settings = jobs, settings
        self._reader = JobReader(jobs.client)
        priced = settings.prices
        self._has_prices = bool(priced.llm_input or priced.embedding or priced.rerank)

    def report(self, batch_id: str, numbers: Sequence[int] | None = None) -> Iterator[LineReport]:
        """Every line that is not blank, or those of these `numbers`, in order. Raises: NotFoundError."""
        for page in self._jobs.batches.lines(batch_id, numbers):
            job_ids = list(dict.fromkeys(line.job_id for line in page if line.job_id))
            statuses = {status.job_id: status for status in self._reader.statuses(job_ids)}
            counted = dict(zip(job_ids, self._jobs.batches.outcomes(batch_id, job_ids), strict=True))
            own = [line.job_id for line in page if line.job_id and line.kind is LineKind.ENQUEUED]
            estimates = self._estimates(own)
            for line in page:
                yield self._row(line, statuses.get(line.job_id or ""), counted, estimates)

    def _row(
        self,
        line: LineRecord,
        status: JobStatus | None,
        counted: dict[str, str],
        estimates: dict[str, tuple[float, float]],
    ) -> LineReport:
        given = line.model_dump(include={"line", "kind", "id", "meta", "key", "job_id"})
        if line.job_id is None:
            return LineReport(**given, question=line.text or "", error=line.reason)
        own = line.kind is LineKind.ENQUEUED
        given |= {"outcome": counted[line.job_id] or None, "cost_estimated": estimates.get(line.job_id)}
        if status is None:
            return LineReport(**given, state=GONE)
        if status.state in TERMINAL:  # of a job that its batch counts, both say the same
            given["outcome"] = outcome_of(State(status.state), partial=status.partial, degraded=status.degraded)
        waited_s, ran_s = self._seconds(status)
        return LineReport(
            **given,
            state=status.state,
            reasons=status.degraded,
            verdicts=status.verdicts,
            stale=len(status.stale),
            question=status.question,
            leaves_done=status.leaves_done,
            leaves_failed=status.leaves_failed,
            leaves_total=status.leaves_total,
            waited_s=waited_s,
            ran_s=ran_s,
            spent=status.cost if own else Cost(),
            cost_spent=self._money(status) if own else None,
            error=status.error,
        )

    def _seconds(self, status: JobStatus) -> tuple[float, float | None]:
        """How long it has waited for its turn, and how long it took from there, up to now if it is open."""
        end = status.finished_at or self._jobs.clock.now()
        if status.deadline_at is None:
            return round(max(0.0, end - status.created_at), 3), None
        turn = status.deadline_at - status.deadline_s
        return round(max(0.0, turn - status.created_at), 3), round(max(0.0, end - turn), 3)

    def _money(self, status: JobStatus) -> float | None:
        """What its calls have cost, by today's prices.

        None when the price of a model that it may have called is not known, or it may have called several of one kind.
        """
        if status.budget is not None and status.budget.max_cost is not None:
            return status.budget.cost  # counted call by call
        cost, nano = status.cost, 0
        uses = {
            "llm": (cost.llm_calls, cost.llm_tokens_in, cost.llm_tokens_out),
            "embedding": (cost.embed_calls, cost.embed_tokens, 0),
            "rerank": (cost.rerank_calls, 0, 0),
        }
        models = list(dict.fromkeys(paid_models(self._settings)))
        for kind, use in uses.items():
            called = [(one, model) for one, model in models if one == kind]
            if not any(use) or (not called and kind != "llm"):
                continue  # what runs in the workers costs nothing
            found = [price(self._settings.prices, one, model, use) for one, model in called]
            if len(found) != 1 or found[0] is None:
                return None
            nano += found[0]
        return nano / NANO

    def _estimates(self, job_ids: Sequence[str]) -> dict[str, tuple[float, float]]:
        """Least and most that these jobs may cost, by the plan that the rules make. None are known without prices."""
        if not self._has_prices:
            return {}
        found = {}
        for old in self._jobs.retries.read(job_ids).values():
            try:
                request = JobRequest.of_record(old.request)
                made = preview(request, self._settings, llm=False).estimate.cost
            except (ValidationError, RamifyError):
                continue
            if made is not None:
                found[old.job_id] = made
        return found
