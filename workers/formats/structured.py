"""JSON, YAML, TOML and settings as text: keys are headings, values lines, lists of records rows below their keys.

YAML and TOML are read line by line, so that comments stay and no alias, tag or anchor of a file is ever followed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Any

import yaml

from workers.formats.encodings import decoded
from workers.formats.parsed import FilePart, Parsed, heading, joined, tables_of

#: Keys that are headings; deeper ones are written with dots.
_MAX_LEVEL = 3
_MAX_DEPTH = 60
_MAX_COLUMNS = 60
_ROWS = 20
_SAMPLE = 50
_LONG = 2_000
_CHECKED_CHARS, _CHECKED_BRACKETS = 4_000_000, 10_000
#: A key of YAML, with what stands behind its colon.
_KEY = re.compile(
    r"(?P<indent> *+)(?P<dash>(?:- +)*+)"
    r"(?P<key>\"[^\"]{1,200}\"|'[^']{1,200}'|[^\s#\-\"'{\[&*!|>%@`][^:#]{0,200}?):(?:\s+(?P<value>.*))?$"
)
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?\s*(?:#.*)?$")
_TABLE = re.compile(r"\s*\[{1,2}\s*([^\[\]]{1,300}?)\s*\]{1,2}\s*(?:#.*)?$")
_COMMENT = re.compile(r"\s*[#;]+ ?(.*)")
_QUOTES = re.compile(r'"([^"]*)"|\'([^\']*)\'')


def parse(content: bytes, name: str) -> Parsed:
    """Raises: FormatError for what is not UTF-8 text."""
    text = decoded(content)
    suffix = PurePath(name).suffix.lower()
    if suffix == ".json":
        return _of_json(text)
    lines = text.replace("\r\n", "\n").split("\n")
    shown = FilePart("\n".join(_YamlText(lines) if suffix in {".yaml", ".yml"} else _toml(lines)))
    fault = _FAULTS[suffix](text) if suffix in _FAULTS else ""
    return joined([shown], notes=(f"is no valid {suffix[1:].upper()} ({fault}): read line by line",) if fault else ())


def _fault_of_toml(text: str) -> str:
    try:
        tomllib.loads(text)
    except ValueError as error:
        return str(error)
    return ""


def _fault_of_yaml(text: str) -> str:
    """By the events of libyaml: no alias is followed and nothing is made.

    Not told where libyaml is not built in, and of files on which it might take seconds: long, or full of brackets.
    """
    parser = getattr(yaml, "CBaseLoader", None)
    try:
        if parser is not None and len(text) < _CHECKED_CHARS and text.count("[") + text.count("{") < _CHECKED_BRACKETS:
            deque(yaml.parse(text, Loader=parser), maxlen=0)
    except yaml.MarkedYAMLError as error:
        at = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        return f"{error.problem}{at}"
    except yaml.YAMLError as error:
        return " ".join(str(error).split())
    return ""


_FAULTS = {".toml": _fault_of_toml, ".yaml": _fault_of_yaml, ".yml": _fault_of_yaml}


def rows(values: Sequence[Any], first: int) -> Parsed:
    """Records one below the other; `first` is the number of the first one."""
    return joined(_listed(values, (), 0, first))


def _of_json(text: str) -> Parsed:
    if not text.strip():
        return joined(())
    try:
        value = json.loads(text)
    except ValueError as error:  # with comments, of several values, or a template: its lines can be found all the same
        return joined([FilePart(text)], notes=(f"is no valid JSON ({error}): read as plain text",))
    return joined(_of_value(value))


def _of_value(value: Any) -> Iterator[FilePart]:
    if isinstance(value, Mapping | list):
        yield from _shown(value, (), 0)
    else:
        yield FilePart(str(value))


def _shown(value: Any, keys: tuple[str, ...], depth: int) -> Iterator[FilePart]:
    """A value below its keys: first what is short, then what has keys of its own."""
    if depth > _MAX_DEPTH:
        raise RecursionError
    if isinstance(value, list):
        yield from _listed(value, keys, depth)
        return
    lines, deeper = list[str](), list[tuple[str, Any]]()
    for key, inner in value.items():
        if _is_short(inner):
            lines.append(f"{'.'.join((*keys[_MAX_LEVEL:], str(key)))}: {_scalar(inner)}")
        else:
            deeper.append((str(key), inner))
    if lines:
        yield FilePart("\n".join(lines))
    for key, inner in deeper:
        if len(keys) < _MAX_LEVEL:
            yield FilePart(heading(len(keys) + 1, key))
        yield from _shown(inner, (*keys, key), depth + 1)


def _listed(values: Sequence[Any], keys: tuple[str, ...], depth: int, first: int = 1) -> Iterator[FilePart]:
    """A list: records as rows, short values as items, anything else one after the other."""
    name = ".".join(keys)
    if columns := _columns(values):
        rows = ((number, [_scalar(row.get(key)) for key in columns]) for number, row in enumerate(values, first))
        for begin, end, table in tables_of(chain([(0, columns)], rows), _ROWS):
            yield FilePart(table, f"{f'{name}, ' if name else ''}items {begin}-{end}")
        return
    if all(_is_short(value) for value in values):
        lead = f"{'.'.join(keys[_MAX_LEVEL:])}: " if keys[_MAX_LEVEL:] else ""
        yield FilePart(lead + "\n".join(f"- {_scalar(value)}" for value in values))
        return
    for number, value in enumerate(values, first):
        if _is_short(value):
            yield FilePart(f"- {_scalar(value)}")
        else:
            if len(keys) < _MAX_LEVEL:
                yield FilePart(heading(len(keys) + 1, _name_of(value) or f"{keys[-1] if keys else 'item'} {number}"))
            yield from _shown(value, (*keys, str(number)), depth + 1)


def _columns(values: Sequence[Any]) -> list[str]:
    """The keys of records whose values are short; none for a list of anything else."""
    if len(values) < 2 or not all(isinstance(value, Mapping) for value in values):
        return []
    if not all(_is_short(inner) for value in values[:_SAMPLE] for inner in value.values()):
        return []
    found = list(dict.fromkeys(str(key) for value in values for key in value))
    return found if len(found) <= _MAX_COLUMNS else []


def _is_short(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= 8 and all(not isinstance(one, Mapping | list) for one in value) and _short_text(value)
    return not isinstance(value, Mapping) or not value


def _short_text(values: Iterable[Any]) -> bool:
    return sum(len(str(value)) for value in values) < 200


def _scalar(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_scalar(one) for one in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)[:_LONG] if value else ""
    if isinstance(value, bool) or value is None:
        return json.dumps(value) if value is not None else ""
    return str(value)


def _name_of(value: Any) -> str:
    """What a record calls itself."""
    found = (value.get(key) for key in ("name", "title", "id", "key")) if isinstance(value, Mapping) else iter(())
    return next((str(one)[:100] for one in found if isinstance(one, str | int) and str(one).strip()), "")


def _toml(lines: Sequence[str]) -> Iterator[str]:
    """Tables are headings, comments prose; keys stand as they are written."""
    quoted = ""
    for line in lines:
        if not quoted and (table := _TABLE.match(line)) and "=" not in line.partition("#")[0]:
            keys = _QUOTES.sub(lambda found: found[1] or found[2] or "", table[1])
            yield f"\n{heading(min(keys.count('.') + 1, _MAX_LEVEL), keys)}\n"
        elif not quoted and (comment := _COMMENT.match(line)):
            yield comment[1]
        else:
            yield line.strip() if not quoted else line
        for mark in ('"""', "'''"):
            if quoted in ("", mark) and line.count(mark) % 2:
                quoted = "" if quoted else mark


class _YamlText:
    """Keys with something below them are headings, deeper ones are written with dots; comments are prose."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        #: Keys around the line, with their columns.
        self._above: list[tuple[int, str]] = []
        #: The column of the key whose text of many lines goes on, -1 for none, and whether it stands in a fence.
        self._literal, self._fenced = -1, False

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self._lines):
            if self._literal >= 0:
                if not line.strip() or _indent(line) > self._literal:
                    yield line[self._literal + 2 :] if self._fenced else line.strip()
                    continue
                yield from self._closed()
            if not line.strip() or line.startswith(("---", "...", "%")):
                yield ""
            elif comment := _COMMENT.fullmatch(line):
                yield comment[1]
            elif found := _KEY.fullmatch(line.rstrip()):
                yield self._key(found, number)
            else:
                yield line.strip()
        yield from self._closed()

    def _closed(self) -> Iterator[str]:
        if self._literal >= 0 and self._fenced:
            yield "```"
        self._literal, self._fenced = -1, False

    def _key(self, found: re.Match[str], number: int) -> str:
        dash, column = found["dash"], len(found["indent"]) + len(found["dash"])
        while self._above and self._above[-1][0] >= column:
            self._above.pop()
        key, value = found["key"].strip("\"'"), (found["value"] or "").strip()
        if not value and not dash and _has_below(self._lines, number, len(found["indent"])):
            self._above.append((column, key))
            return f"\n{heading(len(self._above), key)}\n" if len(self._above) <= _MAX_LEVEL else ""
        path = ".".join((*(name for _, name in self._above[_MAX_LEVEL:]), key))
        if _BLOCK.match(value):
            self._literal, self._fenced = column, value.startswith("|")
            return f"{dash}{path}:" + ("\n\n```" if self._fenced else "")
        lead = dash or ("  " if self._in_item(column, number) else "")
        return f"{lead}{path}: {value}".rstrip()

    def _in_item(self, column: int, number: int) -> bool:
        """Whether a key goes on with the list item that a line above began."""
        for line in reversed(self._lines[max(0, number - 30) : number]):
            if line.strip() and _indent(line) < column:
                return line.lstrip().startswith("- ") and (not self._above or self._above[-1][0] <= _indent(line))
        return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _has_below(lines: Sequence[str], number: int, indent: int) -> bool:
    """Whether the next line with text stands below this key."""
    for line in lines[number + 1 : number + 50]:
        if line.strip() and not line.lstrip().startswith("#"):
            return _indent(line) > indent or (_indent(line) == indent and line.lstrip().startswith("- "))
    return False
