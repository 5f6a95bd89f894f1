"""The cache that all jobs of a worker process share."""

from __future__ import annotations

from functools import cache

from shared.cache import Cache
from workers.steps import steps


@cache
def shared_cache() -> Cache:
    """One a process; switched off by `cache.enabled`."""
    return Cache(steps.jobs.client, steps.settings)
