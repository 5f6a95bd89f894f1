"""Computes a value once for all threads, processes and jobs, and keeps it in Redis. A broken Redis never fails a job.

Single flight: of the threads of a process one computes a value and the others wait; between processes a lock in Redis
decides, whose lease ends when its holder dies. A call computes what it leads before it waits for others, so two
calls never wait for each other. Waiting processes poll, and take over from a leader that died.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from threading import Event, Lock
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, Field
from redis import Redis

from shared.cache_entries import (
    CacheDownError,
    CacheEntryError,
    CacheKey,
    RedisEntries,
    cache_key,
    decode_entry,
    encode_entry,
)
from shared.errors import NotRunningError
from shared.models.base import Model
from shared.settings import Settings

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

#: The kind of whole leaves, which have a switch of their own (`cache.leaves`).
LEAF = "leaf"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.1
#: A leader that dies delays its followers by one lease, which is shorter than their longest wait.
_LONGEST_LEASE_S, _SHORTEST_LEASE_S = 5.0, 0.5


class CacheStatus(StrEnum):
    """Where a value came from. `bypassed`: computed without the cache, which is off, broken or took too long."""

    HIT = "hit"
    COMPUTED = "computed"
    WAITED = "waited"
    BYPASSED = "bypassed"


class CacheResult(Model):
    """How a value was got; `warning` is a sentence for the user when something went wrong."""

    status: CacheStatus
    warning: str = ""

    @property
    def reused(self) -> bool:
        """True when nobody computed it for this caller."""
        return self.status in {CacheStatus.HIT, CacheStatus.WAITED}


class CacheStats(Model):
    """Counts of one kind, over all processes. `rejected`: stored entries that did not verify and were deleted."""

    hit: int = Field(default=0, ge=0)
    computed: int = Field(default=0, ge=0)
    waited: int = Field(default=0, ge=0)
    bypassed: int = Field(default=0, ge=0)
    rejected: int = Field(default=0, ge=0)

    @property
    def asked(self) -> int:
        """Values that were asked for."""
        return self.hit + self.computed + self.waited + self.bypassed

    @property
    def hit_rate(self) -> float:
        """Values that nobody had to compute for this caller (hit or waited), as a fraction of 1; 0 when none."""
        return (self.hit + self.waited) / self.asked if self.asked else 0.0


class InFlight(Event):
    """A value that a thread of this process computes now. Set when it has ended; `value` is None when it failed."""

    def __init__(self) -> None:
        super().__init__()
        self.started = time.monotonic()
        self.value: BaseModel | None = None


class SingleFlight:
    """Which values the threads of this process compute now."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: dict[str, InFlight] = {}

    def join(self, name: str, longest_s: float) -> tuple[InFlight, bool]:
        """The flight of `name`, and True for the thread that has to compute it and to call `finish` in every case.

        A flight older than `longest_s` seconds is replaced: its thread hangs.
        """
        with self._lock:
            flight = self._open.get(name)
            if flight is not None and time.monotonic() - flight.started <= longest_s:
                return flight, False
            self._open[name] = flight = InFlight()
            return flight, True

    def finish(self, name: str, flight: InFlight, value: BaseModel | None) -> None:
        """Hand the value to those who wait; None when it failed, and one of them computes next."""
        with self._lock:
            if self._open.get(name) is flight:
                del self._open[name]
        flight.value = value
        flight.set()


class Cache:
    """Values by what they depend on. One per process, shared by its threads.

    `parts` holds everything a value depends on: `tenant` (required), content, model name, filters, namespace, index
    version. `kind` is a lower-case word: embedding, rewrite, rerank, leaf. Values are frozen models; treat them so.
    """

    def __init__(self, client: Redis, settings: Settings) -> None:
        self.settings, self.flights = settings.cache, SingleFlight()
        kept = settings.cache
        self.entries = RedisEntries(client, kept.ttl_s, settings.jobs.ttl_s, kept.max_mb * 1_000_000)

    def get_or_compute(  # noqa: PLR0913 - what is asked for, how to get it, and how long to wait
        self,
        kind: str,
        parts: Mapping[str, object],
        model: type[M],
        compute: Callable[[], M],
        *,
        wait_s: float,
        keep: Callable[[M], bool] = lambda _: True,
    ) -> tuple[M, CacheResult]:
        """The value of `parts`: stored, computed by another worker just now, or computed here.

        Waits `wait_s` seconds at most for another worker, then computes. Redis that fails is a warning in the result.
        A value that `keep` does not want is its caller's alone: it is not stored, and those who wait compute theirs.

        Raises: InputError for parts that make no key; whatever `compute` raises, and then nothing is stored and one
        of those who waited computes next.
        """
        return self.get_or_compute_many(kind, [parts], model, lambda _: [compute()], wait_s=wait_s, keep=keep)[0]

    def get_or_compute_many(  # noqa: PLR0913 - as above
        self,
        kind: str,
        keys: Sequence[Mapping[str, object]],
        model: type[M],
        compute_missing: Callable[[list[int]], list[M]],
        *,
        wait_s: float,
        keep: Callable[[M], bool] = lambda _: True,
    ) -> list[tuple[M, CacheResult]]:
        """The same for many parts, in their order: one read, and one call for all that is missing.

        `compute_missing` takes positions in `keys` and returns a value for each, in that order; equal parts are
        computed once. It is called again only for what another worker had begun and did not finish.

        Raises: as `get_or_compute`; ValueError when `compute_missing` returns another number of values.
        """
        names = [cache_key(kind, parts, model) for parts in keys]
        if not names or not self.caches(kind):
            values = compute_missing(list(range(len(names)))) if names else []
            return [(value, CacheResult(status=CacheStatus.BYPASSED)) for value in values]
        positions = {name: names.index(name) for name in names}
        lookup = CacheLookup(self, positions, model, compute_missing, keep, wait_s)
        try:
            found = lookup.run()
        finally:
            self.entries.count({f"{kind}:{name}": number for name, number in lookup.counts().items()})
        return [found[name] for name in names]

    def caches(self, kind: str) -> bool:
        """Whether the settings want this kind cached."""
        return self.settings.enabled and (kind != LEAF or self.settings.leaves)

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Kind -> entries and their bytes. Raises: NotRunningError when Redis does not answer."""
        with _running():
            return self.entries.sizes()

    def clear(self) -> int:
        """Delete all entries, at the cost of computing them again; returns how many. Raises: NotRunningError."""
        with _running():
            return self.entries.clear()

    def stats(self) -> dict[str, CacheStats]:
        """Counts of each kind over all processes, kept as long as jobs are.

        Raises: NotRunningError when Redis does not answer.
        """
        with _running():
            counts = self.entries.counts()
        kinds: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for name, number in counts.items():
            kind, _, what = name.partition(":")
            if what in CacheStats.model_fields and number >= 0:
                kinds[kind][what] = number
        return {kind: CacheStats(**numbers) for kind, numbers in sorted(kinds.items())}


@contextmanager
def _running() -> Iterator[None]:
    try:
        yield
    except CacheDownError as error:
        raise NotRunningError(f"the cache has no figures: {error}") from error


@dataclass
class CacheLookup(Generic[M]):
    """One call for some distinct keys, in one thread. `positions`: the places of the keys in the caller's list."""

    cache: Cache
    positions: Mapping[CacheKey, int]
    model: type[M]
    compute_missing: Callable[[list[int]], list[M]]
    keep: Callable[[M], bool]
    wait_s: float

    def __post_init__(self) -> None:
        self._entries, self._flights = self.cache.entries, self.cache.flights
        self._deadline = time.monotonic() + self.wait_s
        self._longest_s = max(self.wait_s, self.cache.settings.wait_s)  # then a leader that hangs is replaced
        self._lease_s = min(_LONGEST_LEASE_S, max(_SHORTEST_LEASE_S, self.wait_s / 2))
        self._token = secrets.token_hex(8)
        self._values: dict[CacheKey, tuple[M, CacheStatus]] = {}
        self._warnings: dict[CacheKey, str] = {}
        self._unverified: dict[CacheKey, str] = {}  # sha1 of the entry
        self._led: dict[CacheKey, InFlight] = {}
        self._followed: dict[CacheKey, InFlight] = {}
        self._down, self._waited, self._rejected = "", False, 0

    def run(self) -> dict[CacheKey, tuple[M, CacheResult]]:
        """A value for every key. Raises whatever `compute_missing` raises; nothing is stored then."""
        keys = list(self.positions)
        for key, blob in zip(keys, self._attempt(self._entries.read, keys) or (), strict=False):
            if blob is not None:
                self._take(key, blob)
        pause = _FIRST_PAUSE_S
        try:
            while missing := self._without_value(self.positions):
                mine = self._claim(self._join(missing))
                waiting = [key for key in self._without_value(missing) if key not in mine]
                left = self._deadline - time.monotonic()
                if mine or left <= 0:
                    self._compute(mine, late=waiting if left <= 0 else [])
                elif waiting:
                    self._pause(waiting, pause, left)
                    pause = min(pause * 1.6, _LONGEST_PAUSE_S)
        finally:
            for key in list(self._led):  # what has no value now failed
                self._finish(key, None)
        return {
            key: (value, CacheResult(status=status, warning=self._warnings.get(key, "")))
            for key, (value, status) in self._values.items()
        }

    def counts(self) -> Mapping[str, int]:
        """What this call adds to the counters of its kind."""
        return Counter(status.value for _, status in self._values.values()) + Counter(rejected=self._rejected)

    def _without_value(self, keys: Iterable[CacheKey]) -> list[CacheKey]:
        return [key for key in keys if key not in self._values]

    def _join(self, keys: Sequence[CacheKey]) -> list[CacheKey]:
        """Take what other threads have computed by now. Returns the keys that this thread leads in its process."""
        for key in keys:
            if key in self._followed and self._followed[key].is_set():
                value = self._followed.pop(key).value
                if value is not None:
                    # A copy: models may hold dicts, and a job may change its own.
                    self._set_value(key, cast("M", value).model_copy(deep=True), CacheStatus.WAITED)
            if not any(key in known for known in (self._values, self._followed, self._led)):
                flight, opened = self._flights.join(key.lock, self._longest_s)
                (self._led if opened else self._followed)[key] = flight
        return [key for key in keys if key in self._led]

    def _claim(self, keys: list[CacheKey]) -> list[CacheKey]:
        """Read again and take what is there. Returns the keys that no other process computes."""
        if self._down or not keys:
            return keys
        claims = self._attempt(self._entries.claim, keys, self._token, self._lease_s, self._unverified)
        if claims is None:
            return keys
        for key, claim in zip(keys, claims, strict=True):
            self._rejected += claim.discarded
            if claim.discarded:
                self._warnings[key] = f"A stored {key.kind} did not verify and was computed again."
            if claim.entry is not None:
                self._take(key, claim.entry)
        return [key for key, claim in zip(keys, claims, strict=True) if claim.leads]

    def _take(self, key: CacheKey, blob: bytes) -> None:
        try:
            value = decode_entry(blob, key, self.model)
        except CacheEntryError:
            self._unverified[key] = hashlib.sha1(blob, usedforsecurity=False).hexdigest()  # the next claim deletes it
        else:
            self._set_value(key, value, CacheStatus.WAITED if self._waited else CacheStatus.HIT)

    def _compute(self, mine: list[CacheKey], late: Sequence[CacheKey]) -> None:
        """Compute both lists in one call and store the values: `mine` is led, `late` was waited for in vain."""
        if not (keys := [*mine, *late]):
            return
        held, stored = [] if self._down else mine, frozenset[CacheKey]()
        try:
            with self._entries.leased(held, self._token, self._lease_s, self._longest_s):
                values = self.compute_missing([self.positions[key] for key in keys])
            if len(values) != len(keys):
                raise ValueError(f"{len(keys)} {keys[0].kind} values were asked for, {len(values)} were computed")
            kept = {key: value for key, value in zip(keys, values, strict=True) if self.keep(value)}
            stored = self._store(kept)
        finally:  # a lease that cannot be given back expires
            self._attempt(self._entries.lease, [key for key in held if key not in stored], self._token, 0)
        waited = f"Waited {self.wait_s:.3g} s for another worker's identical {keys[0].kind}, then computed it here."
        for key, value in zip(keys, values, strict=True):
            if self._down:
                self._warnings[key] = self._down
            elif key in late:
                self._warnings.setdefault(key, waited)
            status = CacheStatus.BYPASSED if self._down or key in late else CacheStatus.COMPUTED
            self._set_value(key, value, status, shared=key in kept)

    def _store(self, values: Mapping[CacheKey, M]) -> frozenset[CacheKey]:
        """Returns the keys whose entries are stored now."""
        if self._down:
            return frozenset()
        blobs = {}
        for key, value in values.items():
            try:
                blobs[key] = encode_entry(value, key, self.model)
            except CacheEntryError as error:
                self._warnings[key] = f"A computed {key.kind} was not cached: it {error}."
        self._attempt(self._entries.publish, blobs, self._token)
        return frozenset() if self._down else frozenset(blobs)

    def _pause(self, waiting: Sequence[CacheKey], pause_s: float, left_s: float) -> None:
        """Wait for threads as long as there is time; for processes a moment, then poll: Redis sends no notification."""
        self._waited = True
        followed = [self._followed[key] for key in waiting if key in self._followed]
        if followed:
            followed[0].wait(left_s if len(followed) == len(waiting) else min(pause_s, left_s))
        else:
            time.sleep(min(pause_s, left_s))

    def _set_value(self, key: CacheKey, value: M, status: CacheStatus, *, shared: bool = True) -> None:
        self._values[key] = (value, status)
        if key in self._led:
            self._finish(key, value if shared else None)

    def _finish(self, key: CacheKey, value: M | None) -> None:
        self._flights.finish(key.lock, self._led.pop(key), value)

    def _attempt(self, ask: Callable[..., T], *args: Any) -> T | None:
        """Redis' reply; None when it fails, and then this call goes on without Redis."""
        try:
            return ask(*args)
        except CacheDownError as error:
            self._down = str(error)
            return None
