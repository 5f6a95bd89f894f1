"""Reads which symbol of code a question is about, by patterns. Never looks whether there is one."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

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
    text = question[:_READ_CHARS]
    found = (pattern.whole.search(text) for pattern in _patterns("symbol") if pattern.behind.search(text))
    return next((_name(one) for one in found if one), None) or asked_callers(question)


def asked_callers(question: str) -> str | None:
    """The name in a question that asks which code calls it and nothing else; None for any other question."""
    text = question[:_READ_CHARS].strip().rstrip(_STOPS)
    found = (pattern.whole.fullmatch(text) for pattern in _patterns("callers"))
    return next((_name(one) for one in found if one), None)


def _name(found: re.Match[str]) -> str:
    name = next(group for group in found.groups() if group)
    return re.sub(r"::|#|->", ".", name.strip("`").removesuffix("()"))


class _Pattern(NamedTuple):
    """`behind`: what it has behind a name at its beginning. That is looked for first: names are tried at each place."""

    whole: re.Pattern[str]
    behind: re.Pattern[str]


@derived
def _patterns(way: Literal["symbol", "callers"]) -> tuple[_Pattern, ...]:
    written = [pattern for language in languages() for pattern in language.words.edges.get(way, ())]
    return tuple(
        _Pattern(_compiled(one), _compiled(one.removeprefix("<code>") if one.startswith("<code>") else ""))
        for one in written
    )


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub("<(?:code|name|word)>", lambda form: f"({_FORMS[form[0]]})", pattern), re.IGNORECASE)
