"""Doctor's look at the gates of the model servers and Qdrant: which are left alone, why, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from redis.exceptions import RedisError

from orchestrator.local.checks import Check
from shared.gates.gate import NAMES
from shared.gates.state import GateState, providers, read_gates
from shared.job_store.connect import connect
from shared.settings import Settings

_TIMEOUT_S = 3.0


def examine(settings: Settings, connected: Settings | None) -> Sequence[Check]:
    """One line for each provider that the settings name; none where they name none."""
    if not list(providers(settings)):
        return ()
    if connected is None:
        return (Check(name="gates", ok=None, detail="not running", fix="ramify up -d"),)
    try:
        with connect(connected, retries=0, timeout_s=min(connected.redis.timeout_s, _TIMEOUT_S)) as client:
            return [_check(state) for state in read_gates(client, settings)]
    except RedisError as error:
        return (Check(name="gates", ok=None, detail=f"cannot be read from Redis ({type(error).__name__})"),)


def _check(state: GateState) -> Check:
    name, where = f"{state.provider} gate", f"{NAMES[state.provider]} at {state.host}"
    limit = ""
    if state.tokens is not None:
        limit = f"; {state.tokens} requests may go at once, of {state.requests_per_minute:g} a minute"
    failures = f"{state.failures} failure{'s' if state.failures != 1 else ''} in a row, the last: it {state.why}"
    fix = "see that server's log; it is tried again by itself"
    if state.state == "open":
        detail = f"{where} is left alone since {_at(state.since)}, until {_at(state.until)}, after {failures}{limit}"
        return Check(name=name, ok=False, detail=detail, fix=fix)
    if state.state == "half-open":
        past = f"was left alone from {_at(state.since)} to {_at(state.until)}, after {failures}"
        return Check(name=name, ok=False, detail=f"{where} {past}; the next call tries it{limit}", fix=fix)
    if state.paused_until is not None:
        detail = f"{where} wants no request before {_at(state.paused_until)}{limit}"
        return Check(name=name, ok=None, detail=detail, fix=f"set providers.{state.provider}.requests_per_minute")
    note = f", {failures}" if state.failures else ""
    return Check(name=name, ok=True, detail=f"{where}: calls go{note}{limit}")


def _at(seconds: float | None) -> str:
    return f"{datetime.fromtimestamp(seconds or 0, UTC):%H:%M:%S} UTC"
