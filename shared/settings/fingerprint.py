"""Digests of the settings that decide answers, part by part, so that two processes can tell where theirs differ.

Addresses, keys, paths and what only bounds time or load are left out: a client may reach a server by another name.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.settings import Settings
from shared.settings.strategies import defaults

#: The digest of each part: a strategy's as `strategies.NAME`, a section's by its name.
Fingerprint = Mapping[str, str]
STRATEGY = "strategies."
_WHOLE = (
    "decomposition", "multi_query", "binding", "gaps", "routing", "aggregators", "enumeration", "search", "chunking",
    "hierarchy", "budget", "summary",
)  # fmt: skip
#: Of these sections only the named fields.
_FIELDS = {
    "embedding": ("provider", "model", "dim", "query_prefix", "passage_prefix", "languages"),
    "rerank": ("provider", "model", "window_chars", "min_relevance"),
    "verifier": ("provider", "model", "least", "most"),
    "store": ("kind", "collection"),
    "jobs": ("deadline_s", "batch_deadline_s"),
    "lanes": ("on_outage_interactive", "on_outage_batch"),
}
_LLM = ("llm_model", "llm_max_tokens", "llm_prompt_tokens", "llm_sources_share", "enable_summary", "has_llm")
#: Settings that name a model: a change of one is a change of the model.
MODEL_SETTINGS = frozenset(
    f"{section}.{name}" for section in ("embedding", "rerank", "verifier") for name in ("provider", "model", "dim")
) | {"llm_model"}
_DIGITS = 12
#: Names under which a plugin's options may hold what nobody is to see.
_SECRET = re.compile(r"(?i)(^|_)(key|token|secret|password|passwd|credentials?|auth)($|_)")


def fingerprint(settings: Settings) -> Fingerprint:
    """The digests of `settings`; the order of keys and defaults that are written out change none."""
    found = {name: digest(getattr(settings, name).model_dump(mode="json")) for name in _WHOLE}
    for name, fields in _FIELDS.items():
        found[name] = digest(getattr(settings, name).model_dump(mode="json", include=set(fields)))
    found["llm"] = digest({name: getattr(settings, name) for name in _LLM})
    for name, stages in settings.strategies.items():
        found[f"{STRATEGY}{name}"] = digest([stage.model_dump(mode="json") for stage in stages])
    return found


def values_that_decide(settings: Settings) -> dict[str, Any]:
    """The settings of a fingerprint that are not their defaults, by dotted name; no model's name, and no secret."""
    found = dict[str, Any]()
    for name in (*_WHOLE, *_FIELDS):
        section, fields = getattr(settings, name), _FIELDS.get(name)
        given = section.model_dump(mode="json", include=set(fields) if fields else None)
        usual = type(section).model_construct().model_dump(mode="json", include=set(given)) if given else {}
        found |= {f"{name}.{key}": value for key, value in _changed(given, usual)}
    usual_llm = {name: Settings.model_fields[name].default for name in _LLM if name in Settings.model_fields}
    found |= {name: getattr(settings, name) for name, usual in usual_llm.items() if getattr(settings, name) != usual}
    known = defaults()
    for name, stages in settings.strategies.items():
        if stages != known.get(name):
            found[f"{STRATEGY}{name}"] = [stage.model_dump(mode="json") for stage in stages]
    return {name: value for name, value in sorted(found.items()) if name not in MODEL_SETTINGS}


def _changed(given: Mapping[str, Any], usual: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The values that differ, tables by the dotted names of what is in them."""
    for name, value in given.items():
        before = usual.get(name)
        if value == before or _SECRET.search(name):
            continue
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            yield from ((f"{name}.{key}", inner) for key, inner in _changed(value, before))
        else:
            yield name, value


def digest(value: Any) -> str:
    """Twelve hex digits of SHA-256 over what JSON has a form for."""
    written = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(written.encode("utf-8", "replace")).hexdigest()[:_DIGITS]


def differences(own: Fingerprint, other: Fingerprint) -> tuple[str, ...]:
    """The parts that differ, for people: changed ones, then strategies that one side does not have."""
    both = own.keys() & other.keys()
    changed = [_named(part) for part in sorted(both) if own[part] != other[part]]
    lacking = [f"{_named(part)} (which they do not have)" for part in sorted(own.keys() - both)]
    new = [f"{_named(part)} (which only they have)" for part in sorted(other.keys() - both)]
    return (*changed, *lacking, *new)


def _named(part: str) -> str:
    return f"strategy {part.removeprefix(STRATEGY)}" if part.startswith(STRATEGY) else f"section {part}"
