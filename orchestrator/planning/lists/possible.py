"""Tells a list among questions that no rule of the router knows: by the nouns that the corpus has. Pure."""

from __future__ import annotations

import re

from orchestrator.planning.lists.field_values import of_one_word
from orchestrator.planning.lists.folders import folder_names, leaf_of
from orchestrator.planning.lists.kinds import says_kind, with_said_kinds
from orchestrator.planning.lists.people import is_people
from orchestrator.planning.lists.reading import Reading
from orchestrator.planning.lists.words import (
    FIELD_NOUN,
    Names,
    Sentence,
    compiled,
    is_plural,
    kind_names,
    listed,
    word_start,
)
from shared.language.routing import prepared
from shared.language.text import HAN, is_han, plain, terms
from shared.models.enumeration import Scan, Values

#: A longer question is hardly a list, and is not read against the corpus: words, and Han characters.
_MOST_WORDS, _MOST_HAN = 24, 48
#: Words that may stand before the noun which all others describe: "urgent and overdue optics tickets".
_MOST_BEFORE = 6
_WORD = re.compile(rf"[^\s,;:!?、{HAN}]+")
_LEAD = rf"(?:(?:<head_lead>)(?![^\s{HAN}])\s*)*"
_BEHIND = rf"\s*(?:$|[,;:?!.(]|[{HAN}]|\d|#|(?:<head_behind>)(?![a-z0-9]))"
_TAIL = r"\s*(?:<head_tail>\s*)*$"
#: What makes a list another one where it was not read.
_STRONGER = r"\d|<denial>|<denial_near>|<time_word>|<bound_before>|<tie_time>|<event_time>"
#: A question of which more is unread is of something else: words; a word of Han characters has so many.
_MOST_UNREAD, _HAN_WORD = 3, 2
_JOINT = r"(?:<head_joint>)$"
#: So far back the value that stands before a noun is looked for, in characters.
_LOOK_BACK = 20


def may_be_list(question: str) -> bool:
    """True for a question of modest length that asks for no reason, way, person or comparison: by its words alone."""
    asked = prepared(question)
    han = sum(map(is_han, asked.low))
    if not asked.low or asked.asking > 1 or han > _MOST_HAN or len(asked.low.split()) > _MOST_WORDS:
        return False
    text = plain(asked.low)
    if compiled("<amount_asked>").search(text):
        return True
    begins = (0, *(found.end() for found in compiled("<head_begins>").finditer(text)))
    return not any(compiled("<no_list>").search(text[place:]) for place in begins)


def names_list(question: str, values: Values, scan: Scan, *, whole: bool = False) -> bool:
    """True where the noun that `question` is about exists, and more than its kind was understood of it.

    `scan` is what was read of it. The noun is a kind, a folder, a word for documents or, where code is stored, for
    definitions: in the plural in English, behind all that describes it in Chinese; anywhere where nothing of the
    question is unread. `whole`: only such a question is a list, as one that ends like a statement. No noun is needed
    where a field says which documents are asked for, or its values are.
    """
    asked = prepared(question)
    text = Sentence(asked.text).text
    if (scan.unread and (whole or asked.stated or scan.code)) or (
        scan.code and not (scan.code.conditions or scan.found.paths)
    ):
        return False
    heads = _Heads(values)
    if compiled("<who_is_named>").search(text) and not _is_flagged(scan):  # "who is Ada Lovelace", not "who is insured"
        return False
    if _asks_by_owner(question, scan):
        return True
    if compiled("<head_who>").search(text):
        return not scan.unread and _asks_somebody(text, scan, heads)
    several = len([*scan.fields, *scan.choices]) > 1
    if several and not (whole or scan.unread) and compiled("<joint_noun>").search(text):  # 2026年上半年送修的一级文物
        return True
    return _names_documents(text, scan, heads)


def _asks_by_owner(question: str, scan: Scan) -> bool:
    """True where members, values or a number are asked for by a field that was read, and what was not is no stronger.

    Few words may be unread, and no name; one of denial, a number, a time or a comparison may say the opposite.
    """
    owner = scan.per or scan.total or scan.choices or (scan.by and scan.limit) or any(one.values for one in scan.fields)
    whole = scan.per and not scan.unread  # "where were they found": the field is what is asked for
    if not (owner and (whole or asks_for_several(question) or asks_for_one(question))):
        return False
    unread = " ".join(scan.unread)
    words = sum(max(1, sum(map(is_han, run)) / _HAN_WORD) for run in unread.split())
    return words <= _MOST_UNREAD and not compiled(_STRONGER).search(plain(unread)) and unread[1:] == unread[1:].lower()


def _names_documents(text: str, scan: Scan, heads: _Heads) -> bool:
    if not (_says_more(scan) or (compiled("<head_counted>").search(text) and scan.found.kinds and not scan.unread)):
        return False
    singular = compiled("<head_exists>").search(text) or scan.by or (scan.order and scan.limit)
    if singular and says_kind(scan) and not scan.unread:  # "is there an open claim", "the most expensive film"
        return True
    if compiled("<head_done>").search(text):
        return not scan.unread and _does(text, scan)
    if scan.unread:
        return not compiled("<head_whether>").search(text) and heads.in_text(text)
    opened = scan.found.paths and (not scan.code or compiled("<head_open>").search(text))
    somewhere = not scan.code or any(map(is_han, text))
    opened = opened or (scan.found.kinds and compiled("<head_asked>").search(text))  # 哪些会, for 会议纪要
    named = opened or heads.in_text(text) or (somewhere and heads.anywhere(text))
    return bool(named) or (bool(scan.fields) and heads.is_value(text))


def _asks_somebody(text: str, scan: Scan, heads: _Heads) -> bool:
    """True where the people of documents, or documents that are people, are asked for by what was understood."""
    documents = [*scan.found.kinds, *map(leaf_of, scan.found.paths)]
    if documents and all(map(is_people, documents)) and (scan.fields or scan.choices or scan.by):
        return True
    asked_for = scan.per or scan.columns or compiled("<head_who_are>").search(text)
    return bool(asked_for) and (heads.anywhere(text) or heads.is_value(text))


def _is_flagged(scan: Scan) -> bool:
    """True where a field that says yes or no is one of the conditions."""
    flags = {*listed("flag_yes"), *listed("flag_no")}
    return any(plain(value) in flags for wanted in scan.fields for value in wanted.values)


def _does(text: str, scan: Scan) -> bool:
    """True where the verb of "what did Ada review" is that of the field whose value she is."""
    names = [name for wanted in scan.fields for name in wanted.names]
    return any(of_one_word(word, name) for word in terms(text) for name in names)


def asks_for_several(question: str) -> bool:
    """True for a question in the form of a list: "which tickets ...", 哪些 ...; what is wrong with it is to be told."""
    text = plain(prepared(question).low)
    return compiled("<head_shape>").search(text) is not None and compiled("<no_shape>").search(text) is None


def asks_for_amount(question: str) -> bool:
    """True for one that asks for the most, the least, a sum or an average."""
    text = plain(prepared(question).low)
    asked = compiled("<amount_asked>|<ranked_asked>").search(text)
    return asked is not None and compiled("<no_shape>").search(text) is None


def asks_for_one(question: str) -> bool:
    """True for one that asks which of all documents or people it is: "who ...", "the oldest ...", "is there ..."."""
    text = plain(prepared(question).low)
    return compiled("<head_shape_one>|<amount_asked>").search(text) is not None and (
        compiled("<no_shape>").search(text) is None
    )


def nearly_lists(question: str, values: Values, reading: Reading) -> bool:
    """True for a question of which something was not understood, and that is about a kind or folder.

    That stands in front, or in the plural beside something else that was understood. Of one that is no list for a time
    or a choice in it, it must be all that is asked about.
    """
    asked, scan = prepared(question), reading.scan
    text, heads = Sentence(asked.text).text, _Heads(values)
    if scan is None:
        return bool(reading.warnings) and not (asked.asking or asked.stated) and heads.in_text(text)
    if not scan.unread or not (scan.found.kinds or scan.found.paths) or compiled("<head_who>").search(text):
        return False
    named = _says_more(scan) or not (asked.asking or asked.stated)
    return heads.in_text(text) or (named and heads.anywhere(text))


def _says_more(scan: Scan) -> bool:
    """True when a tag, a field, a time, a folder, words or code were understood."""
    found = (scan.found.paths, scan.found.after, scan.found.before, scan.dates, scan.tags, scan.facets, scan.fields)
    without = (scan.without_tags, scan.without_paths, scan.without_dates, scan.lacking)
    return any((*found, *without, scan.choices, scan.order, scan.conditions, scan.code, scan.columns))


class _Heads:
    """The nouns that a list may be of, and the values that may stand beside them."""

    def __init__(self, values: Values) -> None:
        self._kinds = kind_names(with_said_kinds(values).kinds)
        self._folders = folder_names(values.folders)
        said = [value for known in values.fields.values() for value in known]
        self._values = Names([*values.tags, *values.fields, *said, *(word for value in said for word in value.split())])
        self._code = bool(values.code)

    def in_text(self, text: str) -> bool:
        """True when the text is about such a noun."""
        begins = (0, *(found.end() for found in compiled("<head_begins>").finditer(text)))
        return any(self._in_front(text, place) for place in begins) or (any(map(is_han, text)) and self._behind(text))

    def anywhere(self, text: str) -> bool:
        """True when a noun stands anywhere, in English in the plural or behind "every"."""
        places = (place for place in range(len(text)) if _begins(text, place))
        nouns = ((place, end) for place in places if (end := self._noun_end(text, place)))
        return any(
            is_plural(text[place:end]) or compiled(r"(?:<each_one>) $").search(text[:place]) for place, end in nouns
        )

    def is_value(self, text: str) -> bool:
        """True where values stand for the documents: "accepted documentaries", 散文有哪些, 已付印的童书."""
        head = compiled("<clause_end>$").sub("", compiled(_TAIL).sub("", text).rstrip(" ?.!"))
        if compiled(FIELD_NOUN).search(text) or self._value_in_front(text):
            return True
        for start in range(max(0, len(head) - _LOOK_BACK), len(head)):
            known = self._values.at(head, start) if _begins(head, start) else None
            if known is None or known.end != len(head):
                continue
            if is_han(head[start]):
                return (
                    compiled("<head_asked>").search(text) is not None
                    or compiled(_JOINT).search(head[:start]) is not None
                )
            return is_plural(head[start:])
        return False

    def _value_in_front(self, text: str) -> bool:
        """True for a value in the plural that is asked for first: "which dogs were discharged"."""
        lead = compiled(_LEAD).match(text)
        start = lead.end() if lead else 0
        known = self._values.at(text, start)
        return known is not None and is_plural(text[start : known.end]) and self._ends(text, known.end)

    def _in_front(self, text: str, place: int) -> bool:
        """The first noun in the plural with no preposition or verb before it: "urgent tickets assigned to Tom"."""
        lead = compiled(_LEAD).match(text, place)
        place = lead.end() if lead else place
        for _ in range(_MOST_BEFORE):
            word = _WORD.search(text, place)
            if word is None:
                return False
            end = self._noun_end(text, word.start())
            if end and is_plural(text[word.start() : end]) and self._ends(text, end):
                return True
            if compiled("(?:<head_before>)").fullmatch(word[0]):
                return False
            place = word.end()
        return False

    def _ends(self, text: str, end: int) -> bool:
        """True when what follows does not make the noun a part of another: "tickets queue settings"."""
        if compiled(_BEHIND).match(text, end):
            return True
        start = word_start(text, end)
        return self._values.at(text, start) is not None

    def _behind(self, text: str) -> bool:
        """The noun behind "which" or behind all that describes it: 2025年第四季度的维修单."""
        for asked in compiled("<head_asked>").finditer(text):
            start = word_start(text, asked.end())
            if self._noun_end(text, start):
                return True
        for start in range(len(text)):
            end = self._noun_end(text, start) if _begins(text, start) else None
            ends = end and (compiled(_TAIL).match(text, end) or compiled("<head_described>").match(text, end))
            if ends and self._described(text[:start].rstrip()):
                return True
        return False

    def _described(self, head: str) -> bool:
        """True when nothing, or what can describe a noun, stands directly before it."""
        if not head or compiled(_JOINT).search(head):
            return True
        places = range(max(0, len(head) - _LOOK_BACK), len(head))
        found = (self._values.at(head, place) for place in places if _begins(head, place))
        return any(value is not None and value.end == len(head) for value in found)

    def _noun_end(self, text: str, start: int) -> int | None:
        """Where the longest of the nouns that begin at `start` ends."""
        nouns = ("<noun>", *(["<code_noun>"] if self._code else []))
        ends = [known.end for names in (self._kinds, self._folders) if (known := names.at(text, start))]
        if (word := _WORD.match(text, start)) and self._kinds.misspelt(word[0]):
            ends.append(word.end())
        ends += [found.end() for noun in nouns if (found := compiled(noun).match(text, start))]
        return max((end for end in ends if _ends_word(text, end)), default=None)


def _begins(text: str, place: int) -> bool:
    here, before = text[place], text[place - 1 : place]
    return is_han(here) or (here.isalnum() and not (before.isascii() and before.isalnum()))


def _ends_word(text: str, end: int) -> bool:
    last, behind = text[end - 1], text[end : end + 1]
    return not (last.isascii() and behind.isascii() and behind.isalnum())
