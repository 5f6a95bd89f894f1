"""The board of one process, for when there is no Redis: the rules of lua/*.lua once more, held to them by one test."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from shared.gates.board import REMEMBERED_MS, Answer, Ask, Outcome, Report, Terms, Verdict

#: Unix time of the monotonic clock's zero: a wall clock that steps must not keep a provider closed.
_EPOCH_S = time.time() - time.monotonic()


@dataclass(slots=True)
class _State:
    """Times in Unix ms. `open_until` is 0 while the breaker is closed."""

    tat: float = 0
    pause_until: float = 0
    strikes: int = 0
    fails: int = 0
    failed_at: float = 0
    why: str = ""
    trips: int = 0
    span: float = 0
    open_until: float = 0
    probe: str = ""
    probe_until: float = 0
    kept_until: float = 0


class LocalBoard:
    """Safe for threads. Keeps a few numbers for each provider, for ever: there are few providers."""

    def __init__(self, now_ms: Callable[[], float] = lambda: (time.monotonic() + _EPOCH_S) * 1000) -> None:
        self._now = now_ms
        self._lock = Lock()
        self._states: dict[str, _State] = defaultdict(_State)

    def enter(self, name: str, terms: Terms, ask: Ask) -> Answer:
        """As lua/enter.lua."""
        with self._lock:
            now = self._now()
            return _entered(self._state(name, now), terms, ask, now)

    def leave(self, name: str, terms: Terms, report: Report) -> str:
        """As lua/leave.lua."""
        with self._lock:
            now = self._now()
            state = self._state(name, now)
            news = _left(state, terms, report, now)
            _pause(state, terms, report, now)
            last = max(now, state.tat, state.open_until, state.pause_until, state.probe_until)
            state.kept_until = last + REMEMBERED_MS
            return news

    def _state(self, name: str, now: float) -> _State:
        if now > self._states[name].kept_until:
            self._states[name] = _State()
        return self._states[name]


def _entered(state: _State, terms: Terms, ask: Ask, now: float) -> Answer:
    half_open = bool(terms.failures and state.open_until)
    held_back = (
        (_left_alone(state, ask, now) if half_open else None) or _paused(state, now) or _turn(state, terms, ask, now)
    )
    if held_back:
        return held_back
    if half_open:
        state.probe, state.probe_until = ask.token, now + min(ask.lease, terms.longest_open)
        state.kept_until = max(state.kept_until, state.probe_until + REMEMBERED_MS)
        return Answer(Verdict.GO, probe=True, watched=True)
    return Answer(Verdict.GO, watched=bool(state.fails or state.strikes or state.open_until))


def _left_alone(state: _State, ask: Ask, now: float) -> Answer | None:
    known = Answer(Verdict.PROBING, failures=state.fails, why=state.why)
    if now < state.open_until:
        wait = math.ceil(state.open_until - now)
        return known._replace(verdict=Verdict.OPEN, wait=wait, span=state.span, until=state.open_until)
    if state.probe not in ("", ask.token) and now < state.probe_until:
        return known._replace(wait=math.ceil(state.probe_until - now))
    return None


def _paused(state: _State, now: float) -> Answer | None:
    left = math.ceil(state.pause_until - now)
    return Answer(Verdict.PAUSED, left, until=state.pause_until) if left > 0 else None


def _turn(state: _State, terms: Terms, ask: Ask, now: float) -> Answer | None:
    if not terms.interval or ask.turn:
        return None
    tat = max(state.tat, now) + terms.interval
    wait = math.ceil(tat - terms.burst * terms.interval - now)
    if wait > ask.left:
        return Answer(Verdict.FULL, wait)
    state.tat, state.kept_until = tat, max(state.kept_until, tat + REMEMBERED_MS)
    return Answer(Verdict.TURN, wait) if wait > 0 else None


def _left(state: _State, terms: Terms, report: Report, now: float) -> str:
    is_open, is_probe = bool(state.open_until), state.probe == report.token
    if report.outcome in (Outcome.ANSWERED, Outcome.BUSY):
        strikes = 0 if report.outcome is Outcome.ANSWERED else state.strikes
        state.fails = state.trips = 0
        state.open_until, state.probe_until, state.probe, state.strikes = 0, 0, "", strikes
        return "closed" if is_open else ""
    if report.outcome is Outcome.FAILED and (is_probe or not is_open):
        forgotten = not is_open and now - state.failed_at > REMEMBERED_MS
        state.fails = 1 if forgotten else state.fails + 1
        state.failed_at, state.why = now, report.why
        if is_open or (terms.failures and state.fails >= terms.failures):
            state.trips += 1
            state.span = min(terms.first_open * 2 ** min(state.trips - 1, 30), terms.longest_open)
            state.open_until, state.probe_until, state.probe = now + state.span, 0, ""
            return "opened"
    elif is_probe:
        state.probe, state.probe_until = "", 0
    return ""


def _pause(state: _State, terms: Terms, report: Report, now: float) -> None:
    if report.pause > 0:
        state.pause_until = max(state.pause_until, now + min(report.pause, terms.longest_pause))
    elif report.outcome is Outcome.BUSY and now >= state.pause_until:
        strikes = 0 if now - state.pause_until > REMEMBERED_MS else state.strikes
        state.pause_until = now + min(terms.first_pause * 2 ** min(strikes, 30), terms.longest_pause)
        state.strikes = strikes + 1
