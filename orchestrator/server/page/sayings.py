"""Sentences of the server in the visitor's language: `said.toml` has templates of them. Pure."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from orchestrator.operations.wording import for_page
from orchestrator.server.page.words import Words, catalogue
from shared.language.tables import toml

_VALUE = re.compile(r"\{(\w+)\}")
#: What a value may be, by its name; any text otherwise.
_VALUES = {"command": "`[^`]+`"} | dict.fromkeys(("n", "of", "done", "count", "now", "most", "seconds"), r"[\d.,]+")
_COMMAND = re.compile(r"`ramify (\w++)[^`]*+`")
#: Between two sentences of one text.
_NEXT = re.compile(r"(?<=\.) (?=[A-Z`])")
#: How deep values may stand within values, and characters of what is translated at most.
_DEEPEST, _LONGEST = 3, 2_000


def told(words: Words, text: str) -> str:
    """What the server says, for the page: without commands that the page stands in for, in the visitor's language."""
    said = translated(words.language, for_page(text))
    return _COMMAND.sub(lambda found: words.known(f"place.{found[1]}") or found[0], said)


@lru_cache(4096)
def translated(language: str, text: str) -> str:
    """`text`, or sentence by sentence what is known of it, in that language; what is not known stays as it is."""
    return _known(language, text) or text if len(text) <= _LONGEST else text


def _known(language: str, text: str, depth: int = 0) -> str | None:
    """None where nothing of it is known. `depth`: of values within values."""
    sentences = _NEXT.split(text)
    found = [_whole(language, one, depth) for one in sentences]
    if len(sentences) == 1 or not all(found):
        whole = _whole(language, text, depth)
        if whole is not None or not any(found):
            return whole
    return " ".join(known or one for known, one in zip(found, sentences, strict=True)).replace("。 ", "。")


def _whole(language: str, text: str, depth: int) -> str | None:
    for pattern, told_as in templates(language) if depth < _DEEPEST else ():
        if found := pattern.fullmatch(text):
            values = {name: _value(language, name, one, depth) for name, one in found.groupdict().items()}
            return _VALUE.sub(lambda name, values=values: values[name[1]], told_as)  # type: ignore[misc]
    return None


def _value(language: str, name: str, text: str, depth: int) -> str:
    """A code has its word, in the section of that name; another value may be a sentence."""
    if word := catalogue(language).get(f"{name}.{text}"):
        return word
    return _known(language, text, depth + 1) or text


@cache
def templates(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns of sentences with what they are told as, those with most words of their own first."""
    try:
        sections = toml(language, "said")
    except FileNotFoundError:
        return ()
    rows = {said: told_as for section in sections.values() for said, told_as in section.items()}
    ordered = sorted(rows, key=lambda said: len(_VALUE.sub("", said)), reverse=True)
    return tuple((_pattern(said), rows[said]) for said in ordered)


def _pattern(said: str) -> re.Pattern[str]:
    parts = _VALUE.split(said)
    return re.compile(
        "".join(
            re.escape(part) if at % 2 == 0 else f"(?P<{part}>{_VALUES.get(part, '.+?')})"
            for at, part in enumerate(parts)
        ),
        re.DOTALL,
    )
