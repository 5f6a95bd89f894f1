"""Totals for `/metrics`: of ended jobs, added by the scripts that end them, and of what processes count.

They only grow, and begin anew when nothing was added for `jobs.ttl_s`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shared.jobs.keys import TotalKeys
from shared.models import Cost

#: What the scripts are told (`scripts.source`): upper bounds (s) of how long jobs waited for their turn, and of how
#: long they ran from it.
WAITED_S = (0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 43_200.0)
RAN_S = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
#: And the fields of a job's hash whose numbers are added.
COSTS = tuple(f"cost:{name}" for name in Cost.model_fields)
DOCUMENTS = tuple(f"ingest:{name}" for name in ("added", "changed", "unchanged", "removed", "failed"))


def add_runs(run: Callable[[str, list[str], list[Any]], Any], sums: Mapping[str, int], ttl_s: int) -> None:
    """Add what a process has counted (`ProcessCounts`); both hashes live on. Raises: redis.exceptions.RedisError."""
    flat = [part for name, by in sums.items() for part in (name, by)]
    run("add_runs", [TotalKeys.runs, TotalKeys.jobs], [ttl_s, *flat])


def whole_numbers(raw: Mapping[bytes, bytes]) -> dict[str, int]:
    """The sums of a hash, as HGETALL replies; those that are no whole number are left out."""
    found = ((name.decode("utf-8", "replace"), value) for name, value in raw.items())
    return {name: int(value) for name, value in found if value.isdigit()}
