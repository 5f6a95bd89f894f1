"""Tells messages that need nothing looked up: greetings, thanks, commands. A question that begins with one stays.

What is a greeting the rules of routing know; only commands have a list of their own: without a conversation they are
questions like any other.
"""

from __future__ import annotations

import re

from shared.language import derived, languages
from shared.language.routing import route_by_rules
from shared.language.text import fold
from shared.models.route import QueryType

#: Longer messages are read as questions: nobody greets at such length.
_MAX_CHARS = 200
_BREAKS = re.compile(r"[^\w\s'/+#&@%$-]+")
_SLASH = re.compile(r"/[a-z]{1,20}")


def needs_nothing(text: str) -> str | None:
    """Why nothing needs to be looked up, a sentence for people; None when something does."""
    if len(text) > _MAX_CHARS:
        return None
    parts = _parts(fold(text))
    if not any(c.isalnum() for part in parts for c in part):
        return "The message holds no words: nothing needs to be looked up."
    if not all(_is_command(part) or _is_talk(part) for part in parts):
        return None
    if any(map(_is_command, parts)):
        return "The message is a bare command: nothing needs to be looked up."
    return "The message is a greeting, thanks or an acknowledgement: nothing needs to be looked up."


def without_talk(text: str) -> str:
    """`text` without greetings and thanks before and after what is asked; as it stands where nothing else is left."""
    if len(text) > _MAX_CHARS:
        return text.strip()
    rest, at = text, 0
    while (end := _BREAKS.search(rest, at)) is not None and _is_talk(rest[: end.start()]):
        rest = rest[end.end() :].lstrip()
    return rest.strip() or text.strip()


def _parts(text: str) -> list[str]:
    return [part for part in (" ".join(part.split()) for part in _BREAKS.split(text.replace("’", "'"))) if part]


def _is_talk(part: str) -> bool:
    return any(c.isalnum() for c in part) and route_by_rules(part).type is QueryType.NONE


def _is_command(part: str) -> bool:
    known = part in _commands() or _polite().sub("", part).strip() in _commands()
    return known or _SLASH.fullmatch(part) is not None


@derived
def _commands() -> frozenset[str]:
    return frozenset(phrase for language in languages() for phrase in language.words.commands)


@derived
def _polite() -> re.Pattern[str]:
    return re.compile("|".join(pattern for language in languages() for pattern in language.words.polite) or r"(?!)")
