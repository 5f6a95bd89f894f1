"""The names that say nothing about a corpus: builtins, methods of strings and lists, standard libraries."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

#: Type words that are no names of types, in any of the languages.
TYPE_KEYWORDS = frozenset({"map", "func", "chan", "interface", "struct", "keyof", "typeof", "readonly", "unique", "fn"})


@dataclass(frozen=True, slots=True)
class Words:
    """See builtins.toml. `wrappers` are types that stand for the type inside them."""

    calls: frozenset[str]
    methods: frozenset[str]
    outside: frozenset[str]
    wrappers: frozenset[str]


@lru_cache(maxsize=16)
def words(language: str) -> Words:
    """The words of one language; TypeScript has JavaScript's."""
    text = (resources.files("workers.index.code") / "builtins.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)["javascript" if language == "typescript" else language]
    sets = {name: frozenset(table[name].split()) for name in ("calls", "methods", "outside", "wrappers")}
    return Words(**sets)
