"""Turns a question into the scan of what it asks for: values that exist, words, and what was not understood. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import partial

from orchestrator.planning.lists.choices import take_choices, take_least
from orchestrator.planning.lists.columns import take_columns
from orchestrator.planning.lists.comparisons import take_comparisons, take_field_days
from orchestrator.planning.lists.content import ContentReader
from orchestrator.planning.lists.dates import DateSpan, spans, unread_time, with_assumed_years, with_years
from orchestrator.planning.lists.definitions import take_definitions
from orchestrator.planning.lists.doubts import MAX_CONDITIONS, doubts, why_not
from orchestrator.planning.lists.exceptions import repeat_exceptions
from orchestrator.planning.lists.field_values import KnownFields, field_names
from orchestrator.planning.lists.fields import FieldTaker
from orchestrator.planning.lists.firsts import take_firsts
from orchestrator.planning.lists.flags import take_flags
from orchestrator.planning.lists.folders import (
    folder_names,
    take_described_folder,
    take_listed_folder,
    take_noun_of_kind,
    take_paths,
    take_short_noun,
)
from orchestrator.planning.lists.groups import take_groups
from orchestrator.planning.lists.kinds import as_fields, joins_kinds, misspelt, say_in_year, with_said_kinds
from orchestrator.planning.lists.known_values import KnownValues
from orchestrator.planning.lists.markers import (
    KnownTags,
    NamedValues,
    take_dates,
    take_facets,
    take_kinds,
    take_lacking,
    take_order,
    take_tags,
)
from orchestrator.planning.lists.runs import named as named_runs
from orchestrator.planning.lists.runs import told
from orchestrator.planning.lists.scales import take_scales
from orchestrator.planning.lists.superlatives import single, take_superlatives
from orchestrator.planning.lists.totals import take_total
from orchestrator.planning.lists.understood import dated, understood
from orchestrator.planning.lists.words import (
    FIELD_NOUN,
    GAP,
    Names,
    Nouns,
    Sentence,
    compiled,
    is_plural,
    kind_names,
    unique,
)
from shared.language import reader_sentence
from shared.language.text import has_cjk, is_han, value_key
from shared.models import Filters
from shared.models.base import Model
from shared.models.code import CodeScan
from shared.models.enumeration import MAX_COLUMNS, FieldFilter, Scan, Values

#: "or" between two things that were taken out and are no values of the same: no filter can say it.
_EITHER_OF_TWO = rf"{GAP} *[,、]? *(?:<either>) *(?:(?:<field_lead>|<field_said>|<article_words>) *)*{GAP}"
#: Around a noun that is asked for: in Latin letters in front, in Han characters behind all that describes it.
_LATIN_HEAD = rf"(?:(?:<head_lead>|<article_words>|{GAP}|\d+)\s*)+"
_LATIN_BEHIND = rf"\s*(?:$|[?.!]|{GAP}|(?!do |does |did )<head_behind>)"
_HAN_HEAD = rf"(?:^|{GAP}|<value_end!>|<counted>|<head_asked>)\s*$"
_HAN_BEHIND = r"\s*(?:$|[?？!。]|<tail>|<head_tail>|<head_asked>)"
_LONGEST_NOUN = 4
_MOST_HAN = "<top_most_behind>|<top_least_behind>"
_MOST_EXCLUSIVE = 4
_NEVER = "The spans of time in the question have no day in common."


class Reading(Model):
    """The scan, or None when the question was not understood; `warnings` say why, or what is odd about it.

    `unread`: words that were not understood. `noun`: what the documents are called that are asked for, where it is no
    kind, folder or usual word for documents: it stands for those with the fields that are named.
    """

    scan: Scan | None = None
    warnings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    noun: str = ""
    guessed: tuple[str, ...] = ()


def read_question(  # noqa: PLR0913 - a question, what it is read with, and what is known of the documents
    question: str, filters: Filters, values: Values, today: date, *, undated: bool = False, of_people: bool = False
) -> Reading:
    """What `question` wants all of, among the documents under `filters`, which hold besides it.

    `undated`: these documents have no date of their own, so a time in the question is one of a field of days.
    `of_people`: they are people themselves, so who is asked for is no value of a field.

    `values` are those that exist there. A value named expressly ("tagged redis") is a filter; a bare one ("redis
    notes") is one where it exists; behind "about" a tag counts beside the words; words behind "mentions" must be
    contained. What is none of these is named in a warning and only orders the list; where nothing
    else was understood, the question is to be searched.
    """
    again = partial(read_question, today=today, undated=undated, of_people=of_people)
    stored, values = values, with_said_kinds(values)
    sentence = Sentence(question)
    named = NamedValues(question=question)
    _take_exclusive(sentence, named)
    say_in_year(sentence, kind_names(values.kinds))
    known = KnownFields(values)
    take_columns(sentence, field_names(values), folder_names(values.folders), named)
    code = take_definitions(sentence, question, values)
    kinds, tags = (Names(()), Names(())) if code else (kind_names(values.kinds), Names(values.tags))
    nouns = Nouns(kinds, folder_names(values.folders), tags)
    days = (today, undated)
    counting, why = _take_conditions(sentence, named, values, known, nouns, code=code, days=days, of_people=of_people)
    if why:
        return Reading(warnings=(why,))
    if compiled(_EITHER_OF_TWO).search(sentence.text) or joins_kinds(sentence.text, kinds):
        return Reading(warnings=(told("list_either", (question.strip(),), question),))
    content = ContentReader(sentence, kinds, tags, named)
    if named.only_tags and not named.tags:
        named.left.append(named.only_tags)
        named.only_tags = ""
    noun = "" if code else _asked_noun(sentence, content, named, nouns, known)
    content.unread = [] if noun else content.unread
    unread = unique([*named.left, *named_runs(content.unread, sentence, question)])
    _take_said_kinds(named, stored)
    joined = _joined(named.fields, known)
    named.fields = [one.model_copy(update={"names": known.spelt(one.names)}) for one in joined]
    read = {"counting": counting, "index_version": values.index_version, "unread": unread}
    scan = _scan(filters, named, content).model_copy(update=read)
    spelt = None if code or content.names_documents or of_people else _respelt(question, unread, kinds)
    if spelt:
        reading = again(spelt[0], filters, stored)
        return reading.model_copy(update={"warnings": (told("list_misspelt", spelt[1], question), *reading.warnings)})
    scan = _of_code(scan, code) if code else scan
    if why := why_not(scan, content, question):
        no_code = values.model_copy(update={"code": 0})  # 采购类合同: "class" is a part of another word
        other = again(question, filters, no_code) if code and not code.conditions else None
        return other if other and other.scan and other.scan.found.kinds else Reading(warnings=(why,), unread=unread)
    scan = scan.model_copy(update={"limit": 0 if unread else scan.limit, "also_called": _names_of_columns(scan, known)})
    scan = scan.model_copy(update={"understood": understood(scan) or "all documents"})
    warnings = doubts(scan, named, content, values, question)
    guessed = () if code else unique([word for word in named.guessed if not any(word in each for each in unread)])
    return Reading(
        scan=scan, warnings=(*_of_noun(noun, question), *warnings), unread=unread, noun=noun, guessed=guessed
    )


def _take_conditions(  # noqa: PLR0913 - what is read, what is known of the documents, and where it goes
    sentence: Sentence,
    named: NamedValues,
    values: Values,
    known: KnownFields,
    nouns: Nouns,
    *,
    code: CodeScan | None,
    days: tuple[date, bool],
    of_people: bool,
) -> tuple[bool, str]:
    """Take out what the documents are to have. Returns whether their number is asked for, and why a time is unread."""
    today, undated = days
    if code is None:
        take_total(sentence, known, named)
        take_groups(sentence, known, nouns, named, of_people=of_people)
        take_scales(sentence, known, named)
        take_comparisons(sentence, known, named)
    if why := _take_times(sentence, named, named.question, known, today, undated=undated and code is None):
        return False, why
    if code is None:
        take_lacking(sentence, named)
    counting = _is_counting(sentence) if code else _take_order(sentence, known, nouns, named, days)
    _take_values(sentence, named, values, nouns, None if code else known)
    take_choices(sentence, named)
    return counting, ""


def _respelt(question: str, unread: Sequence[str], kinds: Names) -> tuple[str, tuple[str, str]] | None:
    """The question with a kind spelt right, and what was misspelt; a verb behind "who" is none."""
    meant = None if compiled("<head_who>").search(question.lower()) else misspelt(unread, kinds)
    corrected = re.sub(rf"\b{re.escape(meant[0])}\b", meant[1], question) if meant else question
    return (corrected, meant) if meant and corrected != question else None


def _asked_noun(
    sentence: Sentence, content: ContentReader, named: NamedValues, nouns: Nouns, known: KnownFields
) -> str:
    """What is asked for by a noun that the corpus has not, where fields say which documents those are; else empty."""
    fields = named.fields or named.by or named.choices
    if named.left or not fields or named.kinds or named.paths or content.names_documents or len(content.unread) != 1:
        return ""
    run = content.unread[0]
    if len(run.parts) != 1 or run.negated:
        return ""
    words = range(len(run.spelt()[0]))
    if any(names.at(run.spelt()[0], place) for names in nouns[:2] for place in words):
        return ""
    head, behind = sentence.text[: run.start], sentence.text[run.end :]
    if is_han(run.spelt()[0]):
        values = (value.end - place for place in words if (value := known.anywhere.at(run.spelt()[0], place)))
        if max(values, default=0) > 1 or compiled(_MOST_HAN).search(run.spelt()[0]):  # 哪些茶山产肉桂, 谁做的最多
            return ""
        found = compiled(_HAN_HEAD).search(head) and compiled(_HAN_BEHIND).match(behind)
        return run.spelt()[0] if found and len(run.spelt()[0]) <= _LONGEST_NOUN else ""
    found = compiled(_LATIN_HEAD).fullmatch(head.strip()) and compiled(_LATIN_BEHIND).match(behind)
    return run.spelt()[0] if found and is_plural(run.spelt()[0]) else ""


def _of_noun(noun: str, question: str) -> tuple[str, ...]:
    return (reader_sentence("list_noun_read", question, noun),) if noun else ()


def _take_times(  # noqa: PLR0913 - what is read, with what, and where it goes
    sentence: Sentence, named: NamedValues, question: str, known: KnownFields, today: date, *, undated: bool
) -> str:
    """Take the spans of time out, and say where their days are a choice; why they cannot be read, or empty."""
    said = with_years(sentence.text, today)
    sentence.text = with_assumed_years(said, today)
    assumed = said != sentence.text
    repeat_exceptions(sentence, known.anywhere)
    take_field_days(sentence, known, named, today, undated=undated)
    days = spans(sentence.text, today)
    if stray := unread_time(sentence.text, days or ()):
        return told("list_time_unread", [stray], question)
    if days is None or not take_dates(sentence, days, named):
        return _NEVER
    if days and (assumed or any(span.vague for span in days)):
        named.warnings.append(told("list_time_read", [dated(span) for span in map(_as_filters, days)], question))
    return ""


def _is_counting(sentence: Sentence) -> bool:
    return compiled("<counting>").search(sentence.text) is not None


def _take_order(
    sentence: Sentence, known: KnownFields, nouns: Nouns, named: NamedValues, days: tuple[date, bool]
) -> bool:
    """Take the order out, and how many of it are asked for; whether the number of documents is asked for instead."""
    today, undated = days
    if not named.order and not named.total:
        take_superlatives(sentence, known, nouns, named)
        take_firsts(sentence, known, nouns, named, today, undated=undated)
    counting, asked = _is_counting(sentence), sentence.text
    if counting or named.order or undated:
        return counting
    take_order(sentence, named)
    whole = compiled("<newest_first>|<oldest_first>").search(asked) or has_cjk(asked)
    if named.order and not named.limit and not whole:
        named.limit = single(sentence.text, nouns)  # "the latest letter"
    return False


def _take_values(
    sentence: Sentence, named: NamedValues, values: Values, nouns: Nouns, known: KnownFields | None
) -> None:
    """Take out what the sentence says of folders, tags, facets, kinds and fields."""
    take_paths(sentence, values, named)
    said = Names(value for known in values.fields.values() for value in known)
    tags = KnownTags(nouns.tags, truncated="tags" in values.truncated)
    take_least(sentence, tags, named)
    take_tags(sentence, tags, named, said)
    take_facets(sentence, named)
    take_kinds(sentence, nouns.kinds, named)
    if known:
        taker = FieldTaker(sentence, known, nouns, named)
        taker.take_phrases()
        taker.take_names()
        take_flags(taker)
        KnownValues(taker).take()
        take_described_folder(sentence, values, nouns.kinds, named)
        take_noun_of_kind(sentence, values, nouns.kinds, named)
        take_listed_folder(sentence, values, named)
        take_short_noun(sentence, values, nouns.kinds, named)
        if named.fields and (
            noun := compiled(rf"(?:{GAP}|<value_end!>|<head_asked>) *{FIELD_NOUN}").search(sentence.text)
        ):
            sentence.take(*noun.span("noun"))


def _take_said_kinds(named: NamedValues, stored: Values) -> None:
    """Make conditions on fields of the kinds that no document is stored with."""
    named.fields += as_fields(named.kinds, stored)
    named.fields += as_fields(named.without_kinds, stored, negated=True)
    named.kinds = [kind for kind in named.kinds if kind in stored.kinds]
    named.without_kinds = [kind for kind in named.without_kinds if kind in stored.kinds]


def _joined(wanted: Sequence[FieldFilter], known: KnownFields) -> list[FieldFilter]:
    """The same where values of one field that no document has together are a choice: one of them is enough."""
    found: list[FieldFilter] = []
    for one in wanted:
        same = [other for other in found if other.names == one.names and other.values and not other.negated]
        if same and one.values and not one.negated and known.is_single(one.names):
            found.remove(same[0])
            told = f"{same[0].told} or {one.told}" if same[0].told and one.told else ""
            found.append(one.model_copy(update={"values": unique([*same[0].values, *one.values]), "told": told}))
        else:
            found.append(one)
    return found


def _names_of_columns(scan: Scan, known: KnownFields) -> dict[str, tuple[str, ...]]:
    """What documents call the columns, too."""
    return {column: known.groups[key].first for column in scan.columns if (key := value_key(column)) in known.groups}


def _take_exclusive(sentence: Sentence, named: NamedValues) -> None:
    """Name "only" beside what a filter says: the filter lets in what has more, too."""
    if found := compiled("<exclusive_tags>").search(sentence.text):
        named.only_tags = found[0].strip()
        sentence.text = f"{sentence.text[: found.start()]} {sentence.text[found.end() :]}"
    for _ in range(_MOST_EXCLUSIVE):
        found = compiled("<exclusive>").search(sentence.text)
        if found is None:
            return
        named.left.append(found[0])
        sentence.text = f"{sentence.text[: found.start()]}{sentence.text[found.end() :]}"


def _of_code(scan: Scan, code: CodeScan) -> Scan:
    """The same for definitions: what a text must say, and columns, are no conditions of these, and so are unread."""
    words = (word for condition in scan.conditions for word in condition.words)
    update = {"unread": unique([*scan.unread, *words, *scan.columns]), "conditions": (), "columns": ()}
    ranking = unique([*scan.ranking, *(one for one in scan.conditions if not one.negated)])[:MAX_CONDITIONS]
    return scan.model_copy(update={**update, "code": code, "ranking": ranking})


def _scan(filters: Filters, named: NamedValues, content: ContentReader) -> Scan:
    """What was taken out of the sentence, and what was left in it, as one scan."""
    found = Filters(
        after=named.dates.after,
        before=named.dates.before,
        kinds=unique(named.kinds),
        paths=unique(named.paths),
        namespace=filters.namespace,
    )
    return Scan(
        filters=filters,
        found=found,
        tags=tuple(dict.fromkeys(named.tags)),
        without_tags=unique(named.without_tags),
        without_kinds=unique(named.without_kinds),
        without_paths=unique(named.without_paths),
        dates=named.more_dates,
        without_dates=tuple(named.without_dates),
        lacking=unique(named.lacking),
        order=named.order,
        limit=named.limit,
        by=named.by,
        total=named.total,
        per=named.per,
        fields=unique(named.fields),
        choices=unique(named.choices),
        only_tags=bool(named.only_tags),
        facets=unique(named.facets),
        conditions=tuple(dict.fromkeys((*named.conditions, *content.conditions))),
        columns=_columns(named),
        ranking=unique([word for run in content.unread for word in run.ranking()])[:MAX_CONDITIONS],
    )


def _columns(named: NamedValues) -> tuple[str, ...]:
    """Those that were asked for, and the field that the list is ordered by."""
    return unique([*named.columns, *([named.by.label] if named.by else [])])[:MAX_COLUMNS]


def _as_filters(span: DateSpan) -> Filters:
    return Filters(after=span.first, before=span.last)
