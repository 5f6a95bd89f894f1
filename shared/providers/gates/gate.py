"""The gate of a server that Ramify calls: every call waits for its turn, or is refused at once with the reason.

One rate limit, one pause and one circuit breaker for all workers; their state is in Redis (`gate_store`). A process
without a gate store, and one whose Redis does not answer, calls without limits.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime

import httpx

from shared.errors import RamifyError, TransientError
from shared.models import Lane
from shared.providers.gates.cut_off import CutOffs
from shared.providers.gates.gate_store import (
    Admission,
    CallOutcome,
    CallReport,
    GateAnswer,
    GateStore,
    GateVerdict,
    limits_of,
)
from shared.providers.lanes import LENT_PLACES, running_lane
from shared.settings import Settings
from shared.settings.services import ProviderKind, ProviderSettings

#: A connection that is not made within this time counts as a failure, however little time the call had (s).
_CONNECT_S = 3.0
#: While another call probes, a patient call asks again this often (s).
_PROBE_POLL_S = 0.5
#: Waiting calls are spread over a tenth of the wait, and over at most this time, so that they do not go at once (s).
_SPREAD_S = 1.0
#: A call that had this part of a time limit counts as one that had all of it: clocks differ and times are rounded.
_NEARLY = 0.9
_MAX_REASON_CHARS = 200
#: A batch call that waits for so long lends its thread's place to interactive work (s).
_LENDS_S = 0.5
_REDIS_TIMEOUT_S = 1.0
_log = logging.getLogger("ramify.gates")

#: How sentences name a kind of provider.
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


#: By the name of the gate: several clients of one process may call the same provider.
_cut_offs: dict[str, CutOffs] = {}
_process_store: GateStore | None = None


def gate_store() -> GateStore | None:
    """The gate store of this process, if it shares one."""
    return _process_store


def share(settings: Settings) -> None:
    """Let the gates of this process use the Redis of `settings`, which is asked at the first call.

    Raises: NotRunningError when no URL is known, SettingsError when it is no Redis URL.
    """
    from shared.connections.connect import connect  # noqa: PLC0415 - the command line starts without Redis

    global _process_store  # noqa: PLW0603 - one gate store a process
    _process_store = GateStore(connect(settings, retries=1, timeout_s=min(_REDIS_TIMEOUT_S, settings.redis.timeout_s)))


def time_of_day(seconds: float | None) -> str:
    """Unix seconds as people read them: 14:05:09 UTC."""
    return f"{datetime.fromtimestamp(seconds or 0, UTC):%H:%M:%S} UTC"


def host_of(url: str) -> str:
    """Host and port, without user and password."""
    return httpx.URL(url).netloc.decode("ascii", "replace")


class Gate:
    """The gate of one provider, a kind of server at one host. Thread-safe; its state is in the gate store.

    `server` is how sentences name it, with its host, and `server_kind` without.
    """

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
        self.name, self.server_kind, self.server = f"{kind}:{host}", NAMES[kind], f"{NAMES[kind]} at {host}"
        # Without Qdrant there is no answer: whoever has little time tries it all the same.
        failures = 0 if kind == "qdrant" else self._breaker.failures
        self._cut_offs = _cut_offs.setdefault(self.name, CutOffs(failures))
        self._warned = False

    @contextmanager
    def admit(
        self,
        deadline: float,
        attempt_s: float,
        before: Callable[[], None] = lambda: None,
        *,
        patient_until: float = 0.0,
    ) -> Iterator[None]:
        """One call of the provider, which is the block: how that ends decides whether others may go.

        Waits for a turn until `deadline` (on `time.monotonic`) at most, and until `patient_until` for a breaker that is
        open. `attempt_s` bounds the call, in seconds; `before` runs when the call may go, right before it.
        Raises: GateError when it may not go, and what `before` and the block raise.
        """
        token = secrets.token_hex(8)
        self._check_cut_offs(min(attempt_s, deadline - time.monotonic()))
        watched = self._acquire(token, deadline, attempt_s, patient_until)
        called = False
        try:
            before()
            called = True
            yield
        except BaseException as error:
            if isinstance(error, TransientError):
                error.provider = self._kind
            self._release(self._report(error, token) if called else CallReport(CallOutcome.UNSURE, token), watched)
            raise
        self._cut_offs.answered()
        self._release(CallReport(CallOutcome.ANSWERED, token), watched)

    def too_slow(self, message: str, had_s: float, attempt_s: float, *, connecting: bool = False) -> TransientError:
        """The error of a call that was not answered within `had_s` seconds; `attempt_s` is the most that one gets.

        A call that its job left little time says nothing about the provider, but to calls with less (`CutOffs`).
        """
        if had_s < _NEARLY * attempt_s:
            self._cut_offs.note(had_s)
        enough = min(attempt_s, self._breaker.slow_s, _CONNECT_S if connecting else attempt_s)
        return UnreachableError(message) if had_s >= _NEARLY * enough else UnsureError(message)

    def _check_cut_offs(self, may_take_s: float) -> None:
        """Raises: GateError for a call with no more time than one had that was just cut off without an answer."""
        if (last := self._cut_offs.against(may_take_s)) is not None:
            left = last.until - time.monotonic()
            until, had = time_of_day(time.time() + left), f"{last.had_s:.3g} s"
            raise self._refused(f"did not answer within {had}, and is asked by no call with less until {until}", left)

    def _acquire(self, token: str, deadline: float, attempt_s: float, patient_until: float) -> bool:
        """Returns when the call may go: true when a success is to be reported, too. Raises: GateError."""
        turn, ticket, lane = False, "", running_lane()
        if (store := self._store_of()) is None:
            self._warn_of_limit()
            return False
        while True:
            left = max(0.0, deadline - time.monotonic())
            lease = min(attempt_s, left, self._breaker.longest_open_s)
            asked = Admission(token, lease * 1000, left * 1000, turn, lane, ticket)
            answer = store.acquire(self.name, self._limits, asked)
            wait = answer.wait / 1000
            if answer.verdict is GateVerdict.GO:
                return answer.watched
            if answer.verdict in (GateVerdict.OPEN, GateVerdict.PROBING):
                wait = wait if answer.verdict is GateVerdict.OPEN else min(wait, _PROBE_POLL_S)
                if time.monotonic() + wait > patient_until:
                    raise self._refusal(answer)
            turn, ticket = turn or answer.verdict is GateVerdict.TURN, answer.ticket or ticket
            if answer.verdict is GateVerdict.FULL or wait > left:
                raise self._refusal(answer)
            if answer.verdict not in (GateVerdict.TURN, GateVerdict.LINE):
                wait += min(wait, _SPREAD_S * 10) * secrets.randbelow(100) / 1000
            lends = lane is Lane.BATCH and wait >= _LENDS_S
            with LENT_PLACES.lent() if lends else nullcontext():
                time.sleep(min(wait, left))

    def _release(self, report: CallReport, watched: bool) -> None:
        """Report every failure to the store; a success, or a call that tells nothing, only where it waits for it."""
        store = self._store_of()
        if store is None or (report.outcome in (CallOutcome.ANSWERED, CallOutcome.UNSURE) and not watched):
            return
        change = store.release(self.name, self._limits, report)
        if change == "opened":
            _log.warning("%s is left alone for a while: it %s", self.server, report.why)
        elif change == "closed":
            _log.info("%s answers again", self.server)

    def _warn_of_limit(self) -> None:
        if self._limit.requests_per_minute and not self._warned:
            self._warned = True
            _log.warning(
                "%s: providers.%s.requests_per_minute does not hold in this process, which shares no gates in Redis",
                self.server, self._kind,
            )  # fmt: skip

    def _report(self, error: BaseException, token: str) -> CallReport:
        why = str(error).removeprefix(self.server).removeprefix(self.server_kind).strip()[:_MAX_REASON_CHARS]
        match error:
            case BusyError():
                return CallReport(CallOutcome.BUSY, token, (error.retry_after or 0.0) * 1000, why)
            case UnreachableError():
                return CallReport(CallOutcome.FAILED, token, (error.retry_after or 0.0) * 1000, why)
            case RamifyError() if not isinstance(error, UnsureError):
                return CallReport(CallOutcome.ANSWERED, token)  # refused for good, or unusable: it answers all the same
            case _:
                return CallReport(CallOutcome.UNSURE, token)

    def _refusal(self, answer: GateAnswer) -> GateError:
        """Identical text per opening of the breaker or pause, so that warnings deduplicate."""
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
        return self._refused(sentence, wait)

    def _refused(self, sentence: str, wait_s: float) -> GateError:
        refusal = GateError(f"{self.server} {sentence}", wait_s)
        refusal.provider = self._kind
        return refusal
