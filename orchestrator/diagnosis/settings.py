"""Whether the running pools have the settings of this process, and of each other. Changes nothing."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

from redis import Redis
from redis.exceptions import RedisError

from shared.connections.heartbeat import WorkerBeat, alive_workers, workers
from shared.errors import InputError
from shared.settings import Settings
from shared.settings.fingerprint import STRATEGY, Fingerprint, differences, fingerprint

RESTART = "restart them (`ramify down`, then `ramify up -d`), or give this command their settings"
#: Seconds for which what the pools said is not asked for again.
_KNOWN_S = 5.0
_MOST_NAMED = 6


class RunningSettings:
    """What the pools of one Redis run with, beside the settings of this process."""

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._client, self._own = client, fingerprint(settings)
        self._beats: Sequence[WorkerBeat] = ()
        self._until = 0.0

    def check_strategy(self, name: str | None) -> None:
        """Raises: InputError where only this process, or only the pools that run, have this strategy."""
        part = f"{STRATEGY}{name}"
        if not name or not (said := self._said()):
            return
        lacking = [beat for beat in said if part not in beat.settings]
        if part in self._own and lacking:
            raise InputError("strategy", name, f"{_pools(lacking)} started without it: {RESTART}")
        if part not in self._own and not lacking:
            raise InputError("strategy", name, "only the running pools have it: give this command their settings")

    def difference(self) -> str | None:
        """One sentence about the pools whose settings are others; None where there are none, or no pool tells."""
        return difference(self._own, self._said())

    def _said(self) -> Sequence[WorkerBeat]:
        """The pools that live and tell their settings; none where Redis fails: what is asked for next says so."""
        if time.monotonic() >= self._until:
            try:
                self._beats = telling(self._client)
            except RedisError:
                return ()
            self._until = time.monotonic() + _KNOWN_S
        return self._beats


def telling(client: Redis) -> Sequence[WorkerBeat]:
    """The workers that live and tell their settings. Raises: RedisError."""
    found = [beat for beat in workers(client) if beat.settings]
    alive = alive_workers(client, (beat.worker for beat in found), heartbeats=False)
    return [beat for beat in found if beat.worker in alive]


def difference(own: Fingerprint, beats: Sequence[WorkerBeat]) -> str | None:
    """Which of the pools differ from `own` in what, and what to do; None where none does."""
    groups = defaultdict[tuple[str, ...], list[WorkerBeat]](list)
    for beat in beats:
        if parts := differences(own, beat.settings):
            groups[parts].append(beat)
    if not groups:
        return None
    alike = all(beat.settings == beats[0].settings for beat in beats)
    said = [f"{'the running pools' if alike else _pools(group)} in {_listed(parts)}" for parts, group in groups.items()]
    among = "" if alike else ", and the pools differ from each other"
    return f"This command's settings differ from those of {'; '.join(said)}{among}: {RESTART}."


def _pools(beats: Sequence[WorkerBeat]) -> str:
    names = sorted({beat.pool or beat.worker for beat in beats})
    return f"{'pool' if len(names) == 1 else 'pools'} {', '.join(names)}"


def _listed(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
    return f"{', '.join(parts[:_MOST_NAMED])}{more}"
