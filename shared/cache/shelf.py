"""The cache's side of Redis: entries, locks and counters. It decides nothing, and a Redis that fails is one error."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

import redis
from redis import Redis
from redis.commands.core import Script

from shared.cache.keys import STATS, Key
from shared.errors import RamifyError
from shared.job_store.codec import text

#: After a lost connection Redis is left alone this long (s): not every value should wait for the same time out.
REST_S = 2.0
_SCRIPTS = ("claim", "publish", "release", "renew")


class CacheDownError(RamifyError):
    """Redis cannot serve the cache. The message is the warning that the caller shows."""


class Claim(NamedTuple):
    """The answer to a claim: `entry` when it is there by now, else whether to lead; `discarded` a bad entry or not."""

    entry: bytes | None
    leads: bool
    discarded: bool


class Shelf:
    """Reads and writes for one client. Every key it writes has a TTL. All raise CacheDownError when Redis fails."""

    def __init__(self, client: Redis, ttl_s: int, stats_ttl_s: int) -> None:
        self._client, self._ttl_s, self._stats_ttl_s = client, ttl_s, stats_ttl_s
        self._scripts = {name: client.register_script(_source(name)) for name in _SCRIPTS}
        self._rest_until, self._fault = 0.0, ""
        self._uncounted: Counter[str] = Counter()
        self._counting = Lock()

    def read(self, keys: Sequence[Key]) -> list[bytes | None]:
        """The entries as stored, in one round trip; None for what is missing or no string."""
        with self._guard():
            found = self._client.mget([key.entry for key in keys])
        return [blob if isinstance(blob, bytes) else None for blob in found]

    def claim(self, keys: Sequence[Key], token: str, lease_s: float, bad: Mapping[Key, str]) -> list[Claim]:
        """Look again and ask to lead; `bad` names entries that did not verify, by sha1."""
        args = [(key, [token, _ms(lease_s), bad.get(key, "")]) for key in keys]
        replies = self._each("claim", [([key.entry, key.lock], rest) for key, rest in args])
        return [
            Claim(entry if text(status) == "entry" else None, text(status) == "leader", bool(discarded))
            for status, entry, discarded in replies
        ]

    def publish(self, blobs: Mapping[Key, bytes], token: str) -> None:
        """Store whole entries and give their locks back."""
        self._each("publish", [([key.entry, key.lock], [token, self._ttl_s, blob]) for key, blob in blobs.items()])

    def release(self, keys: Sequence[Key], token: str) -> None:
        """Give locks back."""
        self._each("release", [([key.lock], [token]) for key in keys])

    @contextmanager
    def leased(self, keys: Sequence[Key], token: str, lease_s: float, longest_s: float) -> Iterator[None]:
        """Keeps the locks while the block runs, for `longest_s` at most: a leader that hangs is replaced."""
        done = Event()
        until = time.monotonic() + longest_s

        def renew() -> None:
            while not done.wait(lease_s / 3) and time.monotonic() < until:
                with suppress(CacheDownError):  # a lost lease costs a second computation, nothing else
                    self._each("renew", [([key.lock], [token, _ms(lease_s)]) for key in keys])

        if keys:
            Thread(target=renew, name="ramify-cache-lease", daemon=True).start()
        try:
            yield
        finally:
            done.set()

    def count(self, kind: str, counts: Mapping[str, int]) -> None:
        """Add to the counters. Never raises: what Redis does not take now goes along with the next count."""
        with self._counting:
            self._uncounted.update({f"{kind}:{name}": number for name, number in counts.items() if number})
            due, self._uncounted = self._uncounted, Counter()
        if not due:
            return
        try:
            with self._guard(), self._client.pipeline(transaction=False) as pipe:
                for name, number in due.items():
                    pipe.hincrby(STATS, name, number)
                pipe.expire(STATS, self._stats_ttl_s)
                pipe.execute()
        except CacheDownError:
            with self._counting:
                self._uncounted.update(due)

    def counts(self) -> dict[str, int]:
        """All counters, `<kind>:<name>` -> number."""
        with self._guard():
            return {text(name): int(number) for name, number in self._client.hgetall(STATS).items()}

    def _each(self, name: str, calls: Sequence[tuple[list[str], list[Any]]]) -> list[Any]:
        script: Script = self._scripts[name]
        if not calls:
            return []
        with self._guard():
            if len(calls) == 1:  # a pipeline would ask first whether the script is known
                return [script(keys=calls[0][0], args=calls[0][1])]
            with self._client.pipeline(transaction=False) as pipe:
                for keys, args in calls:
                    script(keys=keys, args=args, client=pipe)
                return pipe.execute()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        if time.monotonic() < self._rest_until:
            raise CacheDownError(self._fault)
        try:
            yield
        except (redis.ConnectionError, redis.TimeoutError) as error:
            self._fault = f"The cache was left out: Redis does not answer ({type(error).__name__})."
            self._rest_until = time.monotonic() + REST_S
            raise CacheDownError(self._fault) from error
        except redis.RedisError as error:
            raise CacheDownError(f"The cache was left out: Redis refuses ({type(error).__name__}).") from error


def _ms(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _source(name: str) -> str:
    return resources.files("shared.cache").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")
