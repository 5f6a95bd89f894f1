"""The state of all gates: one hash for each provider in Redis, changed by Lua scripts on Redis' own clock."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from enum import StrEnum
from importlib import resources
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from shared.connections.key_types import declare
from shared.errors import RamifyError
from shared.models import Lane
from shared.settings.services import ProviderSettings, RateLimit

if TYPE_CHECKING:
    from redis import Redis

#: How long a provider's failures and pauses are remembered after the last of them (ms).
REMEMBERED_MS = 120_000
#: Seconds for which Redis is not asked again after it failed; the calls in between go without limits, at once.
_REDIS_PAUSE_S = 5.0
_log = logging.getLogger("ramify.gates")
T = TypeVar("T")


class Limits(NamedTuple):
    """The settings of one provider as the scripts take them, in ms. `interval` is 0 without a rate limit.

    Batch calls leave `reserve` requests of the burst to interactive ones; one of them goes each `batch_every` ms (0: as
    interactive calls allow).
    """

    interval: float
    burst: int
    failures: int
    first_open: float
    longest_open: float
    first_pause: float
    longest_pause: float
    reserve: int = 0
    batch_every: float = 0


class Admission(NamedTuple):
    """What a call asks for. `lease` of a probe and the time `left` to wait, in ms; `turn`: it has one already.

    `ticket`: that of a batch call which stands in line.
    """

    token: str
    lease: float
    left: float
    turn: bool = False
    lane: Lane = Lane.INTERACTIVE
    ticket: str = ""


class GateVerdict(StrEnum):
    """Whether a call may go, and why not; lua/acquire.lua uses the same words."""

    GO = "go"
    OPEN = "open"
    PROBING = "probing"
    PAUSED = "paused"
    TURN = "turn"
    LINE = "line"
    FULL = "full"


class GateAnswer(NamedTuple):
    """`wait` until it is worth while to ask again (ms).

    GO: `probe`, `watched` (a success is to be reported too). OPEN: `span` of the whole opening (ms), `until` (Unix ms),
    `failures` in a row and `why`, the last of them; PROBING the last two. PAUSED: `until`. LINE: `ticket`.
    """

    verdict: GateVerdict
    wait: float = 0
    probe: bool = False
    watched: bool = False
    span: float = 0
    until: float = 0
    failures: int = 0
    why: str = ""
    ticket: str = ""


class CallOutcome(StrEnum):
    """How a call ended, as seen from the provider's health; lua/release.lua uses the same words."""

    ANSWERED = "answered"
    BUSY = "busy"
    FAILED = "failed"
    UNSURE = "unsure"


class CallReport(NamedTuple):
    """`pause` that the provider asked for (ms; 0 none). `why`: what failed, a sentence."""

    outcome: CallOutcome
    token: str
    pause: float = 0
    why: str = ""


def limits_of(providers: ProviderSettings, limit: RateLimit) -> Limits:
    breaker = providers.breaker
    interval = 60_000 / limit.requests_per_minute if limit.requests_per_minute else 0
    return Limits(
        interval=interval,
        burst=limit.burst,
        failures=breaker.failures,
        first_open=breaker.open_s * 1000,
        longest_open=breaker.longest_open_s * 1000,
        first_pause=providers.pause_s * 1000,
        longest_pause=providers.longest_pause_s * 1000,
        reserve=min(int(limit.burst * providers.interactive_reserve), limit.burst - 1),
        batch_every=interval / providers.batch_share if providers.batch_share else 0,
    )


declare({"ramify:gate:*": "hash"})


def key_of(name: str) -> str:
    """The hash of the provider `name`, e.g. "llm:127.0.0.1:8000"."""
    return f"ramify:gate:{{{name}}}"


class GateStore:
    """Called from many threads. Never raises: while Redis does not answer, calls go without limits.

    The log says so once, and once when Redis is back.
    """

    def __init__(self, client: Redis) -> None:
        from redis.exceptions import RedisError  # noqa: PLC0415 - the command line starts without Redis

        self._faults = (RedisError, RamifyError, OSError, ValueError)
        lua = resources.files("shared.providers.gates").joinpath("lua")
        scripts = (lua.joinpath(name).read_text(encoding="utf-8") for name in ("acquire.lua", "release.lua"))
        self._acquire, self._release = map(client.register_script, scripts)
        self._lock = Lock()
        self._unreachable, self._paused_until = False, 0.0

    def acquire(self, name: str, limits: Limits, admission: Admission) -> GateAnswer:
        """May this call go to the provider `name` now? One round trip; writes only for a rate limit or a probe."""

        def ask() -> GateAnswer:
            reply: Any = self._acquire(
                keys=[key_of(name)],
                args=[
                    limits.interval, limits.burst, limits.failures, limits.longest_open, limits.longest_pause,
                    admission.token, admission.lease, admission.left, int(admission.turn), REMEMBERED_MS,
                    admission.lane.value, admission.ticket, limits.reserve, limits.batch_every,
                ],
            )  # fmt: skip
            verdict, wait, first, second, failures, why = (part.decode("utf-8", "replace") for part in reply)
            if verdict == GateVerdict.GO:
                return GateAnswer(GateVerdict.GO, probe=first == "1", watched=second == "1")
            if verdict == GateVerdict.LINE:
                return GateAnswer(GateVerdict.LINE, float(wait), ticket=first)
            span, until = float(first), float(second)
            return GateAnswer(GateVerdict(verdict), float(wait), False, False, span, until, int(failures), why)

        return self._asked(ask, GateAnswer(GateVerdict.GO))

    def release(self, name: str, limits: Limits, report: CallReport) -> str:
        """A call has ended. Returns "opened" or "closed" when that is what it did to the breaker, else ""."""

        def tell() -> str:
            change: Any = self._release(
                keys=[key_of(name)],
                args=[
                    report.outcome.value, report.token, report.pause, report.why, limits.failures, limits.first_open,
                    limits.longest_open, limits.first_pause, limits.longest_pause, REMEMBERED_MS,
                ],
            )  # fmt: skip
            return str(change.decode())

        return self._asked(tell, "")

    def _asked(self, call: Callable[[], T], without_redis: T) -> T:
        """While Redis is unreachable one call in a while asks it; the others do not wait for its time-out."""
        with self._lock:
            now = time.monotonic()
            if now < self._paused_until:
                return without_redis
            if self._unreachable:
                self._paused_until = now + _REDIS_PAUSE_S
        try:
            answer = call()
        except self._faults as error:
            with self._lock:
                known, self._unreachable = self._unreachable, True
                self._paused_until = time.monotonic() + _REDIS_PAUSE_S
            if not known:
                _log.warning(
                    "Redis does not hold the rate limits and circuit breakers (%s): calls go without them",
                    type(error).__name__,
                )
            return without_redis
        if self._unreachable:
            with self._lock:
                self._unreachable = False
            _log.info("Redis holds the rate limits and circuit breakers of all workers again")
        return answer
