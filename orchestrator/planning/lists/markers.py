"""Takes out of a question what it names expressly: tags, kinds, facets, dates, columns. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from orchestrator.planning.lists.dates import DateSpan
from orchestrator.planning.lists.words import GAP, Names, Sentence, compiled, count_of, listed, unique
from shared.language import derived, languages, reader_sentence
from shared.language.text import is_han
from shared.models import Filters
from shared.models.enumeration import AmountOrder, Choice, Condition, FieldFilter, Grouping, ListOrder

_HASH = re.compile(r"(?<![\w&])#(?P<name>[\w\-./]{1,60})")
#: Unknown tags for which a known one is sought that looks like them: it costs a look at all that are known.
_MOST_HINTS = 3
#: Between the values of a list; "redis or celery" wants one of them.
_JOIN = r"\s*(?:[,、]\s*(?P<last><last!>)?|(?P<word><all_of!>|<one_of!>)(?:(?<![a-z])|(?![a-z]))\s*)"
#: A number of documents, in a group.
COUNT = r"(\d{1,4}|<count>)"
_ORDERS: dict[ListOrder, str] = {
    "newest": rf"<newest_first>|<newest_counted> ?{COUNT}<counted>?|(?<![\w.]){COUNT} <newest_counted>|<newest>",
    "oldest": rf"<oldest_first>|<oldest_counted> ?{COUNT}<counted>?|(?<![\w.]){COUNT} <oldest_counted>|<oldest>",
}
_LACKING: dict[Literal["tags", "date"], str] = {"tags": "<no_tags>", "date": "<no_date>"}
#: Of a question that asks for more than these, no part is taken.
MAX_LISTED = 1000
#: Behind something that was taken out: one of the two is enough.
OR_BEFORE = rf"{GAP} *(?P<joint>[,、]? *(?:<either>) *(?:<field_lead> *)?)$"
_NEGATION = r"(?:<negation><negation_tail!>{0,4}|<non!>)\s*"
#: So far before a value its negation is looked for, in characters.
_LOOK_BACK = 60
#: Words such as "with" before "tag" behind which values are looked for.
_MOST_MARKS = 6


@dataclass
class NamedValues:
    """What a question names expressly, so far. `warnings` are for the reader of the answer.

    `left`: words that say more than any filter. `assumed`: what may be meant otherwise, for a warning; `read_as`: how
    fields were read that may mean another; `unknown`: fields with a value that no document has, and those that look
    like it; `taken`: the condition that stood at a gap of the sentence, by the number of its taking out.
    """

    question: str = ""
    tags: list[tuple[str, ...]] = field(default_factory=list)
    without_tags: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    without_kinds: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    without_paths: list[str] = field(default_factory=list)
    fields: list[FieldFilter] = field(default_factory=list)
    read_as: list[str] = field(default_factory=list)
    unknown: list[tuple[str, str, str]] = field(default_factory=list)
    facets: list[str] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    dates: Filters = field(default_factory=Filters)
    more_dates: tuple[Filters, ...] = ()
    without_dates: list[Filters] = field(default_factory=list)
    lacking: list[Literal["tags", "date"]] = field(default_factory=list)
    order: ListOrder = ""
    limit: int = 0
    by: AmountOrder | None = None
    total: Literal["", "sum", "mean"] = ""
    per: Grouping | None = None
    choices: list[Choice] = field(default_factory=list)
    only_tags: str = ""
    taken: dict[int, FieldFilter | tuple[str, ...]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    left: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)

    @property
    def denies(self) -> bool:
        """True when something is left out already."""
        denied = any(wanted.negated for wanted in self.fields)
        return denied or bool(self.without_tags or self.without_kinds or self.without_paths or self.without_dates)


def take_dates(sentence: Sentence, spans: Sequence[DateSpan], named: NamedValues) -> bool:
    """The spans of time that were found: one of those that stand beside each other, and all that stand apart.

    "except in 2025" and 除2025年以外 leave one out. False where no day can be in all of them.
    """
    groups: list[list[DateSpan]] = []
    for span in spans:
        groups[-1:] = [[*groups[-1], span]] if span.beside else [*groups[-1:], [span]]
    wanted: list[list[DateSpan]] = []
    for group in reversed(groups):
        start, end = group[0].start, group[-1].end
        if is_negated(sentence, start) or denied_behind(sentence.text, end):
            named.without_dates += [Filters(after=span.first, before=span.last) for span in group]
        else:
            wanted.append(group)
        sentence.take(negation_start(sentence, start), end)
    if len(wanted) == 1 and len(wanted[0]) > 1:
        named.more_dates = tuple(Filters(after=span.first, before=span.last) for span in wanted[0])
        return True
    days = [span for group in wanted for span in group]
    after = max((span.first for span in days if span.first), default=None)
    before = min((span.last for span in days if span.last), default=None)
    named.dates = Filters(after=after, before=before) if not (after and before and after > before) else Filters()
    return len(days) == len(wanted) and not (after and before and after > before)


def take_lacking(sentence: Sentence, named: NamedValues) -> None:
    """What the documents must have none of: "without any tag", 没有日期的."""
    for name, phrases in _LACKING.items():
        while found := compiled(phrases).search(sentence.text):
            named.lacking.append(name)
            sentence.take(found.start(), found.end())


def take_order(sentence: Sentence, named: NamedValues) -> None:
    """The order by date, and how many of that order: "the five newest", 最近的5篇. Not for a question of how many."""
    for order, phrases in _ORDERS.items():
        for found in compiled(phrases).finditer(sentence.text):
            if (limit := counted_in(found)) <= MAX_LISTED:
                named.order, named.limit = order, limit
                sentence.take(found.start(), found.end())
                return


def counted_in(found: re.Match[str]) -> int:
    """What the number in a group of `COUNT` says; 0 without one."""
    number = next((text for text in found.groups() if text), "")
    return (int(number) if number.isdecimal() else count_of(number)) if number else 0


class KnownTags(NamedTuple):
    """The tags that exist; `truncated`: only the most frequent ones of them."""

    names: Names
    truncated: bool = False


def take_tags(sentence: Sentence, known: KnownTags, named: NamedValues, others: Names) -> None:
    """Tags in "tagged redis", "#redis", "带有缓存标签的": an unknown one is asked for all the same, and said.

    `others`: values of fields; "marked as open" is left to these.
    """
    sentence.text = compiled("(<tagged>) <counted_of>(?= )").sub(r"\1", sentence.text)
    sentence.text = compiled("(<tagged>) (<none_of>)(?= )").sub(r"\2 \1", sentence.text)
    while found := _HASH.search(sentence.text):
        _add_tags([found["name"].rstrip("./")], known, named, negated=is_negated(sentence, found.start()))
        sentence.take(*_around(sentence, found.start(), found.end()))
    place = 0
    while found := compiled("<tagged>").search(sentence.text, place):
        values, either, end = listed_values(sentence, found.end(), known.names)
        if (
            values
            and not known.names.of(values[0])
            and others.of(values[0])
            and not compiled("<a_tag>").search(found[0])
        ):
            place = found.end()
            continue
        if not values:
            named.left.append(found[0].strip())
            sentence.take(found.start(), found.end())
            continue
        either = either or compiled("<any_of>").search(found[0]) is not None
        _take_tags_at(sentence, values, (found, end), known, named, either=either)
    _take_tags_before(sentence, known, named)
    place = 0
    while found := compiled("<tagged_known>").search(sentence.text, place):
        values, either, place = listed_values(sentence, found.end(), known.names, unknown=False)
        if values:
            _take_tags_at(sentence, values, (found, place), known, named, either=either)
        place = 0 if values else found.end()


def _take_tags_at(  # noqa: PLR0913 - what was said of the tags, where, and where it goes
    sentence: Sentence,
    values: list[str],
    place: tuple[re.Match[str], int],
    known: KnownTags,
    named: NamedValues,
    *,
    either: bool,
) -> None:
    """Keep the tags behind a phrase."""
    found, end = place
    negated = found[0].startswith(listed("negating")) or is_negated(sentence, found.start())
    behind = compiled(" *<negation_end>").match(sentence.text, end)
    negated, end = negated or behind is not None, behind.end() if behind else end
    _keep_tags(sentence, values, (found.start(), end), known, named, either=either, negated=negated)


def _keep_tags(  # noqa: PLR0913
    sentence: Sentence,
    values: list[str],
    place: tuple[int, int],
    known: KnownTags,
    named: NamedValues,
    *,
    either: bool = False,
    negated: bool = False,
) -> None:
    """Keep the tags that stand at `place`, with those before them where "or" stands between, and take them out."""
    begun = negation_start(sentence, place[0])
    joint = compiled(OR_BEFORE).search(sentence.text[:begun])
    first = named.tags.pop() if joint and named.tags and not negated else ()
    _add_tags([*first, *values], known, named, either=either or bool(first), negated=negated)
    sentence.take(joint.start("joint") if first and joint else begun, place[1])
    if not negated and (either or len(values) == 1):
        named.taken[sentence.takes] = named.tags[-1]


def _take_tags_before(sentence: Sentence, known: KnownTags, named: NamedValues) -> None:
    """Tags in "带有 redis 和缓存标签的", "with the redis tag": they stand before the word."""
    place = 0
    while found := compiled("<tagged_after>").search(sentence.text, place):
        place = found.end()
        head = sentence.text[: found.start()]
        if before := _values_before(sentence, head, known.names):
            mark, values, either = before
            negated = mark.group().startswith(listed("negating")) or is_negated(sentence, mark.start())
            negated = negated or denied_behind(sentence.text, found.end())
            either = either or compiled("<any_of>").search(mark[0] + found[0]) is not None
            _add_tags(values, known, named, either=either, negated=negated)
            sentence.take(negation_start(sentence, mark.start()), found.end())
            if not negated and (either or len(values) == 1):
                named.taken[sentence.takes] = named.tags[-1]
            place = 0
            continue
        if one := _known_end(head, known.names):
            start, spelt, either = _joined_before(*one, head, known.names)
            negated = is_negated(sentence, start) or denied_behind(sentence.text, found.end())
            _keep_tags(sentence, spelt, (start, found.end()), known, named, either=either, negated=negated)
            place = 0


def _values_before(sentence: Sentence, head: str, names: Names) -> tuple[re.Match[str], list[str], bool] | None:
    """The longest list of values that begins behind "with" and ends where `head` ends, and whether one is enough."""
    marks = list(compiled("<tagged_before> *").finditer(head))[-_MOST_MARKS:]
    for mark in marks:
        if GAP in head[mark.end() :] or not head[mark.end() :].strip():
            continue
        nearest = mark is marks[-1] and is_han(mark[0])  # it alone takes what no document has
        if nearest and not names.at(head, mark.end()) and (one := _known_end(head, names)) and one[0] == mark.end() - 1:
            return mark, [one[1]], False  # 带有机标签: 有 is of the tag
        values, either, end = listed_values(sentence, mark.end(), names, unknown=nearest)
        known = nearest or all(map(names.of, values))
        if values and known and end >= len(head.rstrip()):
            return mark, values, either
    return None


def _known_end(head: str, names: Names) -> tuple[int, str] | None:
    """The longest known tag that `head` ends with."""
    tail = head.rstrip()
    for start in range(max(0, len(tail) - _LOOK_BACK), len(tail)):
        whole = start == 0 or not (tail[start].isascii() and tail[start].isalnum() and tail[start - 1].isalnum())
        if whole and names.of(tail[start:]):
            return start, tail[start:]
    return None


def _joined_before(start: int, name: str, head: str, names: Names) -> tuple[int, list[str], bool]:
    """All the tags of "audio, hull or physics" before "tags": where they begin, and whether one of them is enough."""
    spelt, either = [name], False
    for _ in range(_MOST_MARKS):
        joint = compiled(r"\s*(?:,\s*)?(?:(?P<or><either>)|<both>|,)\s*(?:<article_words>\s+)?$").search(head[:start])
        before = _known_end(head[: joint.start()], names) if joint else None
        if joint is None or before is None:
            break
        start, either = before[0], either or joint["or"] is not None
        spelt.insert(0, before[1])
    return start, spelt, either


def listed_values(sentence: Sentence, start: int, names: Names, *, unknown: bool = True) -> tuple[list[str], bool, int]:
    """The values of a list from `start` on, whether one of them is enough, and where the list ends.

    `unknown`: the first may be a word that is no value.
    """
    values: list[str] = []
    either, place, end = False, start, start
    while True:
        while place < len(sentence.text) and sentence.text[place] == " ":
            place += 1
        if held := sentence.held(place):
            values.append(held[0])
            end = held[1]
        elif known := names.at(sentence.text, place):
            values.append(sentence.text[place : known.end])
            end = known.end
        elif unknown and not values and (word := _unknown_value().match(sentence.text, place)):
            values.append(word[0])
            end = word.end()
        else:
            return values, either, end
        join = compiled(_JOIN).match(sentence.text, end)
        if not join:
            return values, either, end
        either = either or compiled("<one_of!>").fullmatch((join["word"] or join["last"] or "").strip()) is not None
        place = join.end()


@derived
def _unknown_value() -> re.Pattern[str]:
    """A word that is no known value: up to a mark, or a character that ends values."""
    return re.compile(rf"[^\s,;:!?，。；：！？、()\x1f{''.join(listed('value_end'))}]{{1,60}}")


def _add_tags(
    spelt: list[str], tags: KnownTags, named: NamedValues, *, either: bool = False, negated: bool = False
) -> None:
    groups = []
    for name in spelt:
        known = tags.names.of(name)
        if not known and not tags.truncated:
            near = tags.names.near(name) if len(named.warnings) < _MOST_HINTS else ""
            sentence = "list_no_tag_near" if near else "list_no_tag"
            named.warnings.append(reader_sentence(sentence, named.question, *filter(None, (name, near))))
        groups.append(unique(known or (name,)))
    if negated:
        named.without_tags += [value for group in groups for value in group]
    elif either:
        named.tags.append(unique([value for group in groups for value in group]))
    else:
        named.tags += groups


def take_kinds(sentence: Sentence, names: Names, named: NamedValues) -> None:
    """The kind in "of kind decision": only one that exists, so that nothing else is lost."""
    for found in compiled("<of_kind>").finditer(sentence.text):
        values, _, end = listed_values(sentence, found.end(), names)
        kinds = [kind for value in values for kind in names.of(value)]
        if kinds:
            target = named.without_kinds if is_negated(sentence, found.start()) else named.kinds
            target += kinds
            sentence.take(negation_start(sentence, found.start()), end)
            return


def take_facets(sentence: Sentence, named: NamedValues) -> None:
    """The facet in "facet insight", "要素为教训"."""
    aliases: dict[str, tuple[str, ...]] = {}
    for language in languages():
        for facet, headings in language.words.sections.facets.items():
            aliases[facet] = (*aliases.get(facet, ()), *headings)
    names = Names(aliases, aliases)
    if found := compiled("<of_facet>").search(sentence.text):
        values, _, end = listed_values(sentence, found.end(), names)
        facets = [facet for value in values for facet in names.of(value)]
        if facets:
            named.facets += facets
            sentence.take(found.start(), end)


def is_negated(sentence: Sentence, start: int) -> bool:
    return negation_start(sentence, start) < start


def denied_behind(text: str, end: int) -> bool:
    """True when what ends there is denied behind it: 2026年3月以外."""
    return compiled(" *<negation_end>").match(text, end) is not None


def negation_start(sentence: Sentence, start: int) -> int:
    """Where the negation before `start` begins, if there is one."""
    for found in compiled(_NEGATION).finditer(sentence.text, max(0, start - _LOOK_BACK)):
        if found.start() >= start:
            break
        if found.end() >= start:
            return found.start()
    return start


def _around(sentence: Sentence, start: int, end: int) -> tuple[int, int]:
    """Where "带 #redis 标签" begins and ends: with the words on both sides that say the same."""
    before = compiled(r"(?:<tagged_before>|<tagged>)\s*$").search(sentence.text[:start])
    after = compiled(r"\s*<tagged_after>").match(sentence.text, end)
    return negation_start(sentence, before.start() if before else start), after.end() if after else end
