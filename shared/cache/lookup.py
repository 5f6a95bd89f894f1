"""One question to the cache, from the first look to the last value: find, lead, wait, or compute after all.

Threads of one process share a flight; between processes a lock in Redis decides who leads. A call computes what it
leads before it waits for anything, so two calls never wait for each other. Followers look again after 5 ms, then ever
longer up to 100 ms: one process polls once however many of its threads wait, so that costs Redis next to nothing,
needs no connection that blocks, and a lost notification cannot strand anybody; the same look takes over when a leader
has died.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar, cast

from pydantic import BaseModel

from shared.cache.entry import EntryError, pack, unpack
from shared.cache.flights import Flight, Flights
from shared.cache.keys import Key
from shared.cache.outcome import How, Outcome
from shared.cache.shelf import CacheDownError, Shelf

M = TypeVar("M", bound=BaseModel)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.1
#: A leader that dies holds its followers up for one lease; a lease is shorter than what they wait.
_LONGEST_LEASE_S, _SHORTEST_LEASE_S = 5.0, 0.5


class Lookup(Generic[M]):
    """One call for several distinct keys. Lives for one call, in one thread; times are seconds.

    `compute` takes keys and returns their values in that order. `longest_flight_s` bounds how long a leader that does
    not come back is believed in.
    """

    def __init__(  # noqa: PLR0913 - two rooms, the question, and its two times
        self,
        shelf: Shelf,
        flights: Flights,
        model: type[M],
        compute: Callable[[list[Key]], list[M]],
        *,
        wait_s: float,
        longest_flight_s: float,
    ) -> None:
        self._shelf, self._flights, self._model, self._compute_missing = shelf, flights, model, compute
        self._wait_s, self._longest_flight_s = wait_s, longest_flight_s
        self._lease_s = min(_LONGEST_LEASE_S, max(_SHORTEST_LEASE_S, wait_s / 2))
        self._deadline = time.monotonic() + wait_s
        self._token = secrets.token_hex(8)
        self._values: dict[Key, M] = {}
        self._how: dict[Key, How] = {}
        self._warnings: dict[Key, str] = {}
        self._bad: dict[Key, str] = {}  # sha1 of entries that did not verify
        self._led: dict[Key, Flight] = {}
        self._down, self._waited, self._rejected = "", False, 0

    def run(self, keys: Sequence[Key]) -> Mapping[Key, tuple[M, Outcome]]:
        """A value for every key. Raises whatever `compute` raises; nothing is stored then."""
        missing = self._read(keys)
        while missing:
            followed: dict[Key, Flight] = {}
            try:
                followed = self._join(missing)
                self._lead(list(self._led))
            finally:
                for key in list(self._led):  # what has no value now failed
                    self._land(key, None)
            missing = self._follow(followed)
        return {
            key: (self._values[key], Outcome(how=self._how[key], warning=self._warnings.get(key, ""))) for key in keys
        }

    def counts(self) -> Mapping[str, int]:
        """What this call adds to the counters."""
        return Counter(how.value for how in self._how.values()) + Counter(rejected=self._rejected)

    def _read(self, keys: Sequence[Key]) -> list[Key]:
        try:
            blobs = self._shelf.read(keys)
        except CacheDownError as error:
            self._down = str(error)
            return list(keys)
        for key, blob in zip(keys, blobs, strict=True):
            if blob is not None:
                self._take(key, blob)
        return [key for key in keys if key not in self._values]

    def _join(self, keys: list[Key]) -> dict[Key, Flight]:
        """Open a flight for each key or follow one of this process. Returns the followed ones."""
        followed: dict[Key, Flight] = {}
        for key in keys:
            flight, opened = self._flights.join(key.entry, self._longest_flight_s)
            (self._led if opened else followed)[key] = flight
        return followed

    def _lead(self, waiting: list[Key]) -> None:
        """Settle all keys whose flights this call opened."""
        pause = _FIRST_PAUSE_S
        while waiting:
            mine, waiting = self._claim(waiting)
            left = self._deadline - time.monotonic()
            late = waiting if left <= 0 else []
            self._compute(mine, late)
            if late or not waiting:
                return
            self._waited = True
            time.sleep(min(pause, max(left, 0)))
            pause = min(pause * 1.6, _LONGEST_PAUSE_S)

    def _claim(self, keys: list[Key]) -> tuple[list[Key], list[Key]]:
        """Look again. Returns (keys to compute, keys that another process computes)."""
        if self._down:
            return keys, []
        try:
            claims = self._shelf.claim(keys, self._token, self._lease_s, self._bad)
        except CacheDownError as error:
            self._down = str(error)
            return keys, []
        mine, waiting = [], []
        for key, claim in zip(keys, claims, strict=True):
            self._rejected += claim.discarded
            if claim.discarded:
                self._warnings[key] = f"A stored {key.kind} did not verify and was computed again."
            if claim.leads:
                mine.append(key)
            elif claim.entry is None or not self._take(key, claim.entry):
                waiting.append(key)
        return mine, waiting

    def _take(self, key: Key, blob: bytes) -> bool:
        try:
            value = unpack(blob, key, self._model)
        except EntryError:
            self._bad[key] = hashlib.sha1(blob, usedforsecurity=False).hexdigest()  # the next claim clears it away
            return False
        self._settle(key, value, How.WAITED if self._waited else How.HIT)
        return True

    def _compute(self, mine: list[Key], late: Sequence[Key]) -> None:
        """Compute both lists in one call and store what came: `mine` is led, `late` was waited for in vain."""
        keys = [*mine, *late]
        if not keys:
            return
        held = [] if self._down else mine
        try:
            with self._shelf.leased(held, self._token, self._lease_s, self._longest_flight_s):
                values = self._computed(keys)
        except BaseException:
            self._let_go(held)
            raise
        self._store(dict(zip(keys, values, strict=True)), held)
        for key in late:
            waited = f"Waited {self._wait_s:.3g} s for another worker's identical {key.kind}, then computed it here."
            self._warnings.setdefault(key, waited)
        for key, value in zip(keys, values, strict=True):
            self._settle(key, value, How.BYPASSED if self._down or key in late else How.COMPUTED)

    def _computed(self, keys: list[Key]) -> list[M]:
        values = self._compute_missing(keys)
        if len(values) != len(keys):
            raise ValueError(f"{len(keys)} {keys[0].kind} values were asked for, {len(values)} were computed")
        return values

    def _store(self, values: Mapping[Key, M], held: Sequence[Key]) -> None:
        if not self._down:
            blobs = {}
            for key, value in values.items():
                try:
                    blobs[key] = pack(value, key, self._model)
                except EntryError as error:
                    self._warnings[key] = f"A computed {key.kind} was not cached: it {error}."
            try:
                self._shelf.publish(blobs, self._token)
            except CacheDownError as error:
                self._down = str(error)
                blobs = {}
            self._let_go([key for key in held if key not in blobs])
        if self._down:
            self._warnings.update(dict.fromkeys(values, self._down))

    def _let_go(self, held: Sequence[Key]) -> None:
        try:
            self._shelf.release(held, self._token)
        except CacheDownError as error:  # the leases end by themselves
            self._down = str(error)

    def _follow(self, followed: Mapping[Key, Flight]) -> list[Key]:
        """Wait for other threads. Returns the keys whose leader failed while there is time to try again."""
        late, again = [], []
        for key, flight in followed.items():
            self._waited = True
            landed = flight.wait(self._deadline - time.monotonic())
            if landed and flight.value is not None:
                # A copy, since models may hold dicts: what one job does to its value must not reach another's.
                self._settle(key, cast("M", flight.value).model_copy(deep=True), How.WAITED)
            elif landed and time.monotonic() < self._deadline:
                again.append(key)
            else:
                late.append(key)
        self._compute([], late)
        return again

    def _settle(self, key: Key, value: M, how: How) -> None:
        self._values[key], self._how[key] = value, how
        if key in self._led:
            self._land(key, value)

    def _land(self, key: Key, value: M | None) -> None:
        self._flights.land(key.entry, self._led.pop(key), value)
