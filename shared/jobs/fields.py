"""Reads what is stored of a job field by field, so that one that cannot be read is named and costs its job only."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from shared.errors import DamagedError, shown
from shared.jobs.keys import JobKeys

E = TypeVar("E", bound=StrEnum)
M = TypeVar("M", bound=BaseModel)
_WORD = re.compile(r"[a-z][a-z_]{1,30}")
#: Errors of a model's validation that say the same.
_UNKNOWN_WORDS = {"enum", "literal_error"}
#: What Redis and its Lua say when stored data are not what a command or script expects; else Redis itself is at fault.
_AT_FAULT = re.compile(
    r"WRONGTYPE|not an integer|not a valid float|increment or decrement would|hash value is not|Invalid stream ID"
    r"|attempt to (compare|perform|index|concatenate|call)|bad argument #|number has no integer"
)


def is_word(value: str) -> bool:
    """True for what a newer release may have added to an enumeration."""
    return _WORD.fullmatch(value) is not None


class Fields:
    """A hash of Redis. With `faults` a field that cannot be read gives its default and is named there.

    Without `faults` its reader raises DamagedError. `raw`: replies of Redis by name, None for a missing field.
    """

    def __init__(self, raw: Mapping[str, object], faults: list[str] | None = None) -> None:
        self._raw, self._faults = raw, faults

    def __bool__(self) -> bool:
        return any(value is not None for value in self._raw.values())

    def _fault(self, name: str, clause: str, *, newer: bool = False) -> None:
        error = DamagedError(f"its field {name} {clause}", newer=newer)
        if self._faults is None:
            raise error
        self._faults.append(str(error))

    def guessed(self) -> Fields:
        """The same hash, for what has a default in its place."""
        return Fields(self._raw, [])

    def text(self, name: str) -> str:
        """Empty for a missing field."""
        value = self._raw.get(name)
        try:
            return value.decode() if isinstance(value, bytes) else str(value or "")
        except UnicodeDecodeError:
            self._fault(name, "is no UTF-8")
            return ""

    def needed(self, name: str, otherwise: str = "") -> str:
        """As `text`, of a field that must be there."""
        value = self.text(name)
        if not value:
            self._fault(name, "is missing")
        return value or otherwise

    def number(self, name: str, otherwise: float | None = None) -> float:
        """A finite number. `otherwise`: for a field that is missing, which is a fault if None."""
        value = self.text(name)
        if not value and otherwise is not None:
            return otherwise
        try:
            found = float(value)
        except ValueError:
            found = math.nan
        if math.isfinite(found):
            return found
        self._fault(name, f"is {shown(value)}, no number" if value else "is missing")
        return otherwise or 0.0

    def whole(self, name: str) -> int:
        """A whole number; 0 for a missing field."""
        return int(self.number(name, 0.0))

    def member(self, name: str, kind: type[E]) -> E:
        """A word of `kind`. Always raises DamagedError for any other: nothing can stand in its place."""
        value = self.needed(name)
        try:
            return kind(value)
        except ValueError:
            newer = is_word(value)
            unknown = "a word that this release does not know" if newer else "not what may stand there"
            raise DamagedError(f"its field {name} is {shown(value)}, {unknown}", newer=newer) from None


def stored(kind: type[M], raw: str | bytes, what: str) -> M:
    """A model as it was stored. Fields of other releases are passed over. Raises: DamagedError, `what` is it."""
    try:
        return kind.model_validate_json(raw, extra="ignore")
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        newer = {one["type"] for one in error.errors()} <= _UNKNOWN_WORDS
        clause = f"{place}: {first['msg']}" if place else first["msg"]
        raise DamagedError(f"{what} cannot be read ({shown(clause)})", newer=newer) from None


def damage(error: BaseException) -> DamagedError | None:
    """What `error` says of stored data that cannot be read; None when it says something else."""
    if isinstance(error, DamagedError):
        return error
    if isinstance(error, ResponseError) and _AT_FAULT.search(str(error)):
        wrong = "WRONGTYPE" in str(error)
        return DamagedError(
            "a key of it is of another type" if wrong else f"a script cannot read it ({shown(str(error))})"
        )
    if isinstance(error, UnicodeDecodeError):
        return DamagedError("bytes that are no UTF-8 stand in it")
    return None


@contextmanager
def damage_named() -> Iterator[None]:
    """An error in the block that says that stored data cannot be read becomes a DamagedError."""
    try:
        yield
    except (RedisError, ValueError) as error:
        if (found := damage(error)) is not None:
            raise found from error
        raise


def damaged(*replies: object) -> DamagedError | None:
    """The damage that the replies of a pipeline about one job tell of. Raises: RedisError for any other error there."""
    for reply in replies:
        if isinstance(reply, Exception):
            if (found := damage(reply)) is None:
                raise reply
            return found
    return None


def read_fields(client: Redis, job_ids: Sequence[str], names: Sequence[str]) -> list[tuple[str, ...]]:
    """These fields of each job's hash, in one round trip; empty text for one that is missing or cannot be read."""
    with client.pipeline(transaction=False) as pipe:
        for job_id in job_ids:
            pipe.hmget(JobKeys(job_id).job, list(names))
        rows = pipe.execute(raise_on_error=False) if job_ids else []
    read = [Fields({} if damaged(row) else dict(zip(names, row, strict=True)), []) for row in rows]
    return [tuple(fields.text(name) for name in names) for fields in read]
