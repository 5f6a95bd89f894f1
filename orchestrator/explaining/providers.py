"""Which model servers are left alone now, by their gates in Redis."""

from __future__ import annotations

from redis import Redis

from shared.gates.gate import NAMES, time_of_day
from shared.gates.state import read_gates
from shared.settings import Settings


def left_alone(client: Redis, settings: Settings) -> tuple[str, ...]:
    """A sentence for each provider that the settings name and that is paused, or whose breaker is open.

    Raises: redis.exceptions.RedisError.
    """
    said = []
    for gate in read_gates(client, settings):
        name = f"{'' if gate.provider == 'qdrant' else 'the '}{NAMES[gate.provider]} at {gate.host}"
        if gate.state == "open":
            failures = f"{gate.failures} failures in a row: it {gate.why}"
            said.append(f"{name} is left alone until {time_of_day(gate.until)} after {failures}")
        elif gate.paused_until:
            said.append(f"{name} wants no request until {time_of_day(gate.paused_until)}")
    return tuple(said)
