"""Reads conditions of which some are enough: "blocked or with priority P1", "at least two of the tags". Pure."""

from __future__ import annotations

from orchestrator.planning.lists.markers import COUNT, KnownTags, NamedValues, counted_in, listed_values
from orchestrator.planning.lists.words import GAP, Sentence, compiled, unique
from shared.models.enumeration import Choice, FieldFilter

_LEAD = r"(?:(?:<field_lead>|<field_said>|<article_words>|<value_end!>|<tail>) *)*"
#: "or" between things that were taken out.
_EITHER = rf"{GAP}(?: *[,、] *{_LEAD}{GAP})*(?: *<value_end!>)? *[,、]? *(?:<either>) *{_LEAD}{GAP}"
_AND_BEFORE = rf"{GAP} *(?:<both>) *{_LEAD}$"
_AND_BEHIND = rf" *[,、]? *(?:<both>) *{_LEAD}{GAP}"
_AT_LEAST = rf"(?:<least_of>)\s*{COUNT}\s*(?:<least_of_end>)\s*"
_INSIDE = rf"(?:<least_inside>){COUNT}(?:<least_inside_end>)"
_MOST = 4


def take_choices(sentence: Sentence, named: NamedValues) -> None:
    """Join what "or" stands between to one condition. What is not known, denied or mixed with "and" is left."""
    for _ in range(_MOST):
        text = sentence.text
        found = compiled(_EITHER).search(text)
        if found is None or compiled(_AND_BEFORE).search(text[: found.start()]):
            return
        first = text[: found.start()].count(GAP)
        taken = [sentence.taken_at(first + number) for number in range(found[0].count(GAP))]
        wanted = [named.taken[serial] for serial in taken if serial in named.taken]
        if len(wanted) < len(taken) or compiled(_AND_BEHIND).match(text, found.end()) or not _remove(wanted, named):
            return
        fields = tuple(one for one in wanted if isinstance(one, FieldFilter))
        tags = unique([tag for one in wanted if not isinstance(one, FieldFilter) for tag in one])
        named.choices.append(Choice(fields=fields, tags=tags))
        sentence.take(*found.span())


def take_least(sentence: Sentence, known: KnownTags, named: NamedValues) -> None:
    """Tags of which so many are enough: "at least two of the tags a, b and c", a、b、c中至少两个标签."""
    found = compiled(_AT_LEAST).search(sentence.text)
    values, _, end = listed_values(sentence, found.end(), known.names, unknown=False) if found else ([], False, 0)
    count = counted_in(found) if found else 0
    if found and 0 < count <= len(values):
        behind = compiled(r"\s*<least_of_behind>").match(sentence.text, end)
        tags = unique([tag for value in values for tag in known.names.of(value)])
        _keep(tags, count, named)
        sentence.take(found.start(), behind.end() if behind else end)
        return
    for before in compiled("<least_before>").finditer(sentence.text):
        values, _, end = listed_values(sentence, before.end(), known.names, unknown=False)
        inside = compiled(_INSIDE).match(sentence.text, end) if len(values) > 1 else None
        if inside and (count := counted_in(inside)) <= len(values):
            named.choices.append(
                Choice(tags=unique([tag for one in values for tag in known.names.of(one)]), least=count)
            )
            sentence.take(before.start(), inside.end())
            return


def _keep(tags: tuple[str, ...], count: int, named: NamedValues) -> None:
    if count == 1:
        named.tags.append(tags)
    else:
        named.choices.append(Choice(tags=tags, least=count))


def _remove(wanted: list[FieldFilter | tuple[str, ...]], named: NamedValues) -> bool:
    """Take the conditions out of those that all must hold; False, and nothing is done, where one is none of them."""
    fields, tags = [*named.fields], [*named.tags]
    for one in wanted:
        if isinstance(one, FieldFilter):
            if one.negated or one not in fields:
                return False
            fields.remove(one)
        elif one in tags:
            tags.remove(one)
        else:
            return False
    named.fields, named.tags = fields, tags
    return True
