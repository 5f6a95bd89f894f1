"""What a question says of kinds of documents, and folders that are named like one. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.planning.lists.folders import leaf_of
from orchestrator.planning.lists.words import GAP, Names, Sentence, compiled, listed
from shared.language.text import value_key
from shared.models.enumeration import FieldFilter, Scan, Values
from shared.models.request import ContextType

_BARE_YEAR = re.compile(r" (?:19|20)\d\d(?= *[?.!]*$)")
#: Between two kinds of which the second one has a condition before it.
_BETWEEN_KINDS = rf" *(?:<both>|<either>) *{GAP}(?: *{GAP})* *"
_LONGEST_KIND = 40


def folder_of_kind(scan: Scan | None, values: Values) -> str:
    """The one folder that is named like the only kind that is listed: not all in it may say their kind."""
    if scan is None or scan.code or len(scan.found.kinds) != 1 or scan.found.paths:
        return ""
    found = [folder for folder in values.folders if value_key(leaf_of(folder)) == value_key(scan.found.kinds[0])]
    return found[0] if len(found) == 1 else ""


def without_kind(values: Values, inside: Values, folder: str) -> Values:
    """The values without the kind that a folder is named like, where only documents without a kind lie beside it."""
    kind = next((kind for kind in values.kinds if value_key(kind) == value_key(leaf_of(folder))), "")
    whole = inside.kinds.get(kind) == values.kinds.get(kind) and inside.documents > values.kinds.get(kind, 0)
    if not whole or {*inside.kinds} - {kind, ContextType.RESOURCE}:
        return values
    return values.model_copy(update={"kinds": {name: count for name, count in values.kinds.items() if name != kind}})


def with_said_kinds(values: Values) -> Values:
    """The values with kinds that documents say in a line of their text: "Kind: batch"."""
    known = {value_key(kind) for kind in values.kinds}
    said = {
        kind: count
        for name, counts in values.fields.items()
        for kind, count in (counts.items() if compiled("(?:<said_kind>)").fullmatch(name) else ())
        if value_key(kind) not in known
    }
    return values.model_copy(update={"kinds": {**said, **values.kinds}}) if said else values


def as_fields(kinds: Sequence[str], values: Values, *, negated: bool = False) -> list[FieldFilter]:
    """Of kinds that a question names, those that documents say in a line of their text, as conditions on that."""
    names = tuple(name for name in values.fields if compiled("(?:<said_kind>)").fullmatch(name))
    said = tuple(kind for kind in kinds if kind not in values.kinds)
    return [FieldFilter(names=names, values=said, negated=negated)] if names and said else []


def says_kind(scan: Scan) -> bool:
    """True for a list of documents of a kind, or of a folder."""
    said = any(compiled("(?:<said_kind>)").fullmatch(name) for one in scan.fields for name in one.names)
    return bool(scan.found.kinds or scan.found.paths) or said


def say_in_year(sentence: Sentence, kinds: Names) -> None:
    """Say "in" before a year that stands directly behind a kind at the end: "audits 2025"."""
    if found := _BARE_YEAR.search(sentence.text):
        head = sentence.text[: found.start()]
        words = [place.start() for place in re.finditer(r"(?<!\S)\S", head)]
        if any((kind := kinds.at(head, place)) and kind.end == len(head) for place in words):
            sentence.text = f"{head} {listed('in_time')[0]}{found[0]}"


def joins_kinds(text: str, kinds: Names) -> bool:
    """True for "open bugs and failed inspections": each kind has a condition of its own."""
    for joint in compiled(_BETWEEN_KINDS).finditer(text):
        ends = range(max(0, joint.start() - _LONGEST_KIND), joint.start())
        before = any((known := kinds.at(text, at)) and known.end == joint.start() for at in ends)
        if before and kinds.at(text, joint.end()):
            return True
    return False


def misspelt(unread: Sequence[str], kinds: Names) -> tuple[str, str] | None:
    """A word that was not understood, and the kind that it looks like."""
    words = (word for run in unread for word in run.split())
    return next(((word, kind) for word in words if (kind := kinds.misspelt(word))), None)
