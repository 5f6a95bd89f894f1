"""The cache's entries: their keys, their stored form, and how they are read, locked and written in Redis.

Equal parts make an equal key, anything else another key. An entry is zlib over two lines of JSON: a header with key,
schema and checksum, which is verified when it is read, and the value. Never pickle.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice
from threading import Event, Lock, Thread
from typing import Any, NamedTuple, TypeVar

import redis
from pydantic import BaseModel

from shared.connections.key_types import declare
from shared.errors import InputError, RamifyError
from shared.jobs.codec import text
from shared.jobs.keys import PREFIX
from shared.models import Lane
from shared.providers.lanes import running_lane

M = TypeVar("M", bound=BaseModel)

#: Raise it when entries change their meaning without their models changing.
FORMAT = 3
#: Longest entry before compression. The largest leaf (500 hits with vectors) stays far below.
MAX_BYTES = 32 * 1024 * 1024
_ENTRIES = f"{PREFIX}:cache:"
STATS = f"{_ENTRIES}stats"
#: Sorted set and hash: when each entry was stored, and its bytes; in the hash also those of all.
AGES, SIZES, _TOTAL = f"{_ENTRIES}ages", f"{_ENTRIES}sizes", "total"
declare({STATS: "hash", AGES: "zset", SIZES: "hash"})
#: Seconds without a call after a lost connection, so that not every value waits for a timeout of its own.
REST_S = 2.0
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_PLAIN = "use text, whole or finite numbers, true, false, None, lists, models or mappings with text keys"


class CacheEntryError(ValueError):
    """An entry cannot be stored or does not verify. The message ends a sentence that begins with the entry."""


class CacheDownError(RamifyError):
    """Redis cannot serve the cache. The message is a warning for the user."""


@dataclass(frozen=True, slots=True)
class CacheKey:
    """One entry's name. Entry and lock share the hash tag `{digest}`, so one script may touch both on a cluster.

    Both lanes share the entry. Each has its own lock: interactive work must not wait for a call that batch work makes,
    which may stand in line at its provider.
    """

    kind: str
    digest: str
    schema: str
    lane: Lane

    @property
    def entry(self) -> str:
        """String: the value, with a TTL."""
        return f"{PREFIX}:cache:{self.kind}:{{{self.digest}}}"

    @property
    def lock(self) -> str:
        """String: the token of whoever computes the value now, with a short TTL."""
        return f"{self.entry}:{self.lane.value}:lock"


def cache_key(kind: str, parts: Mapping[str, object], model: type[BaseModel]) -> CacheKey:
    """The key of a value of `model` that depends on `parts` and nothing else.

    `parts` must name the `tenant`, so that two tenants never share an entry. Text is taken as it is, not normalised:
    texts that only look alike are different questions to a model.

    Raises: InputError when `kind` is no short lower-case word, the tenant is missing, or a part has no one JSON form.
    """
    if not _KIND.fullmatch(kind):
        raise InputError("cache kind", kind, "use a lower-case word of at most 32 letters, digits, - and _")
    if not isinstance(parts.get("tenant"), str) or not parts["tenant"]:
        raise InputError("cache parts.tenant", parts.get("tenant"), "name the tenant, so that no other one shares it")
    schema = schema_version(model)
    digest = hashlib.sha256(canonical_json({"kind": kind, "schema": schema, "parts": parts}))
    return CacheKey(kind, digest.hexdigest(), schema, running_lane())


@cache
def schema_version(model: type[BaseModel]) -> str:
    """The version of an entry's form: another release's fields or defaults are another schema, never misread."""
    schema = {"name": f"{model.__module__}.{model.__qualname__}", "fields": model.model_json_schema()}
    return f"{FORMAT}.{hashlib.sha256(canonical_json(schema)).hexdigest()[:16]}"


def canonical_json(value: object) -> bytes:
    """`value` as canonical JSON: keys sorted, no spaces; 1, 1.0, true and "1" stay apart.

    Raises: InputError naming the part that has none (NaN, bytes, sets, keys that are no text).
    """
    plain = _jsonable(value, "cache key")
    form = json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Half a surrogate pair is no UTF-8, but may be in a caller's text: two of them must not make the same key.
    return form.encode("utf-8", "surrogatepass")


def _jsonable(value: object, where: str) -> object:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):  # JSON would make 1 and "1" one key
                raise InputError(where, name, _PLAIN)
        return {name: _jsonable(item, f"{where}.{name}") for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item, f"{where}.{index}") for index, item in enumerate(value)]
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InputError(where, value, _PLAIN)


def encode_entry(value: M, key: CacheKey, model: type[M]) -> bytes:
    """The stored form of a value: zlib over two lines of JSON, a header that `decode_entry` verifies, and the value.

    Raises: CacheEntryError when it is too large, or would not come back as it went in: NaN, half a surrogate pair, or
    a subclass, whose own fields JSON drops.
    """
    try:
        payload = value.model_dump_json(warnings=False).encode()
        same = model.model_validate_json(payload) == value
    except ValueError as error:
        raise CacheEntryError(f"has no JSON form ({type(error).__name__})") from error
    if not same:
        raise CacheEntryError("reads back as another value")
    data = _header(key, payload) + b"\n" + payload
    blob = zlib.compress(data, 1)  # entries are small: speed over size
    if max(len(data), len(blob)) > MAX_BYTES:
        raise CacheEntryError(f"is larger than {MAX_BYTES} bytes")
    return blob


def decode_entry(blob: bytes, key: CacheKey, model: type[M]) -> M:
    """The value of `key`. Raises: CacheEntryError when damaged, too large, or of another key, kind, schema or type.

    This guards against damage, mix-ups and other releases, not against somebody who may write to this Redis.
    """
    if len(blob) > MAX_BYTES:
        raise CacheEntryError(f"is larger than {MAX_BYTES} bytes")
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(blob, MAX_BYTES + 1)
    except zlib.error as error:
        raise CacheEntryError("is garbled") from error
    if not reader.eof or reader.unused_data:
        raise CacheEntryError("is cut off, too long or too large")
    header, _, payload = data.partition(b"\n")
    if header != _header(key, payload):
        raise CacheEntryError("is of another key or schema, or was changed")
    try:
        return model.model_validate_json(payload)
    except ValueError as error:
        raise CacheEntryError(f"is no {model.__name__}") from error


def _header(key: CacheKey, payload: bytes) -> bytes:
    checksum = hashlib.sha256(payload).hexdigest()
    return json.dumps({"kind": key.kind, "digest": key.digest, "schema": key.schema, "sha256": checksum}).encode()


def _pages(keys: Iterable[Any], size: int = 500) -> Iterator[list[Any]]:
    left = iter(keys)
    while page := list(islice(left, size)):
        yield page


class CacheClaim(NamedTuple):
    """The reply to a claim: `entry` when it is there by now, else whether to lead; `discarded`: a bad entry was."""

    entry: bytes | None
    leads: bool
    discarded: bool


class RedisEntries:
    """Entries, locks and counters in Redis. Every key has a TTL. All methods raise CacheDownError when Redis fails."""

    def __init__(self, client: redis.Redis, ttl_s: int, stats_ttl_s: int, most_bytes: int = 0) -> None:
        """`most_bytes`: of all entries together, for which the oldest are deleted; 0: any number."""
        self._client, self._ttl_s, self._stats_ttl_s, self._most_bytes = client, ttl_s, stats_ttl_s, most_bytes
        self._claim, self._publish, self._lease = map(self._script, ("claim", "publish", "lease"))
        self._rest_until, self._fault = 0.0, ""
        self._counting, self._uncounted = Lock(), Counter[str]()

    def read(self, keys: Sequence[CacheKey]) -> list[bytes | None]:
        """The entries as stored, in one round trip; None for what is missing or no string."""
        with self._guard():
            found = self._client.mget([key.entry for key in keys])
        return [blob if isinstance(blob, bytes) else None for blob in found]

    def claim(
        self, keys: Sequence[CacheKey], token: str, lease_s: float, bad: Mapping[CacheKey, str]
    ) -> list[CacheClaim]:
        """Read again and ask to lead; `bad`: key -> sha1 of an entry that did not verify."""
        calls = [([key.entry, key.lock], [token, int(lease_s * 1000), bad.get(key, "")]) for key in keys]
        return [
            CacheClaim(entry if text(status) == "entry" else None, text(status) == "leader", bool(discarded))
            for status, entry, discarded in self._each(self._claim, calls)
        ]

    def publish(self, blobs: Mapping[CacheKey, bytes], token: str) -> None:
        """Store whole entries and give their locks back."""
        calls = [
            ([key.entry, key.lock, AGES, SIZES], [token, self._ttl_s, blob, self._most_bytes])
            for key, blob in blobs.items()
        ]
        self._each(self._publish, calls)

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Kind -> entries and their bytes; entries that have expired a moment ago may still count."""
        with self._guard():
            found: Counter[str] = Counter()
            sizes: Counter[str] = Counter()
            for name, size in self._client.hscan_iter(SIZES, count=1000):
                if (entry := text(name)) != _TOTAL:
                    found[kind := entry.removeprefix(_ENTRIES).partition(":")[0]] += 1
                    sizes[kind] += int(size)
        return {kind: (number, sizes[kind]) for kind, number in sorted(found.items())}

    def clear(self) -> int:
        """Delete all entries; returns how many there were. Locks and counters stay."""
        deleted = 0
        with self._guard():
            for page in _pages(self._client.scan_iter(match=f"{_ENTRIES}*}}", count=1000)):
                deleted += self._client.unlink(*page)
            self._client.delete(AGES, SIZES)
        return deleted

    def lease(self, keys: Sequence[CacheKey], token: str, lease_s: float) -> None:
        """Keep the locks for another `lease_s` seconds; 0 gives them back."""
        self._each(self._lease, [([key.lock], [token, int(lease_s * 1000)]) for key in keys])

    @contextmanager
    def leased(self, keys: Sequence[CacheKey], token: str, lease_s: float, longest_s: float) -> Iterator[None]:
        """Keeps the locks while the block runs, for `longest_s` at most: a leader that hangs is replaced."""
        done, until = Event(), time.monotonic() + longest_s

        def renew() -> None:
            while not done.wait(lease_s / 3) and time.monotonic() < until:
                with suppress(CacheDownError):  # a lost lease costs a second computation, nothing else
                    self.lease(keys, token, lease_s)

        if keys:
            Thread(target=renew, name="ramify-cache-lease", daemon=True).start()
        try:
            yield
        finally:
            done.set()

    def count(self, counts: Mapping[str, int]) -> None:
        """Add to the counters. Never raises: counts that Redis does not take are added to the next ones."""
        with self._counting:
            self._uncounted.update(counts)
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
        """All counters, `<kind>:<status>` -> number."""
        with self._guard():
            return {text(name): int(number) for name, number in self._client.hgetall(STATS).items()}

    def _script(self, name: str) -> Any:
        source = resources.files("shared") / "lua" / f"cache_{name}.lua"
        return self._client.register_script(source.read_text(encoding="utf-8"))

    def _each(self, script: Any, calls: Sequence[tuple[list[str], list[Any]]]) -> list[Any]:
        if not calls:
            return []
        with self._guard():
            if len(calls) == 1:  # a pipeline would ask first whether the script is known
                return [script(*calls[0])]
            with self._client.pipeline(transaction=False) as pipe:
                for keys, args in calls:
                    script(keys, args, pipe)
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
