"""The gate before a server that Ramify calls: every call waits for its turn, or is refused at once with the reason.

One rate limit, one pause and one circuit breaker for all workers; their state is in Redis (`gate_store`). A process
without a gate store, and one whose Redis does not answer, calls ungated.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

import httpx

from shared.errors import RamifyError, TransientError
from shared.providers.gates.gate_store import (
    Admission,
    CallOutcome,
    CallReport,
    GateAnswer,
    GateStore,
    GateVerdict,
    limits_of,
)
from shared.settings import Settings
from shared.settings.services import ProviderKind, ProviderSettings

#: A connection that is not made within this time counts as a failure, however little time the call had (s).
_CONNECT_S = 3.0
#: A patient call looks again this often while another one probes (s).
_LOOK_S = 0.5
#: Calls that were held back together go within a tenth of the wait, and within this time (s).
_SPREAD_S = 1.0
#: Clocks and rounding: a call that had nearly all of a time had all of it.
_NEARLY = 0.9
_WHY_CHARS = 200
#: Seconds that Redis gets to say whether a call may go.
_REDIS_S = 1.0
_log = logging.getLogger("ramify.gates")

#: What sentences call a provider.
NAMES: dict[ProviderKind, str] = {
    "llm": "LLM server", "embedding": "embedding server", "rerank": "rerank server", "qdrant": "Qdrant",
}  # fmt: skip


class UnreachableError(TransientError):
    """The provider failed: no connection, 5xx, cut off, or too slow. These open the breaker."""


class BusyError(TransientError):
    """The provider lives and wants fewer requests (429). All workers pause."""


class UnsureError(TransientError):
    """A call that ended without telling how the provider is: its own time was too short."""


class GateError(TransientError):
    """The call was not made: the breaker is open, a pause is on, or the rate limit is used up.

    `retry_after` is the number of seconds until it is worth while to try again.
    """


class _Process:
    """The gate store of this process; None: its calls are ungated."""

    store: GateStore | None = None


def gate_store() -> GateStore | None:
    """The gate store of this process, if it shares one."""
    return _Process.store


def share(settings: Settings) -> None:
    """Let the gates of this process be those of all: over the Redis of `settings`, which is asked at the first call.

    Raises: NotRunningError when no URL is known, SettingsError when it is no Redis URL.
    """
    from shared.connections.connect import connect  # noqa: PLC0415 - the command line starts without Redis

    _Process.store = GateStore(connect(settings, retries=1, timeout_s=min(_REDIS_S, settings.redis.timeout_s)))


def nothing() -> None:
    """A hook that does nothing."""


def time_of_day(seconds: float | None) -> str:
    """Unix seconds as people read them: 14:05:09 UTC."""
    return f"{datetime.fromtimestamp(seconds or 0, UTC):%H:%M:%S} UTC"


def host_of(url: str) -> str:
    """Host and port, without user and password."""
    return httpx.URL(url).netloc.decode("ascii", "replace")


class _Entry(NamedTuple):
    token: str
    watched: bool


class Gate:
    """The gate of one provider, a kind of server at one host. Thread-safe; its state is in the gate store."""

    def __init__(
        self,
        kind: ProviderKind,
        url: str,
        providers: ProviderSettings,
        store_of: Callable[[], GateStore | None] = gate_store,
    ) -> None:
        self._kind, self._store_of = kind, store_of
        self._limit, self._breaker = providers.limit(kind), providers.breaker
        self._limits = limits_of(providers, self._limit)
        host = host_of(url)
        self.name, self._what = f"{kind}:{host}", f"{NAMES[kind]} at {host}"
        self._warned = False

    @contextmanager
    def passed(
        self, deadline: float, attempt_s: float, before: Callable[[], None] = nothing, *, patient_until: float = 0.0
    ) -> Iterator[None]:
        """One call of the provider, which is the block: how that ends decides whether others may go.

        Waits for a turn until `deadline` (on `time.monotonic`) at most, and until `patient_until` for a breaker that is
        open. `attempt_s` bounds the call, in seconds; `before` runs when the call may go, right before it.
        Raises: GateError when it may not go, and what `before` and the block raise.
        """
        entry = self._enter(deadline, attempt_s, patient_until)
        try:
            before()
        except BaseException:
            self._leave(entry, CallReport(CallOutcome.UNSURE, entry.token))
            raise
        try:
            yield
        except BaseException as error:
            self._leave(entry, self._report(error, entry.token))
            raise
        self._leave(entry, CallReport(CallOutcome.ANSWERED, entry.token))

    def too_slow(self, message: str, had_s: float, attempt_s: float, *, connecting: bool = False) -> TransientError:
        """The error of a call that was not answered within `had_s` seconds; `attempt_s` is the most that one gets.

        A call that its job left little time says nothing about the provider.
        """
        enough = min(attempt_s, self._breaker.slow_s, _CONNECT_S if connecting else attempt_s)
        return UnreachableError(message) if had_s >= _NEARLY * enough else UnsureError(message)

    def _enter(self, deadline: float, attempt_s: float, patient_until: float) -> _Entry:
        token, turn = secrets.token_hex(8), False
        if (store := self._store_of()) is None:
            self._warn_of_limit()
            return _Entry(token, watched=False)
        while True:
            left = max(0.0, deadline - time.monotonic())
            lease = min(attempt_s, left, self._breaker.longest_open_s)
            answer = store.enter(self.name, self._limits, Admission(token, lease * 1000, left * 1000, turn))
            wait = answer.wait / 1000
            match answer.verdict:
                case GateVerdict.GO:
                    return _Entry(token, answer.watched)
                case GateVerdict.FULL:
                    raise self._refusal(answer)
                case GateVerdict.OPEN | GateVerdict.PROBING:
                    wait = wait if answer.verdict is GateVerdict.OPEN else min(wait, _LOOK_S)
                    if time.monotonic() + wait > patient_until:
                        raise self._refusal(answer)
                case GateVerdict.TURN:
                    turn = True
            if wait > left:
                raise self._refusal(answer)
            if not turn:
                wait += min(wait, _SPREAD_S * 10) * secrets.randbelow(100) / 1000
            time.sleep(min(wait, left))

    def _leave(self, entry: _Entry, report: CallReport) -> None:
        """The gate store is told every failure; a success only where it waits for one."""
        store = self._store_of()
        if store is None or (report.outcome in (CallOutcome.ANSWERED, CallOutcome.UNSURE) and not entry.watched):
            return
        news = store.leave(self.name, self._limits, report)
        if news == "opened":
            _log.warning("%s is left alone for a while: it %s", self._what, report.why)
        elif news == "closed":
            _log.info("%s answers again", self._what)

    def _warn_of_limit(self) -> None:
        """Once a gate: the rate limit is kept in Redis, and this process shares none."""
        if self._limit.requests_per_minute and not self._warned:
            self._warned = True
            _log.warning(
                "%s: providers.%s.requests_per_minute does not hold in this process, which shares no gates in Redis",
                self._what, self._kind,
            )  # fmt: skip

    def _report(self, error: BaseException, token: str) -> CallReport:
        why = str(error).removeprefix(self._what).removeprefix(NAMES[self._kind]).strip()[:_WHY_CHARS]
        match error:
            case UnreachableError() | BusyError():
                busy = isinstance(error, BusyError)
                pause = (error.retry_after or 0.0) * 1000
                return CallReport(CallOutcome.BUSY if busy else CallOutcome.FAILED, token, pause, why)
            case UnsureError():
                return CallReport(CallOutcome.UNSURE, token)
            case RamifyError():  # refused for good, or unusable: it answers all the same
                return CallReport(CallOutcome.ANSWERED, token)
            case _:
                return CallReport(CallOutcome.UNSURE, token)

    def _refusal(self, answer: GateAnswer) -> GateError:
        """The same words for all calls of one opening or pause: a job says them once."""
        wait = answer.wait / 1000
        until = f"until {time_of_day(answer.until / 1000)}"
        failures = f"{answer.failures} failure{'s' if answer.failures != 1 else ''}"
        failed = f"after {failures} in a row, the last: it {answer.why}"
        match answer.verdict:
            case GateVerdict.OPEN:
                sentence = f"is left alone for {answer.span / 1000:.3g} s, {until}, {failed}"
            case GateVerdict.PROBING:
                sentence = f"is left alone while one call tries it again, {failed}"
            case GateVerdict.PAUSED:
                sentence = f"wants no request {until}, and no time is left after that"
            case _:
                limit = f"{self._limit.requests_per_minute:g} requests a minute"
                sentence = (
                    f"gets no more than {limit} (providers.{self._kind}.requests_per_minute): the next turn is in "
                    f"{max(wait, 1):.0f} s, and no time is left after that"
                )
        return GateError(f"{self._what} {sentence}", wait)


class Ungated:
    """Stands in where there is no gate: every call goes."""

    @contextmanager
    def passed(
        self,
        deadline: float,  # noqa: ARG002
        attempt_s: float,  # noqa: ARG002
        before: Callable[[], None] = nothing,
        *,
        patient_until: float = 0.0,  # noqa: ARG002
    ) -> Iterator[None]:
        """Runs `before`, then the block."""
        before()
        yield

    def too_slow(
        self,
        message: str,
        had_s: float,  # noqa: ARG002
        attempt_s: float,  # noqa: ARG002
        *,
        connecting: bool = False,  # noqa: ARG002
    ) -> TransientError:
        """A plain TransientError."""
        return TransientError(message)
