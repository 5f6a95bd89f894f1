"""What was found in Redis and is not ours: kept for a person to look at, never handed to a worker.

Of what is set aside only the length is logged: it may be somebody's text or secret.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources

from pydantic import ValidationError
from redis import Redis

from shared.connections.key_types import declare
from shared.errors import shown
from shared.models.status import Quarantined

KEY = "ramify:quarantine"
#: What stands before the name of a key that was set aside.
KEPT_AS = f"{KEY}:"
declare({KEY: "list"})
#: Entries that are kept, the newest; bytes of each; seconds since the last one was added.
MOST, MOST_BYTES, TTL_S = 100, 4096, 7 * 86_400
_log = logging.getLogger("ramify.quarantine")


class Quarantine:
    """The list, and the keys of a wrong type. May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    def add(self, found_in: str, raw: bytes, reason: str) -> None:
        """Keep the head of a message, which stood in the queue or key `found_in`."""
        _log.error("set aside a message of %d bytes in %s: %s", len(raw), found_in, reason)
        self._keep(found_in, reason, len(raw), raw[:MOST_BYTES])

    def take_wrong_keys(self, types: Mapping[str, str]) -> list[str]:
        """Rename those of the keys that hold another type than the one beside them. Returns their names."""
        keys = [name for key in types for name in (key, f"{KEPT_AS}{key}")]
        found = self._client.eval(_script(), len(keys), *keys, TTL_S, MOST_BYTES, *types.values())
        taken = []
        for name, kind, length, head in zip(*(iter(found),) * 4, strict=True):
            key = name.decode()
            reason = f"the key was a {kind.decode()}, not a {types[key]}; it is kept as {shown(KEPT_AS + key)}"
            _log.error("set aside the key %s, of length %d: %s", shown(key), length, reason)
            self._keep(key, reason, length, head, kept_as=f"{KEPT_AS}{key}")
            taken.append(key)
        return taken

    def _keep(self, found_in: str, reason: str, length: int, head: bytes, kept_as: str = "") -> None:
        entry = Quarantined(
            at=time.time(), found_in=found_in, reason=reason, length=length,
            head=head.decode("utf-8", "backslashreplace"), kept_as=kept_as,
        )  # fmt: skip
        with self._client.pipeline(transaction=True) as pipe:
            pipe.lpush(KEY, entry.model_dump_json())
            pipe.ltrim(KEY, 0, MOST - 1)
            pipe.expire(KEY, TTL_S)
            pipe.execute()

    def list(self) -> Iterator[Quarantined]:
        """The newest first."""
        for raw in self._client.lrange(KEY, 0, MOST - 1):
            try:
                yield Quarantined.of_record(raw)
            except ValidationError:
                continue

    def count(self) -> int:
        """How many there are, `MOST` at most."""
        return int(self._client.llen(KEY))

    def clear(self) -> int:
        """Forget them all. Returns how many there were."""
        there = self.count()
        kept = {entry.kept_as for entry in self.list() if entry.kept_as.startswith(KEPT_AS)}
        self._client.unlink(KEY, *kept)
        return there


@cache
def _script() -> str:
    return resources.files("shared.connections").joinpath("lua", "set_aside_keys.lua").read_text(encoding="utf-8")
