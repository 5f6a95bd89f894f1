"""Words commands of `ramify` in errors as another face has them: as requests of HTTP, or as tools of a model.

Errors name the way out as a command, in backquotes; the registry says which operation that is, and where else it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from orchestrator.operations.operation import HttpRoute, Operation
from orchestrator.operations.registry import OPERATIONS
from shared.errors import NoAnswerError, RamifyError

_COMMAND = re.compile(r"`ramify ([^`]+)`")
_PLACE = re.compile(r"\{(\w+)(?::path)?\}")
_WORD = re.compile(r'"[^"]*"|\S+')
#: An aside that only names a command: "; `ramify jobs` lists them".
_ASIDE = re.compile(r"[;,] `ramify [^`]+`[^;`]*$")
#: Commands that are buttons, links and addresses of the page, and the clause that names one at the end of a sentence.
_PAGED = re.compile(r"ramify (?:ask|cancel|jobs|refresh|result|retry|status|why)\b")
_PAGED_CLAUSE = re.compile(rf"[;:,] [^;:`]*`{_PAGED.pattern}[^`]*`[^;`]*$")
#: Operations of this machine's own user -> what HTTP has for them.
_OVER_HTTP = {"ingest": "push"}
#: Operations that a command does where its job puts documents in.
_OF_INGESTS = {"result": "ingest_report"}


def over_http(error: RamifyError | None, text: str, batch_id: str = "") -> str:
    """`text`, of an error perhaps, with requests for commands; commands that HTTP has not stay, for its operator.

    `batch_id`: an id that is a batch's; others are so where the text says it.
    """
    way = partial(_request, batch_id=batch_id)
    return _COMMAND.sub(lambda found: _worded(error, found, way), text)


def for_models(error: RamifyError, text: str) -> str:
    """The same with tools for commands; an aside that names a command which is no tool is left out."""
    told = _COMMAND.sub(lambda found: _worded(error, found, _tool), text)
    return _ASIDE.sub("", told)


def for_page(text: str) -> str:
    """The same without what the page has besides: clauses at its end that name such commands."""
    while (shorter := _PAGED_CLAUSE.sub("", text)) != text:
        text = shorter
    return text


def on_page(command: str) -> bool:
    """Whether the page has what a command does."""
    return _PAGED.match(command) is not None


def _worded(
    error: RamifyError | None, found: re.Match[str], way: Callable[[Operation[Any], Sequence[str], str], str | None]
) -> str:
    words = _WORD.findall(found[1])
    for length in range(len(words), 0, -1):
        command = " ".join(words[:length])
        wanted = _OF_INGESTS.get(command) if isinstance(error, NoAnswerError) and error.of_ingest else None
        for operation in OPERATIONS.values():
            if operation.command == command and wanted in {None, operation.name}:
                told = way(operation, words[length:], found.string)
                if told is not None:
                    return told
    return found[0]


def _request(operation: Operation[Any], rest: Sequence[str], text: str, *, batch_id: str) -> str | None:
    """`POST /v1/jobs/ID/retry {"degraded": true}`; None where there is no route."""
    if instead := _OVER_HTTP.get(operation.name):
        operation, rest = OPERATIONS[instead], ()
    if not operation.routes or operation.local_only:
        return None
    given = [word for word in rest if not word.startswith("--")]
    kind = "batch" if given and (given[0] == batch_id or f"batch {given[0]}" in text) else "job"
    route = next((one for one in operation.routes if one.fixed.get("kind", kind) == kind), operation.routes[0])
    options = dict.fromkeys(_flags(operation, rest), True)
    named = _PLACE.findall(route.path)
    path = _PLACE.sub(lambda place: _filled(place[1], named, given), route.path)
    return f"`{route.method} {path}{_told(route, options)}`"


def _filled(name: str, named: Sequence[str], given: Sequence[str]) -> str:
    at = named.index(name)
    return quote(given[at], safe="#") if at < len(given) else name.upper()


def _told(route: HttpRoute, options: dict[str, bool]) -> str:
    if not options:
        return ""
    return f" {json.dumps(options)}" if route.method == "POST" else f"?{'&'.join(f'{name}=true' for name in options)}"


def _tool(operation: Operation[Any], rest: Sequence[str], _: str) -> str | None:
    """The tool `status` with "ID"; None where there is none."""
    if operation.tool is None:
        return None
    given = [word for word in rest if not word.startswith("--")]
    flags = [f"{name}=true" for name in _flags(operation, rest)]
    told = ", ".join([*given, *flags])
    return f"the tool `{operation.tool}`" + (f" ({told})" if told else "")


def _flags(operation: Operation[Any], rest: Sequence[str]) -> list[str]:
    """The options of a command that are switches of the operation."""
    names = [word[2:].replace("-", "_") for word in rest if word.startswith("--")]
    fields = operation.input.model_fields
    return [name for name in names if name in fields and fields[name].default is False]
