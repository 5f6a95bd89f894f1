"""Reads a question with what documents of the kind or folder that it lists have: their fields, their dates. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from orchestrator.planning.lists.doubts import without_field
from orchestrator.planning.lists.field_values import of_one_word
from orchestrator.planning.lists.folders import folder_names, leaf_of
from orchestrator.planning.lists.kinds import folder_of_kind, without_kind
from orchestrator.planning.lists.people import is_people
from orchestrator.planning.lists.reading import Reading, read_question
from orchestrator.planning.lists.runs import told
from orchestrator.planning.lists.understood import understood
from orchestrator.planning.lists.words import Sentence, compiled, kind_names, unique
from shared.language.text import is_han, plain, value_key
from shared.models import Filters
from shared.models.enumeration import FieldFilter, Scan, Values
from shared.models.request import ContextType

Ask = Callable[[Filters], Values]
#: Documents of which so few have a date are told apart by the days of their fields.
_DATED = 0.5
#: Before it no document was written: all that have a date fit.
_FIRST_DAY = date(1, 1, 1)
#: Kinds of people that are looked at for who is asked for.
_MOST_KINDS = 10
#: Kinds and folders that are looked at for those that have a value.
_MOST_HOMES = 30


def read_closely(question: str, filters: Filters, ask: Ask, today: date) -> tuple[Reading, Values]:
    """The reading with the fields of those documents alone that it is of, and the values that it was read with.

    `ask` gives the values under a filter. A name may be an owner of one kind and a reviewer of another one, and a
    field that the listed kind does not have says nothing of it. Who is asked for without a kind is one of the only
    kind of people that has what is said.
    """
    values = ask(filters)
    reading = read_question(question, filters, values, today)
    if (folder := folder_of_kind(reading.scan, values)) and not filters.paths:
        values = without_kind(values, ask(filters.model_copy(update={"paths": (folder,)})), folder)
        reading = read_question(question, filters, values, today)
    scan = reading.scan
    inside = _inside(filters, scan)
    if inside == filters:
        if not _is_of_verb(question, scan) and (people := _among_people(question, filters, ask, values, today)):
            return people
        if (scan is None or reading.unread) and (noun := _noun(question, filters, values)) is not None:
            own = _own(values, ask(noun))
            again = _read_own(question, filters, ask, own, today, noun)
            return (again, own) if again.scan and not again.unread else (reading, values)
        who = scan and scan.per and compiled("<head_who>").search(Sentence(question).text)
        if (home := _home(reading, filters, ask, values)) and not (who and _of_people(home)):
            own = _own(values, ask(home))
            again = _read_own(question, filters, ask, own, today, home)
            if again.scan and len(again.unread) <= len(reading.unread):
                return again, own
        return _read_own(question, filters, ask, values, today, inside, reading), values
    if scan is None or scan.code or not values.fields:
        return reading, values
    values = _own(values, ask(inside))
    reading = _read_own(question, filters, ask, values, today, inside)
    warnings = (*reading.warnings, *without_field(reading.scan, values, question))
    return reading.model_copy(update={"warnings": warnings}), values


def _inside(filters: Filters, scan: Scan | None) -> Filters:
    """The filter with the kinds and folders that the question names."""
    if scan is None:
        return filters
    inside = {"kinds": filters.kinds or scan.found.kinds, "paths": filters.paths or scan.found.paths}
    return filters.model_copy(update=inside)


def _of_people(inside: Filters) -> bool:
    """True for a filter whose documents are people."""
    called = [*inside.kinds, *map(leaf_of, inside.paths)]
    return bool(called) and all(map(is_people, called))


def _is_of_verb(question: str, scan: Scan | None) -> bool:
    """True where who is asked for is somebody of the field whose verb is said: "who reviewed it"."""
    words = re.findall(r"[^\W\d_]+", plain(question))
    named = (*scan.per.names,) if scan and scan.per else ()
    return any(of_one_word(word, name) for word in words for name in named)


def _noun(question: str, filters: Filters, values: Values) -> Filters | None:
    """The filter with the only kind, or folder, whose name stands in the question, in the singular, too."""
    if filters.kinds or filters.paths or not values.fields:
        return None
    text = Sentence(question).text
    words = [place for place in range(len(text)) if is_han(text[place]) or not text[place - 1 : place].isalnum()]
    kinds, folders = kind_names(values.kinds), folder_names(values.folders)
    called = {value for place in words if (name := kinds.at(text, place)) for value in name.values}
    if len(called) == 1:
        return filters.model_copy(update={"kinds": tuple(called)})
    called = {value for place in words if (name := folders.at(text, place)) for value in name.values}
    inside = tuple(folder for folder in values.folders if leaf_of(folder) in called)
    return filters.model_copy(update={"paths": inside}) if len(called) == 1 else None


def _home(reading: Reading, filters: Filters, ask: Ask, values: Values) -> Filters | None:
    """The filter with the kind, or else the innermost folder, in which all documents lie that have the read values.

    What is asked of them is a field that these have: not the price of a delivery, of badgers.
    """
    scan = reading.scan
    wanted = [one for one in scan.fields if one.values and not one.negated] if scan else []
    timed = scan and (scan.found.after or scan.found.before or scan.dates)
    asked = scan and (scan.per or scan.total or scan.by or scan.columns or scan.unread or reading.guessed or timed)
    if not asked or not wanted or not values.fields or filters.kinds or filters.paths:
        return None
    kinds = [filters.model_copy(update={"kinds": (kind,)}) for kind in values.kinds if kind != ContextType.RESOURCE]
    inner = sorted(values.folders, key=lambda folder: (-folder.count("/"), folder))
    folders = [filters.model_copy(update={"paths": (folder,)}) for folder in inner]
    for inside in [*kinds, *folders] if len(kinds) + len(folders) <= _MOST_HOMES else ():
        if all(_having(one, values) == _having(one, ask(inside)) for one in wanted):
            return inside
    return None


def _having(wanted: FieldFilter, values: Values) -> int:
    known = (values.fields.get(value_key(name), {}) for name in wanted.names)
    return sum(fields.get(value, 0) for fields in known for value in wanted.values)


def _own(values: Values, own: Values) -> Values:
    """The values with the fields of some of the documents alone."""
    truncated = {*values.truncated} - {"fields"} | {*own.truncated} & {"fields"}
    update = {"fields": own.fields, "fields_unknown": own.fields_unknown, "documents": own.documents}
    return values.model_copy(update={**update, "truncated": tuple(sorted(truncated))})


def _read_own(  # noqa: PLR0913, PLR0917 - a question, what it is read with, and the documents that it is of
    question: str,
    filters: Filters,
    ask: Ask,
    values: Values,
    today: date,
    inside: Filters,
    reading: Reading | None = None,
) -> Reading:
    """The reading with the fields of these documents. Where they have no date, a time is one of their fields'.

    `reading`: the one with these values, where there is one.
    """
    text = Sentence(question).text
    somebody = compiled("<head_who>").search(text) and not compiled("<group_whose>").search(text)
    of_people = _of_people(inside) and bool(somebody)
    if reading is None or of_people:
        reading = read_question(question, filters, values, today, of_people=of_people)
    reading = _among(reading, inside, question) if of_people else reading
    scan = reading.scan
    if not values.fields or (scan and scan.code):
        return reading
    timed = scan and (scan.found.after or scan.found.before or scan.dates or scan.without_dates)
    ordered = (scan and scan.order in ("newest", "oldest")) or compiled("<day_last>|<day_first>").search(text)
    if not timed and not (ordered and not (scan and scan.by)):
        return reading
    dated = ask(inside.model_copy(update={"after": inside.after or _FIRST_DAY})).documents
    if dated >= _DATED * values.documents:
        return reading
    again = read_question(question, filters, values, today, undated=True, of_people=of_people)
    return _among(again, inside, question) if of_people else again


def _among(reading: Reading, inside: Filters, question: str) -> Reading:
    """The reading with a word of it that who is asked for is a document itself."""
    if reading.scan is None or reading.scan.per:
        return reading
    among = told("list_who_among", (*inside.kinds, *inside.paths), question)
    return reading.model_copy(update={"warnings": unique([*reading.warnings, among])})


def _among_people(
    question: str, filters: Filters, ask: Ask, values: Values, today: date
) -> tuple[Reading, Values] | None:
    """The reading of "who speaks Dutch" among the only kind, or folder, of which it is understood; None for several.

    Those of people go before: they are whom is asked for; of any other one it is the people in a field.
    """
    text = Sentence(question).text
    if filters.kinds or filters.paths or not values.fields or not compiled("<head_who>|<group_who>").search(text):
        return None
    named = (kind for kind in values.kinds if kind != ContextType.RESOURCE)  # what says no kind is of that one
    kinds = [filters.model_copy(update={"kinds": (kind,)}) for kind in named]
    nearest = sorted(values.folders, key=lambda folder: (folder.count("/"), folder))
    folders = [filters.model_copy(update={"paths": (folder,)}) for folder in nearest]
    found: list[tuple[Reading, Values, Filters]] = []
    for among in ([each for each in (*kinds, *folders) if _of_people(each)], kinds, folders):
        for inside in among[:_MOST_KINDS] if not found else ():
            own = _own(values, ask(inside))
            reading = _read_own(question, filters, ask, own, today, inside)
            scan = reading.scan
            asked = scan and (scan.per or scan.columns or _of_people(inside))
            if scan and asked and not scan.code and not reading.unread and (scan.fields or scan.by or scan.choices):
                found = [each for each in found if not (inside.paths and inside.paths[0].startswith(each[2].paths))]
                found.append((reading, own, inside))
    if len(found) != 1:
        return None
    reading, own, inside = found[0]
    return reading.model_copy(update={"scan": _narrowed(reading.scan, inside)}), own


def _narrowed(scan: Scan | None, inside: Filters) -> Scan | None:
    """The scan of the documents of that kind or folder alone."""
    if scan is None:
        return None
    scan = scan.model_copy(
        update={"found": scan.found.model_copy(update={"kinds": inside.kinds, "paths": inside.paths})}
    )
    return scan.model_copy(update={"understood": understood(scan)})
