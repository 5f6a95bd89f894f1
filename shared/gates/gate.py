"""Every call of a provider goes through its gate: it waits for its turn, or is refused at once with the reason."""

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
from shared.gates.board import Answer, Ask, Board, Outcome, Report, Verdict, terms_of
from shared.gates.faults import BusyError, GateError, UnreachableError, UnsureError
from shared.gates.process import board
from shared.settings.providers import ProviderKind, Providers

#: A connection that is not made within this time counts as a failure, however little time the call had (s).
_CONNECT_S = 3.0
#: A patient call looks again this often while another one probes (s).
_LOOK_S = 0.5
#: Calls that were held back together go within a tenth of the wait, and within this time (s).
_SPREAD_S = 1.0
#: Clocks and rounding: a call that had nearly all of a time had all of it.
_NEARLY = 0.9
_WHY_CHARS = 200
_log = logging.getLogger("ramify.gates")

#: What sentences call a provider.
NAMES: dict[ProviderKind, str] = {
    "llm": "LLM server", "embedding": "embedding server", "rerank": "rerank server", "qdrant": "Qdrant",
}  # fmt: skip


def nothing() -> None:
    """A hook that does nothing."""


def host_of(url: str) -> str:
    """Host and port, without user and password."""
    return httpx.URL(url).netloc.decode("ascii", "replace")


class _Entry(NamedTuple):
    token: str
    watched: bool


class Gate:
    """The gate of one provider, a kind of server at one host. Thread-safe; its state is the board's."""

    def __init__(
        self, kind: ProviderKind, url: str, providers: Providers, board_of: Callable[[], Board] = board
    ) -> None:
        self._kind, self._board = kind, board_of
        self._limit, self._breaker = providers.limit(kind), providers.breaker
        self._terms = terms_of(providers, self._limit)
        host = host_of(url)
        self.name, self._what = f"{kind}:{host}", f"{NAMES[kind]} at {host}"

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
            self._leave(entry, Report(Outcome.UNSURE, entry.token))
            raise
        try:
            yield
        except BaseException as error:
            self._leave(entry, self._report(error, entry.token))
            raise
        self._leave(entry, Report(Outcome.ANSWERED, entry.token))

    def too_slow(self, message: str, had_s: float, attempt_s: float, *, connecting: bool = False) -> TransientError:
        """The error of a call that was not answered within `had_s` seconds; `attempt_s` is the most that one gets.

        A call that its job left little time says nothing about the provider.
        """
        enough = min(attempt_s, self._breaker.slow_s, _CONNECT_S if connecting else attempt_s)
        return UnreachableError(message) if had_s >= _NEARLY * enough else UnsureError(message)

    def _enter(self, deadline: float, attempt_s: float, patient_until: float) -> _Entry:
        token, turn = secrets.token_hex(8), False
        while True:
            left = max(0.0, deadline - time.monotonic())
            lease = min(attempt_s, left, self._breaker.longest_open_s)
            ask = Ask(token, lease * 1000, left * 1000, turn)
            answer = self._board().enter(self.name, self._terms, ask)
            wait = answer.wait / 1000
            match answer.verdict:
                case Verdict.GO:
                    return _Entry(token, answer.watched)
                case Verdict.FULL:
                    raise self._refusal(answer)
                case Verdict.OPEN | Verdict.PROBING:
                    wait = wait if answer.verdict is Verdict.OPEN else min(wait, _LOOK_S)
                    if time.monotonic() + wait > patient_until:
                        raise self._refusal(answer)
                case Verdict.TURN:
                    turn = True
            if wait > left:
                raise self._refusal(answer)
            if not turn:
                wait += min(wait, _SPREAD_S * 10) * secrets.randbelow(100) / 1000
            time.sleep(min(wait, left))

    def _leave(self, entry: _Entry, report: Report) -> None:
        """The board hears of every failure; of a success only where it waits for one."""
        if report.outcome in (Outcome.ANSWERED, Outcome.UNSURE) and not entry.watched:
            return
        news = self._board().leave(self.name, self._terms, report)
        if news == "opened":
            _log.warning("%s is left alone for a while: it %s", self._what, report.why)
        elif news == "closed":
            _log.info("%s answers again", self._what)

    def _report(self, error: BaseException, token: str) -> Report:
        why = str(error).removeprefix(self._what).removeprefix(NAMES[self._kind]).strip()[:_WHY_CHARS]
        match error:
            case UnreachableError() | BusyError():
                busy = isinstance(error, BusyError)
                pause = (error.retry_after or 0.0) * 1000
                return Report(Outcome.BUSY if busy else Outcome.FAILED, token, pause, why)
            case UnsureError():
                return Report(Outcome.UNSURE, token)
            case RamifyError():  # refused for good, or unusable: it answers all the same
                return Report(Outcome.ANSWERED, token)
            case _:
                return Report(Outcome.UNSURE, token)

    def _refusal(self, answer: Answer) -> GateError:
        """The same words for all calls of one opening or pause: a job says them once."""
        wait = answer.wait / 1000
        until = f"until {datetime.fromtimestamp(answer.until / 1000, UTC):%H:%M:%S} UTC"
        failures = f"{answer.failures} failure{'s' if answer.failures != 1 else ''}"
        failed = f"after {failures} in a row, the last: it {answer.why}"
        match answer.verdict:
            case Verdict.OPEN:
                sentence = f"is left alone for {answer.span / 1000:.3g} s, {until}, {failed}"
            case Verdict.PROBING:
                sentence = f"is left alone while one call tries it again, {failed}"
            case Verdict.PAUSED:
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
