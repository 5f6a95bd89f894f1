"""Tells messages that need nothing looked up: greetings, thanks, commands. A question that begins with one stays."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

from shared.text import fold

#: Longer messages are read as questions: nobody greets at such length.
_MAX_CHARS = 200
_BREAKS = re.compile(r"[^\w\s'/+#&@%$-]+")
_POLITE = re.compile(r"^(?:please|well|so|and|oh|请|麻烦)\s*|\s*(?:please|then|now|again|啊|呀|啦|哈|哦|嘛|吧|呢|了)$")
_SLASH = re.compile(r"/[a-z]{1,20}")


def needs_nothing(text: str) -> str | None:
    """Why nothing needs to be looked up, a sentence for people; None when something does."""
    if len(text) > _MAX_CHARS:
        return None
    phrases, commands = _phrases()
    parts = _parts(fold(text))
    if not any(c.isalnum() for part in parts for c in part):
        return "The message holds no words: nothing needs to be looked up."
    if all(_known(part, phrases) for part in parts):
        return "The message is a greeting, thanks or an acknowledgement: nothing needs to be looked up."
    if all(_known(part, phrases | commands) or _SLASH.fullmatch(part) for part in parts):
        return "The message is a bare command: nothing needs to be looked up."
    return None


def without_talk(text: str) -> str:
    """`text` without greetings and thanks before and after what is asked; as it stands where nothing else is left."""
    if len(text) > _MAX_CHARS:
        return text.strip()
    phrases, _ = _phrases()
    rest, at = text, 0
    while (end := _BREAKS.search(rest, at)) is not None and _known(fold(rest[: end.start()]).strip(), phrases):
        rest = rest[end.end() :].lstrip()
    return rest.strip() or text.strip()


def _parts(text: str) -> list[str]:
    return [part for part in (" ".join(part.split()) for part in _BREAKS.split(text.replace("’", "'"))) if part]


def _known(part: str, phrases: frozenset[str]) -> bool:
    return part in phrases or _POLITE.sub("", part).strip() in phrases


@cache
def _phrases() -> tuple[frozenset[str], frozenset[str]]:
    table = tomllib.loads(resources.files("orchestrator.intent").joinpath("smalltalk.toml").read_text("utf-8"))
    return frozenset(table["talk"]), frozenset(table["commands"])
