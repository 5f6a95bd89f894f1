"""The languages that the rules know, and which of them a text is in. Never translates, and asks no model.

A new language is a folder beside this file, with its one `LANGUAGE`, and its name in `_FOLDERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import ParamSpec, TypeVar, cast

from shared.language.base import Language

__all__ = [
    "Language", "answer_language", "derived", "filled", "languages", "question_language", "register", "said", "worded",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")
_FOLDERS = ("en", "zh")
_MOST_CACHED = 32_768
_added: list[Language] = []
_caches: list[Callable[[], None]] = []


def derived(function: Callable[P, R]) -> Callable[P, R]:
    """As functools.lru_cache, for what is made of all languages together: forgotten when one is registered."""
    cached = lru_cache(_MOST_CACHED)(function)
    _caches.append(cached.cache_clear)
    return cast(Callable[P, R], cached)


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


def question_language(text: str) -> Language | None:
    """The language whose rules can read `text`, None when there is none."""
    best = max(languages(), key=lambda language: language.reads(text))
    return best if best.reads(text) else None


def answer_language(text: str) -> Language:
    """The language in which something is said to a reader of `text`."""
    return max(languages(), key=lambda language: language.speaks(text))


def said(name: str, text: str, *values: object) -> str:
    """The sentence of that name, with `values` in its places, for a reader of `text`."""
    return filled(answer_language(text), name, *values)


def worded(name: str, text: str, *values: object) -> str:
    """As `said`, for what is written into a question: in the language whose rules read `text`."""
    return filled(question_language(text) or answer_language(text), name, *values)


def filled(language: Language, name: str, *values: object) -> str:
    """The sentence of that name in `language`, else in the first one, with `values` in its places."""
    says = language.words.says
    sentence = says[name] if name in says else languages()[0].words.says[name]
    return sentence.format(*values) if values else sentence


def _forget() -> None:
    for clear in _caches:
        clear()
