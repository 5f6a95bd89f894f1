"""Reads `Key: value` off a line: plain, emphasised, a list item, several with a bar between, or a table row. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from shared.language import derived, languages
from shared.language.text import is_han, value_key
from shared.language.written_days import is_date
from workers.display import plain_line

#: Longest name of a field, in characters; it has few words, as prose before a colon has not.
MAX_NAME = 40
_MAX_LINE = 400
_MOST_WORDS = 4
_MOST_HAN = 12
_MARKS = re.compile(r"(?:[ \t]{0,8}(?:>|[-*+•](?=[ \t])|\d{1,3}[.)](?=[ \t])|\[[ xX]\](?=[ \t])))*[ \t]*")
_NAME = r"(?P<name>[^\W\d_][\w \t\-/&()（）'’#]{0,39})"
_WHOLE_NAME = re.compile(_NAME)
_PAIR = re.compile(
    rf"[:*_`~]{{0,4}}{_NAME}[*_`~]{{0,4}}[ \t]{{0,4}}(?:：|:(?![:/\\]))[*_`~]{{0,3}}"
    r"(?P<gap>[ \t]*)(?P<value>[^\n]{1,300})"
)
_BETWEEN = re.compile(r"(?<![ \t])[ \t]++(?:[|·•∙/–—][ \t]++|　++[ \t]*+)|　++[ \t]*+|\t")
#: A gap that no two words have between them.
_WIDE = re.compile(r"[ \t]{3,}")
_CLAUSES = re.compile(r"[;；,，、][ \t]*")
#: A name and a value without a colon between: a dash, an arrow, "=", a wide gap, or the name in bold.
_LOOSE = re.compile(
    rf"(?:\*\*|__)(?P<bold>{_NAME.replace('?P<name>', '?:')})(?:\*\*|__)"
    r"(?:[ \t]+(?:--?|[–—→=]|->|=>))?[ \t]+(?P<behind>\S.*)"
    r"|(?P<name>[^\W\d_][\w \-/&()（）'’#]{0,39}?)"
    r"(?:[ \t]+(?:--?|[–—→]|->|=>|==?)[ \t]+| ?(?:——|=) ?|  | ?\t ?)(?P<value>\S.*)"
)
#: What every line has that `labelled` or `loosely_labelled` reads.
_HINT = re.compile(r"[:：|=\t]|\*\*|__|[ \t][\-–—→]|——|  ")
#: What each has that the latter reads.
_LOOSELY = re.compile(r"\*\*|__|[ \t][\-–—→]|——|[=\t]|  ")
_OPEN = re.compile(rf"[:*_`~]{{0,4}}{_NAME}[*_`~]{{0,4}}[ \t]{{0,4}}[:：][*_`~]{{0,3}}[ \t]*")
_STRUCK = re.compile(r"~~[^~\n]{1,300}~~")
_SIGNS = "\U0001f000-\U0001faff\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d"
_EDGE = re.compile(rf"[{_SIGNS} \t\n]")
_SIGN = re.compile(rf"^[{_SIGNS} \t]++|(?<![{_SIGNS} \t])[{_SIGNS} \t]++$")
_CELLS = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[\s:|+=\-*_~]*")
#: Longest value that may be asked for, in characters.
_MAX_VALUE = 80
#: Characters of each of two names with "and" between them; 和 stands in many a name.
_LEAST_PART = 2
_SEPARATOR = re.compile(r"(?:(?<!\s)\s++)?+(?:[;；、，]|,(?!\d))\s*+|(?<!\d),\s*+")
#: What is said of a value behind it: "high (a customer waits)", "open - since May".
_NOTE = re.compile(r"(?:(?<!\s)\s++)?+[(（][^()（）]*+[)）]$|(?<!\s)\s++(?:--?|[–—])\s+.*$|——.*$")
#: Text that has no markup in it.
_UNMARKED = re.compile(r"(?:[^\W_]|[ .,;/+=()#@%\-])*")
_ENDS = " *_|\t`\"'“”「」"


class Labelled(NamedTuple):
    """The name and the value of a field, as a reader sees them: without markup."""

    name: str
    value: str


def may_be_labelled(line: str) -> bool:
    """False for a line of which `labelled` and `loosely_labelled` read nothing."""
    return _HINT.search(line) is not None


def labelled(line: str) -> list[Labelled]:
    """The fields that a line names; empty for prose, even with a colon in it."""
    bare = line[:_MAX_LINE].strip()
    if ":" not in bare and "：" not in bare and "|" not in bare:
        return []
    if bare.startswith("|"):
        cells = cells_of(bare)
        return [pair] if len(cells) == 2 and (pair := field(*cells)) else []
    bare = without_marks(bare)
    for between in (_BETWEEN, _CLAUSES):
        parts = [part for part in between.split(bare) if part]
        found = [pair for pair in takewhile(bool, map(_labelled, parts)) if pair] if len(parts) > 1 else []
        if found and len(parts) == len(found) and (between is _BETWEEN or any(is_known(pair.name) for pair in found)):
            return found
    whole = _labelled(bare)
    return [whole] if whole else []


def without_marks(line: str) -> str:
    """A line without the marks of lists, quotes and signs at its begin."""
    bare = line[:_MAX_LINE].strip()
    bare = bare[_MARKS.match(bare).end() :]  # type: ignore[union-attr]  # it matches nothing, too
    return _without_signs(_WIDE.sub("\t", bare) if "  " in bare or "\t" in bare else bare)


def _without_signs(text: str) -> str:
    """`text` without the signs at its ends."""
    return _SIGN.sub("", text) if _EDGE.match(text) or _EDGE.match(text[-1:]) else text


def loosely_labelled(line: str) -> Labelled | None:
    """The field of a line without a colon: "Owner - Ada", "**Owner** Ada". Many a line of prose looks so, too."""
    found = _LOOSE.fullmatch(without_marks(line)) if _LOOSELY.search(line) else None
    return field(found["bold"] or found["name"] or "", found["behind"] or found["value"]) if found else None


def opened(line: str) -> str:
    """The name of a field whose value stands below it: "Owners:"; else ""."""
    found = _OPEN.fullmatch(without_marks(line)) if ":" in line or "：" in line else None
    return found["name"].strip() if found else ""


def is_known(name: str) -> bool:
    """True for a name that fields have in the languages' tables."""
    return value_key(name) in _field_names()


@derived
def _field_names() -> frozenset[str]:
    tables = (rows for language in languages() for rows in language.lists.fields.values())
    return frozenset(value_key(name) for rows in tables for row in rows for name in row)


def cells_of(row: str) -> list[str]:
    """The cells of a table row that begins with a bar; none for the line below a table's head."""
    cells = [cell.strip() for cell in _CELLS.split(row.strip().strip("|")[:_MAX_LINE])]
    return [] if all(_RULE.fullmatch(cell) for cell in cells) else cells


def pairs_of_table(rows: Sequence[str]) -> list[Labelled]:
    """The fields of a table: rows of name and value, or names above one row of values. Two by two may be either."""
    cells = [found for row in rows if (found := cells_of(row))]
    if (
        len(cells) > 1
        and value_key(cells[0][0]) in _heads()
        and (len(cells[0]) == 2 or (len(cells[0]) == 3 and any(is_known(row[0]) for row in cells[1:])))
    ):
        return [pair for row in cells[1:] if len(row) > 1 and (pair := field(*row[:2]))]
    widths = {len(row) for row in cells}
    if len(widths) != 1:
        return []
    pairs = [field(*row) for row in cells if len(row) == 2]
    if len(cells[0]) > 2 and all(is_known(name) or not name for row in cells for name in row[::2]):
        pairs += [field(name, value) for row in cells for name, value in zip(row[::2], row[1::2], strict=False)]
    names_below, names_beside = (all(map(is_known, names)) for names in (next(zip(*cells, strict=True)), cells[0]))
    if names_beside and not names_below and len(cells) == 2:
        pairs = []
    if len(cells) == 2 and len(cells[0]) > 1 and (names_beside or not names_below):
        pairs += [field(name, value) for name, value in zip(*cells, strict=True)]
    return [pair for pair in pairs if pair]


@derived
def _heads() -> frozenset[str]:
    """What stands above the names of fields in a table, where anything does."""
    heads = (head for language in languages() for head in language.lists.phrases.get("heads", ()))
    return frozenset(("", *map(value_key, heads)))


def _labelled(text: str) -> Labelled | None:
    found = _PAIR.match(text)
    if found is None or (not found["gap"] and found["name"][-1].isdigit() and found["value"][:1].isdigit()):
        return None  # 10:30 is a time
    return field(found["name"], found["value"])


def field(name: str, value: str) -> Labelled | None:
    """A field without markup; None where the name is none, or the value is empty."""
    name, value = _plain(name), _plain(value)
    words = name.split()
    fits = 0 < len(name) <= MAX_NAME and len(words) <= _MOST_WORDS and (not is_han(name) or len(name) <= _MOST_HAN)
    return Labelled(name, value) if fits and value and _WHOLE_NAME.fullmatch(name) else None


def _plain(text: str) -> str:
    text = text if _UNMARKED.fullmatch(text) else plain_line(_STRUCK.sub("", text))
    return _without_signs(text.strip(_ENDS))


def is_rule(line: str) -> bool:
    """True for a line of marks alone: a rule, the line below a heading or below a table's head."""
    return _RULE.fullmatch(line) is not None


def split_values(text: str) -> list[str]:
    """The values of a field; one with "and" in it also by its parts. Too long ones are none."""
    values: dict[str, None] = {}
    if is_date(day := _bare(text)):  # it may have commas and slashes
        return [day]
    for part in _SEPARATOR.split(text):
        whole = _bare(part)
        noteless = _bare(_NOTE.sub("", whole))
        parts = [_bare(each) for each in _soft_separator().split(noteless)]
        for each in (whole, noteless, *(parts if all(len(each) >= _LEAST_PART for each in parts) else ())):
            if each and len(each) <= _MAX_VALUE and value_key(each) not in _nothing():
                values.setdefault(each)
    return list(values)


def _bare(text: str) -> str:
    bare = text.strip(_ENDS).removeprefix("@")
    return bare[:-1] if bare.endswith((".", "。")) and not bare[:-1].endswith(".") else bare


@derived
def _nothing() -> frozenset[str]:
    """What is written where a field has no value."""
    return frozenset(value_key(word) for language in languages() for word in language.lists.phrases.get("nothing", ()))


@derived
def _soft_separator() -> re.Pattern[str]:
    """Between two values, or inside of one: "Ada and Bo", "Search and Ranking"."""
    words = [word for language in languages() for word in language.words.and_]
    latin = "|".join(rf"(?<!\s)\s++{re.escape(word.strip())}\s++" for word in words if word.strip().isascii())
    other = "|".join(re.escape(word) for word in words if not word.strip().isascii())
    return re.compile("|".join(filter(None, (r"(?:(?<!\s)\s++)?+[/&]\s*+", latin, other))), re.IGNORECASE)
