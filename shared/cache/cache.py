"""What was computed once is not computed again: by no thread, process or job (G5). A broken cache never fails a job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel
from redis import Redis

from shared.cache.flights import Flights
from shared.cache.keys import Key, key_of
from shared.cache.lookup import Lookup
from shared.cache.outcome import CacheStats, How, Outcome
from shared.cache.shelf import CacheDownError, Shelf
from shared.errors import NotRunningError
from shared.settings import Settings

M = TypeVar("M", bound=BaseModel)

#: The kind of whole leaves, which have a switch of their own (`cache.leaves`).
LEAF = "leaf"


class Cache:
    """Values by what they depend on. One per process, shared by its threads.

    `parts` holds everything a value depends on: `tenant` (required), content, model name, filters, namespace, index
    version. `kind` is a lower-case word: embedding, rewrite, rerank, leaf. Values are frozen models; treat them so.
    """

    def __init__(self, client: Redis, settings: Settings) -> None:
        self._settings = settings.cache
        self._shelf = Shelf(client, settings.cache.ttl_s, settings.jobs.ttl_s)
        self._flights = Flights()

    def get_or_compute(
        self, kind: str, parts: Mapping[str, object], model: type[M], compute: Callable[[], M], *, wait_s: float
    ) -> tuple[M, Outcome]:
        """The value of `parts`: stored, computed by another worker just now, or computed here.

        Waits `wait_s` seconds at most for another worker, then computes. Redis that fails is a warning in the outcome.

        Raises: InputError for parts that make no key; whatever `compute` raises, and then nothing is stored and one
        of those who waited computes next.
        """
        return self.get_or_compute_many(kind, [parts], model, lambda _: [compute()], wait_s=wait_s)[0]

    def get_or_compute_many(
        self,
        kind: str,
        keys: Sequence[Mapping[str, object]],
        model: type[M],
        compute_missing: Callable[[list[int]], list[M]],
        *,
        wait_s: float,
    ) -> list[tuple[M, Outcome]]:
        """The same for many parts, in their order: one read, and one call for all that is missing.

        `compute_missing` takes positions in `keys` and returns a value for each, in that order; equal parts are
        computed once. It is called again only for what another worker had begun and did not finish.

        Raises: as `get_or_compute`; ValueError when `compute_missing` returns another number of values.
        """
        names = [key_of(kind, parts, model) for parts in keys]
        if not self.caches(kind):
            values = compute_missing(list(range(len(keys)))) if keys else []
            return [(value, Outcome(how=How.BYPASSED)) for value in values]
        places: dict[Key, int] = {}
        for index, name in enumerate(names):
            places.setdefault(name, index)
        lookup = Lookup(
            self._shelf,
            self._flights,
            model,
            lambda missing: compute_missing([places[name] for name in missing]),
            wait_s=wait_s,
            longest_flight_s=max(wait_s, self._settings.wait_s),
        )
        try:
            found = lookup.run(list(places)) if places else {}
        finally:
            self._shelf.count(kind, lookup.counts())
        return [found[name] for name in names]

    def caches(self, kind: str) -> bool:
        """Whether the settings want this kind cached."""
        return self._settings.enabled and (kind != LEAF or self._settings.leaves)

    def stats(self) -> dict[str, CacheStats]:
        """Counts of each kind over all processes, kept as long as jobs are.

        Raises: NotRunningError when Redis does not answer.
        """
        try:
            counts = self._shelf.counts()
        except CacheDownError as error:
            raise NotRunningError(f"the cache has no figures: {error}") from error
        kinds: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for name, number in counts.items():
            kind, _, what = name.partition(":")
            if what in CacheStats.model_fields and number >= 0:
                kinds[kind][what] = number
        return {kind: CacheStats(**numbers) for kind, numbers in sorted(kinds.items())}
