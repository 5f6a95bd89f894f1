"""Reads Markdown with front matter in YAML or TOML. Renders nothing; YAML builds strings, lists and mappings only."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import date, time
from pathlib import PurePath
from typing import Any

import yaml

from shared.models import RawDocument
from workers.index.blocks import first_title
from workers.index.documents import Document, Markup
from workers.index.fields import fields_of, said_at_head
from workers.index.metadata import other_fields, read_metadata, with_head
from workers.index.readers.base import UnreadableError, decode

_MAX_CHARS, _MAX_NODES, _MAX_DEPTH = 65_536, 5_000, 10
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_TOML_CLOSING = re.compile(r"^\+\+\+[ \t]*$", re.MULTILINE)
_FIELD = re.compile(r"[ \t]*[\w\"'][^\n:]{0,80}:(?:\s|$)")
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def read_markdown(raw: RawDocument) -> Iterator[Document]:
    """One document. Its title is the front matter's, else the first level-1 heading, else the file's name."""
    fields, body = split_front_matter(decode(raw.content))
    if not body.strip():
        raise UnreadableError("is empty")
    meta = with_head(read_metadata(fields), said_at_head(body))
    title = meta.title or first_title(body) or PurePath(raw.path).stem
    given = {**dict(meta), "title": title, "fields": fields_of(other_fields(fields), body)}
    yield Document.of(raw, text=body, markup=Markup.MARKDOWN, **given)


def split_front_matter(text: str) -> tuple[dict[str, object], str]:
    """The fields of the front matter (empty without one) and the body.

    A first `---` followed by an empty line or by prose is a rule, as in CommonMark. TOML stands between lines `+++`.
    Raises: UnreadableError naming the line when the front matter is broken.
    """
    opening, _, rest = text.partition("\n")
    if opening.rstrip() == "+++" and (closing := _TOML_CLOSING.search(rest)):
        return _load_toml(rest[: closing.start()]), rest[closing.end() :].removeprefix("\n")
    if opening.rstrip() != "---" or rest[:1] in ("\n", ""):
        return {}, text
    closing = _CLOSING.search(rest)
    if closing is None:
        if _FIELD.match(rest):
            raise UnreadableError("line 1: the front matter is never closed: end it with a line ---")
        return {}, text
    head, body = rest[: closing.start()], rest[closing.end() :].removeprefix("\n")
    _check_length(head)
    fields = _load(head)
    if isinstance(fields, dict):
        return fields, body
    if isinstance(fields, list):
        raise UnreadableError("line 2: the front matter is a list: write name: value lines")
    return ({}, text) if fields and fields.strip() else ({}, body)


def _check_length(head: str) -> None:
    if len(head) > _MAX_CHARS:
        raise UnreadableError(f"line 1: the front matter is longer than {_MAX_CHARS} characters: shorten it")


def _load_toml(head: str) -> dict[str, object]:
    """Text, lists and tables; dates become text as YAML has it."""
    _check_length(head)
    try:
        fields = tomllib.loads(head)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableError(f"the front matter is not valid TOML ({error}, behind the line +++)") from None
    except RecursionError:
        raise UnreadableError("line 1: the front matter is too large or too deep: simplify it") from None
    return {name: value.isoformat() if isinstance(value, date | time) else value for name, value in fields.items()}


def _load(head: str) -> Any:
    try:
        _check_events(head)
        return yaml.load(head, Loader=_LOADER)  # noqa: S506 - the base loader builds text, lists and mappings only
    except yaml.MarkedYAMLError as error:
        where = f"line {_line(error.problem_mark)}: the front matter is not valid YAML"
        raise UnreadableError(f"{where} ({error.problem}): quote values that hold a colon or brackets") from None
    except yaml.YAMLError as error:
        reason = str(error).partition("\n")[0]
        raise UnreadableError(f"the front matter is not valid YAML ({reason}): remove that character") from None


def _check_events(head: str) -> None:
    """Bound what the loader will build. Events come one by one; building recurses, so this goes first."""
    depth = nodes = 0
    for event in yaml.parse(head, Loader=_LOADER):
        line = _line(event.start_mark)
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            if event.anchor is not None:
                raise UnreadableError(f"line {line}: the front matter has an anchor or alias (& or *): quote the value")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH or nodes > _MAX_NODES:
            raise UnreadableError(f"line {line}: the front matter is too large or too deep: simplify it")


def _line(mark: Any) -> int:
    """The line of the file, from 1: the YAML starts on its second line, and YAML counts from 0."""
    return int(mark.line) + 2 if mark else 1
