"""Names cache entries by what they depend on (G5): equal parts, equal key; anything else, another key."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pydantic import BaseModel

from shared.errors import InputError
from shared.job_store.keys import PREFIX

#: Raise it when entries change their meaning without their models changing.
FORMAT = 1
STATS = f"{PREFIX}:cache:stats"

_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_PLAIN = "use text, whole or finite numbers, true, false, None, lists, models or mappings with text keys"


@dataclass(frozen=True, slots=True)
class Key:
    """One entry's name. Entry and lock share the hash tag `{digest}`, so one script may touch both on a cluster."""

    kind: str
    digest: str
    schema: str

    @property
    def entry(self) -> str:
        """String: the value, with a TTL."""
        return f"{PREFIX}:cache:{self.kind}:{{{self.digest}}}"

    @property
    def lock(self) -> str:
        """String: the token of whoever computes the value now, with a short TTL."""
        return f"{self.entry}:lock"


def key_of(kind: str, parts: Mapping[str, object], model: type[BaseModel]) -> Key:
    """The key of a value of `model` that depends on `parts` and nothing else.

    `parts` must name the `tenant` (G9), so that two tenants never share an entry. Text is taken as it is, not
    normalised: texts that only look alike are different questions to a model.

    Raises: InputError when `kind` is no short lower-case word, the tenant is missing, or a part has no one JSON form.
    """
    if not _KIND.fullmatch(kind):
        raise InputError("cache kind", kind, "use a lower-case word of at most 32 letters, digits, - and _")
    if not isinstance(parts.get("tenant"), str) or not parts["tenant"]:
        raise InputError("cache parts.tenant", parts.get("tenant"), "name the tenant, so that no other one shares it")
    schema = schema_of(model)
    digest = hashlib.sha256(canonical({"kind": kind, "schema": schema, "parts": parts}))
    return Key(kind, digest.hexdigest(), schema)


@cache
def schema_of(model: type[BaseModel]) -> str:
    """The version of an entry's form: another release's fields or defaults are another schema, never misread."""
    schema = {"name": f"{model.__module__}.{model.__qualname__}", "fields": model.model_json_schema()}
    return f"{FORMAT}.{hashlib.sha256(canonical(schema)).hexdigest()[:16]}"


def canonical(value: object) -> bytes:
    """`value` as the one JSON text it has: keys sorted, no spaces; 1, 1.0, true and "1" stay apart.

    Raises: InputError naming the part that has none (NaN, bytes, sets, keys that are no text).
    """
    plain = _plain(value, "cache key")
    text = json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Half a surrogate pair is no UTF-8, but it can stand in a caller's text, and must not be taken for its neighbour.
    return text.encode("utf-8", "surrogatepass")


def _plain(value: object, where: str) -> object:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):  # JSON would make 1 and "1" one key
                raise InputError(where, name, _PLAIN)
        return {name: _plain(item, f"{where}.{name}") for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}.{index}") for index, item in enumerate(value)]
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InputError(where, value, _PLAIN)
