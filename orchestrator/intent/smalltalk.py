"""Tells messages that need nothing looked up: greetings, thanks, commands. A question that begins with one stays."""

from __future__ import annotations

import re

from shared.language import derived, languages
from shared.language.text import fold

#: Longer messages are read as questions: nobody greets at such length.
_MAX_CHARS = 200
_BREAKS = re.compile(r"[^\w\s'/+#&@%$-]+")
_SLASH = re.compile(r"/[a-z]{1,20}")


def needs_nothing(text: str) -> str | None:
    """Why nothing needs to be looked up, a sentence for people; None when something does."""
    if len(text) > _MAX_CHARS:
        return None
    talk, commands = _phrases()
    parts = _parts(fold(text))
    if not any(c.isalnum() for part in parts for c in part):
        return "The message holds no words: nothing needs to be looked up."
    if all(_known(part, talk) for part in parts):
        return "The message is a greeting, thanks or an acknowledgement: nothing needs to be looked up."
    if all(_known(part, talk | commands) or _SLASH.fullmatch(part) for part in parts):
        return "The message is a bare command: nothing needs to be looked up."
    return None


def without_talk(text: str) -> str:
    """`text` without greetings and thanks before and after what is asked; as it stands where nothing else is left."""
    if len(text) > _MAX_CHARS:
        return text.strip()
    talk, _ = _phrases()
    rest, at = text, 0
    while (end := _BREAKS.search(rest, at)) is not None and _known(fold(rest[: end.start()]).strip(), talk):
        rest = rest[end.end() :].lstrip()
    return rest.strip() or text.strip()


def _parts(text: str) -> list[str]:
    return [part for part in (" ".join(part.split()) for part in _BREAKS.split(text.replace("’", "'"))) if part]


def _known(part: str, phrases: frozenset[str]) -> bool:
    return part in phrases or _polite().sub("", part).strip() in phrases


@derived
def _phrases() -> tuple[frozenset[str], frozenset[str]]:
    tables = [language.words for language in languages()]
    return (
        frozenset(phrase for table in tables for phrase in table.talk),
        frozenset(phrase for table in tables for phrase in table.commands),
    )


@derived
def _polite() -> re.Pattern[str]:
    return re.compile("|".join(pattern for language in languages() for pattern in language.words.polite) or r"(?!)")
