"""Digests of the settings that decide answers, part by part, so that two processes can tell where theirs differ.

Addresses, keys, paths and what only bounds time or load are left out: a client may reach a server by another name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from shared.settings import Settings

#: The digest of each part: a strategy's as `strategies.NAME`, a section's by its name.
Fingerprint = Mapping[str, str]
STRATEGY = "strategies."
_WHOLE = (
    "decomposition", "multi_query", "binding", "routing", "aggregators", "enumeration", "search", "chunking",
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
_DIGITS = 12


def fingerprint(settings: Settings) -> Fingerprint:
    """The digests of `settings`; the order of keys and defaults that are written out change none."""
    found = {name: _digest(getattr(settings, name).model_dump(mode="json")) for name in _WHOLE}
    for name, fields in _FIELDS.items():
        found[name] = _digest(getattr(settings, name).model_dump(mode="json", include=set(fields)))
    found["llm"] = _digest({name: getattr(settings, name) for name in _LLM})
    for name, stages in settings.strategies.items():
        found[f"{STRATEGY}{name}"] = _digest([stage.model_dump(mode="json") for stage in stages])
    return found


def _digest(value: Any) -> str:
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
