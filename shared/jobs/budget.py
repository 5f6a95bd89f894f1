"""Budgets in Redis: a Lua script reserves each call before it is made. Spends nothing itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from redis import Redis

from shared.connections.clock import ServerClock
from shared.jobs.codec import text
from shared.jobs.job import Job
from shared.jobs.keys import BatchKeys, JobKeys
from shared.jobs.scripts import Scripts
from shared.models import JobRequest
from shared.models.cost import Budget, Spending
from shared.providers.metering import NANO, Meter, PaidUse, Refusal
from shared.settings import Settings
from shared.settings.services import BudgetDefaults

_LIMITS = [f"budget:{name}" for name in Budget.model_fields]


def with_default_budget(request: JobRequest, settings: Settings) -> JobRequest:
    """The request with the settings' limits where it names none."""
    defaults = _default_budget(settings.budget)
    return request if defaults is None else request.model_copy(update=request.otherwise(defaults).limits())


@lru_cache(maxsize=8)
def _default_budget(given: BudgetDefaults) -> Budget | None:
    found = Budget.model_validate(given.model_dump())
    return found if found.limits() else None


def budget_fields(budget: Budget) -> dict[str, str]:
    """A budget as fields of a hash; money in billionths."""
    limits = {name: value * NANO if name == "max_cost" else value for name, value in budget.limits().items()}
    return {
        f"budget:{name}": f"{value:g}" if value % 1 and name != "max_cost" else f"{value:.0f}"
        for name, value in limits.items()
    }


def spending(fields: Mapping[str, str], now: float) -> Spending | None:
    """The budget in a job's or batch's hash and what is spent of it; None when it has none. `now` in Unix seconds."""
    if not any(name in fields for name in _LIMITS):
        return None
    known = {name: fields.get(f"budget:{name}") for name in Spending.model_fields}
    given = {name: float(value) for name, value in known.items() if value}
    for name in ("cost", "max_cost"):
        if name in given:
            given[name] /= NANO
    end = float(fields.get("finished_at") or now)
    waits = "waits_until" in fields  # a job: its time runs from its turn
    begun = float(fields.get("admitted_at") or (end if waits else fields["created_at"]))
    seconds = max(0.0, end - begun)
    return Spending.model_validate({**given, "seconds": round(seconds, 3)})


@dataclass
class _Account:
    """The budget of one job or batch. `of` begins a sentence about it; `ends`: `max_seconds` ends the spending."""

    run: Scripts
    clock: ServerClock
    key: str
    of: str
    counts_money: bool
    ends: bool = False

    def reserve(self, hold: str, use: PaidUse) -> Refusal | None:
        found = self.run("reserve", [self.key], [f"{self.clock.now():.3f}", hold, *use, int(self.ends)])
        if not found:
            return None
        limit, value, left = text(found[0]), float(text(found[1])), int(text(found[2]))
        return Refusal(limit, value / NANO if limit == "max_cost" else value, left)

    def settle(self, hold: str, use: PaidUse) -> None:
        self.run("settle", [self.key], [hold, *use])


class Ledger:
    """Makes the meter of a task. One per process."""

    def __init__(self, client: Redis, settings: Settings, clock: ServerClock | None = None) -> None:
        self._client, self._prices = client, settings.prices
        self._clock = clock or ServerClock(client)
        self._run = Scripts(client)
        self._of_batch = lru_cache(maxsize=1024)(self._read_batch)

    def meter(self, job: Job) -> Meter | None:
        """The budgets that hold for `job`: its own and its batch's; None when there is none."""
        accounts = []
        if own := job.request.limits():
            accounts.append(_Account(self._run, self._clock, JobKeys(job.id).job, "", "max_cost" in own))
        if job.batch_id and (limits := self._of_batch(job.batch_id)):
            key = BatchKeys(job.batch_id).batch
            money = "budget:max_cost" in limits
            accounts.append(_Account(self._run, self._clock, key, "the batch's ", money, ends=True))
        return Meter(accounts, self._prices) if accounts else None

    def _read_batch(self, batch_id: str) -> tuple[str, ...]:
        """Which limits a batch has: they never change, so each process reads them once."""
        values = self._client.hmget(BatchKeys(batch_id).batch, _LIMITS)
        return tuple(name for name, value in zip(_LIMITS, values, strict=True) if value is not None)
