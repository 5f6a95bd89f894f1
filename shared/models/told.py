"""Strings that are told in another way over HTTP: paths of the server's machine, and sentences that name a command."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import PlainSerializer, SerializationInfo

_OTHERS, _WORDS = "for_others", "words"
#: The context of a dump to JSON that goes to another machine.
FOR_OTHERS: dict[str, Any] = {_OTHERS: True}
_ROOT = re.compile(r"(^|^ingest |, )(?:[\w.\-]+:)?/(?:[^,]*/)?")


def told_by(words: Callable[[str], str], *, remote: bool) -> dict[str, Any]:
    """The context of a dump to JSON in which `words` words sentences; `remote`: it goes to another machine, too."""
    return {_OTHERS: remote, _WORDS: words}


def _path(value: str, info: SerializationInfo) -> str:
    if not info.context or not info.context.get(_OTHERS) or "/" not in value:
        return value
    return _ROOT.sub(r"\1", value.rstrip("/"))


def _sentence(value: str, info: SerializationInfo) -> str:
    if not info.context or _WORDS not in info.context or "`" not in value:
        return value
    worded: str = info.context[_WORDS](value)
    return worded


def _command(value: str, info: SerializationInfo) -> str:
    return _sentence(f"`{value}`", info)[1:-1]


#: A path, `NAMESPACE:PATH`, or the name of a job that puts paths in. What does not begin so is left as it is.
ServerPath = Annotated[str, PlainSerializer(_path, when_used="json")]
#: What may name a command of `ramify`, in backquotes.
Sentence = Annotated[str, PlainSerializer(_sentence, when_used="json")]
#: A command alone.
Command = Annotated[str, PlainSerializer(_command, when_used="json")]
