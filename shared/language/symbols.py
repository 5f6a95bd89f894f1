"""Reads which symbol of code a question is about, by patterns. Never looks whether there is one."""

from __future__ import annotations

import re
from typing import Literal

from shared.language import derived, derived_last, languages

#: Characters of a question that are read.
_READ_CHARS = 500
_STOPS = " ?？.。!！:："
_PART = r"[A-Za-z_$][A-Za-z0-9_$]{0,119}"
_JOINT = r"(?:\.|::|#|->)"
_END = r"(?![A-Za-z0-9_$])"
_PATH = rf"{_PART}(?:{_JOINT}{_PART})"
#: What only code writes: quoted, called, with parts, with an underscore, or with a capital after a small first letter.
_CODE = (
    rf"(?-i:`{_PATH}{{0,9}}(?:\(\))?`|{_PATH}{{0,9}}\(\)|{_PATH}{{1,9}}{_END}"
    rf"|(?=[\w$]*?_|[a-z][a-z0-9]*[A-Z]){_PART}{_END})"
)
#: The same, or two capitalised words in one (`BaseClient`, but also GitHub); and any one word.
_NAME = rf"(?:{_CODE}|(?-i:(?=[A-Z][A-Z0-9]*[a-z][a-z0-9]*[A-Z]){_PART}{_END}))"
_WORD = rf"(?:{_CODE}|{_PART}{_END})"
_FORMS = {"<code>": _CODE, "<name>": _NAME, "<word>": _WORD}


@derived_last(256)
def named_symbol(question: str) -> str | None:
    """The name in a question after what calls it, what it calls, or what breaks when it changes; its parts have dots.

    None where no pattern of `words.edges.symbol` reads one, and none of `words.edges.callers` the whole question.
    """
    found = (pattern.search(question[:_READ_CHARS]) for pattern in _patterns("symbol"))
    return next((_name(one) for one in found if one), None) or asked_callers(question)


def asked_callers(question: str) -> str | None:
    """The name in a question that asks which code calls it and nothing else; None for any other question."""
    text = question[:_READ_CHARS].strip().rstrip(_STOPS)
    found = (pattern.fullmatch(text) for pattern in _patterns("callers"))
    return next((_name(one) for one in found if one), None)


def _name(found: re.Match[str]) -> str:
    name = next(group for group in found.groups() if group)
    return re.sub(r"::|#|->", ".", name.strip("`").removesuffix("()"))


@derived
def _patterns(way: Literal["symbol", "callers"]) -> tuple[re.Pattern[str], ...]:
    written = (pattern for language in languages() for pattern in language.words.edges.get(way, ()))
    return tuple(
        re.compile(re.sub("<(?:code|name|word)>", lambda form: f"({_FORMS[form[0]]})", pattern), re.IGNORECASE)
        for pattern in written
    )
