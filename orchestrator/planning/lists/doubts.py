"""Why a question is no list, and of one what was not understood or may be meant otherwise. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.planning.lists.content import ContentReader
from orchestrator.planning.lists.definitions import asks_bases_of_functions
from orchestrator.planning.lists.markers import NamedValues
from orchestrator.planning.lists.runs import told
from orchestrator.planning.lists.understood import parts_of, understood
from orchestrator.planning.lists.words import GAP, Names, Sentence, compiled, listed, unique
from shared.language import reader_sentence
from shared.language.text import plain, value_key
from shared.models import Filters
from shared.models.enumeration import Condition, FieldFilter, Scan, Values

#: A question with more words to look for is no list: hardly a document has them all.
MAX_CONDITIONS = 12
_NOTHING = (
    "It was not understood which documents are to be listed: say a tag, a kind, a folder, a time or words in them."
)
_DENIED = "It was not understood what the documents must not have."
_LONG = f"More than {MAX_CONDITIONS} words to look for are no list: name what the documents have in common."


def why_not(scan: Scan, content: ContentReader, question: str) -> str:
    """Why the question is no list; empty where it is one."""
    wanted = (*scan.found.kinds, *(tag for group in scan.tags for tag in group))
    if content.denies_unknown or {*wanted} & {*scan.without_kinds, *scan.without_tags}:
        return _DENIED
    if len(content.conditions) > MAX_CONDITIONS:
        return _LONG
    if why := _why_unread(scan, content, question):
        return why
    return "" if understood(scan) or content.names_documents else _NOTHING


def _why_unread(scan: Scan, content: ContentReader, question: str) -> str:
    """Why what was not understood leaves no list; empty where it does."""
    if stray := _stray_times(scan):
        return told("list_time_unread", stray, question)
    if scan.limit and scan.unread and not (scan.code or scan.found.paths or content.names_documents):
        return told("list_limit_unread", scan.unread, question)
    if scan.unread and scan.code and not scan.code.conditions and len([*parts_of(_unfiltered(scan))]) == 1:
        return told("list_kind_alone", scan.unread, question)
    if scan.code and asks_bases_of_functions(scan.code):
        return told("list_unread_alone", scan.unread or (question,), question)
    if scan.unread and not understood(_unfiltered(scan)):
        return told("list_unread_alone", scan.unread, question)
    return ""


def _stray_times(scan: Scan) -> list[str]:
    """Words of time that were not read beside a time that was: they make it another one."""
    dated = scan.found.after or scan.found.before or scan.dates
    return [run for run in scan.unread if compiled("<time_word>").search(plain(run))] if dated else []


def _unfiltered(scan: Scan) -> Scan:
    return scan.model_copy(update={"filters": Filters()})


def doubts(scan: Scan, named: NamedValues, content: ContentReader, values: Values, question: str) -> tuple[str, ...]:
    """What was not understood, and what was, if it may be meant otherwise."""
    assumed = [*named.assumed, *content.assumed, *_also_fields(content, values)]
    said = (*_of_fields(named, values, question), *_of_scan(scan, assumed, question))
    for sentence_name, words in (("list_apart", content.apart), ("list_phrase", content.phrases)):
        said = (*said, told(sentence_name, unique(words), question)) if words and not scan.code else said
    return (*named.warnings, *said)


def unread_denials(scan: Scan, question: str) -> tuple[str, ...]:
    """Words of denial in a question whose list denies nothing, but for those in what was read or is named as unread."""
    conditions: list[FieldFilter | Condition] = [*scan.fields, *scan.conditions]
    conditions += [one for choice in scan.choices for one in choice.fields]
    denied = any(one.negated or _says_no(one) for one in conditions) or scan.lacking or scan.only_tags
    if scan.code or denied or scan.without_tags or scan.without_kinds or scan.without_paths or scan.without_dates:
        return ()
    text = Sentence(question).text
    values = [value for one in conditions if isinstance(one, FieldFilter) for value in (*one.values, *one.names)]
    spelt = [*scan.unread, *values, *scan.columns, *(word for one in scan.conditions for word in one.words)]
    for said in sorted(map(plain, spelt), key=len, reverse=True):
        text = text.replace(said, GAP)
    text = compiled("<compare_least>|<compare_most>|<scale_least>|<scale_most>|<head_exists>|<frame>").sub(GAP, text)
    return unique([found[0].strip() for found in compiled("<denial>").finditer(text)])


def _says_no(one: FieldFilter | Condition) -> bool:
    """True for a field that has to say no, or has to have no value."""
    no = {value_key(value) for value in listed("flag_no")}
    return isinstance(one, FieldFilter) and bool(one.values) and {*map(value_key, one.values)} <= no


def _also_fields(content: ContentReader, values: Values) -> list[str]:
    """Words that texts must have and that are names or values of fields, too: another reading than the filter's."""
    said = Names({*values.fields, *(value for known in values.fields.values() for value in known)})
    return [word for one in content.conditions if not one.exact for word in one.words if said.of(word)]


def _of_scan(scan: Scan, assumed: list[str], question: str) -> Iterator[str]:
    """What was not understood, and what may be meant otherwise, in the question's language."""
    if scan.unread:
        yield told("list_unread_code" if scan.code else "list_unread", scan.unread, question)
    if stray := unread_denials(scan, question):
        yield told("list_denial_unread", stray, question)
    if scan.ranking:
        yield reader_sentence("list_ranked_code" if scan.code else "list_ranked", question)
    if assumed and not scan.code:
        yield told("list_assumed", unique(assumed), question)


def _of_fields(named: NamedValues, values: Values, question: str) -> Iterator[str]:
    """What may be meant otherwise, in the question's language."""
    if named.read_as:
        comma = reader_sentence("comma", question)
        read_as = comma.join(f"\u201c{each}\u201d" for each in unique(named.read_as))
        yield reader_sentence("list_fields_read", question, read_as)
    for name, value, near in named.unknown:
        spelt = f"{name} = {value}"
        sentence = "list_no_value_near" if near else "list_no_value"
        yield reader_sentence(sentence, question, *filter(None, (spelt, near)))
    if named.fields and values.fields_unknown:
        yield reader_sentence("list_fields_unknown", question, f"{values.fields_unknown:,}")


def without_field(scan: Scan | None, values: Values, question: str) -> Iterator[str]:
    """Fields that a list denies values of, and that some of these documents do not have: "not owned by Ada"."""
    for wanted in scan.fields if scan else ():
        have = sum(_having(values.fields.get(value_key(name), {})) for name in wanted.names)
        if wanted.negated and wanted.values and have < values.documents:
            yield reader_sentence("list_without_field", question, " / ".join(wanted.names))


def _having(counts: Mapping[str, int]) -> int:
    """Documents with one of these values, each at the most once for a value and its parts: "Cove & Sons", "Sons"."""
    return sum(count for value, count in counts.items() if not any(value != one and value in one for one in counts))
