"""Errors of Redis as one sentence with what to do about them, from `redis_errors.toml`. Pure."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import NamedTuple

from redis import exceptions
from redis.exceptions import RedisError

from shared.errors import shown

_DOCTOR = "`ramify doctor` says more"


class RedisFault(NamedTuple):
    """One kind of error: classes of redis-py, a pattern for Redis' own words, and the end of the sentence."""

    classes: tuple[type[RedisError], ...]
    words: str
    says: str


@cache
def _faults() -> tuple[RedisFault, ...]:
    table = resources.files("shared.connections").joinpath("redis_errors.toml").read_text(encoding="utf-8")
    faults = []
    for row in tomllib.loads(table)["faults"]:
        classes = tuple(getattr(exceptions, name) for name in row.get("classes", ()))
        faults.append(RedisFault(classes, row.get("words", ""), row["says"]))
    return tuple(faults)


def redis_fault(error: BaseException) -> str | None:
    """The end of a sentence that begins "Redis at ..."; None when `error` is no fault of Redis.

    An error of another library counts by the Redis error that it was raised from (kombu's OperationalError).
    """
    cause = error if isinstance(error, RedisError) else error.__cause__
    if not isinstance(cause, RedisError):
        return None
    text = f"{getattr(cause, 'status_code', None) or ''} {cause}"
    for known in _faults():
        if isinstance(cause, known.classes) or (known.words and re.search(known.words, text)):
            return known.says
    if isinstance(cause, exceptions.ConnectionError | exceptions.TimeoutError):
        name = type(cause).__name__
        return f"does not answer ({name}): see whether it runs, and its log, or correct redis.url; {_DOCTOR}"
    return None


def unforeseen_fault(error: Exception) -> str:
    """The same of an error that is not in the table."""
    return f"refused a command ({type(error).__name__}: {shown(str(error))}): {_DOCTOR}; --debug shows where"
