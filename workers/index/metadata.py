"""What documents say of themselves: front matter, facets, kinds. Never fails: a value that is dropped leaves a note."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from shared.errors import shown
from shared.language import derived, languages
from shared.language.written_days import parse_date
from shared.models.base import Model

_FIELDS = ("title", "date", "tags", "kind", "facet")
_MAX_TITLE, _MAX_TAG, _MAX_TAGS = 300, 100, 50
_TAG_SEPARATORS = re.compile(r"[,，、;；\n]")
_KIND = re.compile(r"(?=.{1,64}$)[\w.\-]++(?:[ \t]+[\w.\-]++){0,3}")
_NOTHING = ("", "null", "~")
FACETS = ("context", "intent", "action", "result", "insight")
_PARTS = re.compile(r"[（()）/／|·:：]")
_LABEL = re.compile(r"[\W_]{0,8}([^\W_][^:：*_\n]{0,40}+)(?:\*\*|__|\*|_)?\s{0,2}[:：]")
RESOURCE = "resource"
_SKILL_FILE = "skill.md"


class Metadata(Model):
    """What a document says of itself; None where it says nothing. `notes` has a sentence for each value dropped."""

    title: str | None = None
    date: str | None = None
    tags: tuple[str, ...] = ()
    kind: str = ""
    facet: str | None = None
    notes: tuple[str, ...] = ()


def read_metadata(fields: Mapping[str, object]) -> Metadata:
    """Metadata from front matter or the fields of a JSON line; other fields are ignored."""
    lowered = {str(name).strip().lower(): value for name, value in fields.items()}
    given = {name: _first(lowered, _keys(name)) for name in _FIELDS}
    notes: list[str] = []
    return Metadata(
        title=_title(given["title"], notes),
        date=_date(given["date"], notes),
        tags=_tags(given["tags"], notes),
        kind=_kind(given["kind"], notes),
        facet=_facet(given["facet"], notes),
        notes=tuple(notes),
    )


def with_head(meta: Metadata, said: Mapping[str, str]) -> Metadata:
    """With the day and the tags that lines at the head of a text say, where its front matter has none."""
    head = read_metadata(said)
    return meta.model_copy(update={"date": meta.date or head.date, "tags": meta.tags or head.tags})


def other_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """What of front matter is none of a document's own metadata."""
    known = {key for name in _FIELDS for key in _keys(name)}
    return {str(name).strip(): value for name, value in fields.items() if str(name).strip().lower() not in known}


def printable_line(text: str) -> str:
    """Untrusted text as one printable line: control characters and runs of white space become one space."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _first(fields: Mapping[str, object], keys: tuple[str, ...]) -> object:
    given = (fields[key] for key in keys if key in fields)
    return next((value for value in given if value is not None and value not in _NOTHING), None)


@derived
def _keys(field: str) -> tuple[str, ...]:
    """The names of a field, in all languages."""
    return tuple(name for language in languages() for name in language.words.sections.keys.get(field, ()))


@derived
def _kinds() -> Mapping[str, str]:
    return {name: kind for language in languages() for name, kind in language.words.sections.kinds.items()}


def _scalar(value: object) -> str | None:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _title(value: object, notes: list[str]) -> str | None:
    text = _scalar(value)
    if text is None:
        _dropped("title", value, "write it as text", notes)
        return None
    title = printable_line(text)
    if len(title) > _MAX_TITLE:
        notes.append(f"title: cut to {_MAX_TITLE} of {len(title)} characters")
    return title[:_MAX_TITLE] or None


def _date(value: object, notes: list[str]) -> str | None:
    day = parse_date(_scalar(value) or "")
    if day is None:
        _dropped("date", value, "write it as YYYY-MM-DD", notes)
        return None
    return day.isoformat()


def _tags(value: object, notes: list[str]) -> tuple[str, ...]:
    text = _scalar(value)
    given = _TAG_SEPARATORS.split(text) if text is not None else value
    if not isinstance(given, list):
        _dropped("tags", value, "write a list", notes)
        return ()
    tags: dict[str, None] = {}
    for item in given:
        tag = printable_line(_scalar(item) or "").lstrip("#").strip()
        if (tag or item == "") and len(tag) <= _MAX_TAG:
            tags.setdefault(tag)
        elif item is not None:
            _dropped("tags", item, f"a tag is a text of up to {_MAX_TAG} characters", notes)
    tags.pop("", None)
    if len(tags) > _MAX_TAGS:
        notes.append(f"tags: {len(tags) - _MAX_TAGS} of {len(tags)} left out: a document has up to {_MAX_TAGS}")
    return tuple(tags)[:_MAX_TAGS]


def _kind(value: object, notes: list[str]) -> str:
    kind = (_scalar(value) or "").strip().lower()
    if _KIND.fullmatch(kind):
        return _kinds().get(kind, "-".join(kind.split()))
    _dropped("kind", value, "write up to four words, as memory, skill or pest report", notes)
    return ""


def _facet(value: object, notes: list[str]) -> str | None:
    facet = facet_of([printable_line(_scalar(value) or "")])
    if facet is None:
        _dropped("facet", value, f"write {', '.join(FACETS[:-1])} or {FACETS[-1]}", notes)
    return facet


def _dropped(name: str, value: object, fix: str, notes: list[str]) -> None:
    if value is not None:
        notes.append(f"{name}: {shown(value)} left out: {fix}")


def labels(heading: str) -> list[str]:
    """What a heading says, folded: the whole of it and its parts, without number, emphasis and brackets.

    "二、行（Action）" says 行 and action.
    """
    found = _number().match(heading)
    bare = heading[found.end() if found else 0 :]
    return [part.strip(" *_").casefold() for part in (bare, *_PARTS.split(bare))]


def facet_of(headings: Sequence[str]) -> str | None:
    """context, intent, action, result or insight for a heading path, the deepest heading first."""
    return next((facet for heading in reversed(headings) for facet in _facet_named(heading)), None)


def label_of(text: str) -> str | None:
    """The facet that a text is labelled with at its start: "**Result:** ...", "- Result: ...", "结果：..."."""
    found = _LABEL.match(text)
    return next(_facet_named(found[1]), None) if found else None


def _facet_named(heading: str) -> Iterator[str]:
    return (facet for label in labels(heading) if (facet := _facets().get(label)))


@derived
def _facets() -> Mapping[str, str]:
    tables = (language.words.sections.facets for language in languages())
    return {title: facet for table in tables for facet, titles in table.items() for title in titles}


@derived
def _number() -> re.Pattern[str]:
    """The number of a heading, in digits or numerals, and marks around it."""
    numerals = [f"[{each}]{{1,3}}" for language in languages() if (each := language.words.sections.numerals)]
    counted = "|".join((r"\d{1,3}", *numerals))
    return re.compile(rf"[\W_]*(?:(?:{counted})[.、．)）:：]\s*)*")


def kind_of(given: str, path: str, folders: Mapping[str, str]) -> str:
    """`given` by the document; else by its name (SKILL.md) or its folder; else resource.

    `folders`: "memories/" = "memory". A folder counts as the root itself or right below it: `path` begins with the
    root's name.
    """
    if given:
        return given
    if PurePosixPath(path).name.lower() == _SKILL_FILE:
        return "skill"
    below = path.partition("/")[2]
    fitting = [folder for folder in folders if path.startswith(folder) or below.startswith(folder)]
    return folders[max(fitting, key=len)] if fitting else RESOURCE
