"""How long the fault suite runs. RAMIFY_TEST_ROUNDS asks for the long form, so many seeds from RAMIFY_TEST_SEED on."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """Sizes of a storm of kills. Jobs are sent in its first `load_s` seconds, so that there is work to be killed."""

    long: bool
    seeds: tuple[int, ...]
    jobs: int
    seconds: float
    load_s: float
    redis_kills: int


def _form() -> Form:
    long = "RAMIFY_TEST_ROUNDS" in os.environ
    first, rounds = (int(os.environ.get(f"RAMIFY_TEST_{name}", "1")) for name in ("SEED", "ROUNDS"))
    seeds = tuple(range(first, first + rounds))
    jobs = int(os.environ.get("RAMIFY_TEST_JOBS", "300" if long else "40"))
    seconds = float(os.environ.get("RAMIFY_TEST_SECONDS", "60" if long else "12"))
    return Form(long, seeds, jobs, seconds, 0.75 * seconds if long else 3.0, redis_kills=5 if long else 1)


FORM = _form()
