"""The languages that the rules know, and which of them a text is in. Never translates, and asks no model.

A new language is a folder beside this file, with its one `LANGUAGE`, and its name in `_FOLDERS`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import ParamSpec, TypeVar, cast

from shared.byte_cache import ByteCache
from shared.language.base import Language
from shared.language.tables import NEVER

__all__ = [
    "Language", "alternatives", "answer_language", "claim_pattern", "derived", "derived_last", "derived_of_passages",
    "languages", "query_sentence", "question_language", "reader_sentence", "register", "sentence_in",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")
_FOLDERS = ("en", "zh")
_CACHE_SIZE = 32_768
#: Of passages by which results are kept: what is derived of them takes ten to thirty times as much.
_PASSAGE_BYTES = 512 * 1024
_added: list[Language] = []
_caches: list[Callable[[], None]] = []


def derived(function: Callable[P, R]) -> Callable[P, R]:
    """functools.lru_cache for what is derived from all languages; emptied when a language is added or taken out."""
    return derived_last(_CACHE_SIZE)(function)


def derived_last(most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The same for the last `most` arguments, where these are short texts and not words."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(most)(function)
        _caches.append(cached.cache_clear)
        return cast(Callable[P, R], cached)

    return decorate


def derived_of_passages(function: Callable[..., R]) -> Callable[..., R]:
    """The same for functions of passages, whose length nobody knows: as many as take 512 KB. None is not kept."""
    known = ByteCache[tuple[str, ...], R](_PASSAGE_BYTES)
    _caches.append(known.clear)

    def remembered(*texts: str) -> R:
        found = known.get(texts)
        if found is None:
            found = function(*texts)
            known.keep(texts, found, sum(map(sys.getsizeof, texts)))
        return found

    return remembered


@derived
def languages() -> tuple[Language, ...]:
    """All languages, loaded at the first call; their rules are asked in this order."""
    return (*(import_module(f"{__name__}.{folder}").LANGUAGE for folder in _FOLDERS), *_added)


def register(language: Language) -> Callable[[], None]:
    """Add a language for the rest of this process; what is returned takes it out again."""
    _added.append(language)
    _forget()

    def withdraw() -> None:
        _added.remove(language)
        _forget()

    return withdraw


def alternatives(get: Callable[[Language], Iterable[str]]) -> str:
    """What `get` gives of every language, as the inside of a group of a pattern; without any it matches nothing."""
    return "|".join(each for language in languages() for each in get(language)) or NEVER


@derived
def claim_pattern(name: str) -> re.Pattern[str]:
    """A pattern of claims.toml by its name, of all languages at once."""
    return re.compile(alternatives(lambda language: [getattr(language.claims, name)]))


def question_language(text: str) -> Language | None:
    """The language whose rules can read `text`, None when there is none."""
    best = max(languages(), key=lambda language: language.reads(text))
    return best if best.reads(text) else None


def answer_language(text: str) -> Language:
    """The language in which something is said to a reader of `text`."""
    return max(languages(), key=lambda language: language.speaks(text))


def reader_sentence(name: str, text: str, *values: object) -> str:
    """The sentence of that name in words.toml, with `values` in its places, for a reader of `text`."""
    return sentence_in(answer_language(text), name, *values)


def query_sentence(name: str, text: str, *values: object) -> str:
    """The same for what is written into a query: in the language whose rules read `text`."""
    return sentence_in(question_language(text) or answer_language(text), name, *values)


def sentence_in(language: Language, name: str, *values: object) -> str:
    """The sentence of that name in `language`, else in the first one, with `values` in its places."""
    says = language.words.says
    sentence = says[name] if name in says else languages()[0].words.says[name]
    return sentence.format(*values) if values else sentence


def _forget() -> None:
    for clear in _caches:
        clear()
