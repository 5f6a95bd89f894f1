"""Finds the titles of other pages in prose without markup, as edges between chunks. One pass over a text.

Precision goes before coverage: a wrong edge costs a place among the neighbours of every search that walks it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ahocorasick_rs import AhoCorasick, MatchKind
from qdrant_client import models

from shared.language.page_keys import title_key
from shared.language.text import CJK, terms
from shared.models.hits import PagePart
from shared.store import ChunkStore
from shared.store.base import Pending
from shared.store.schema import READ_BATCH, equals, sliced

#: Mentions of one chunk.
MAX_MENTIONS = 16
#: A name in more chunks than this, or than this share of them, is too common: its edges would lead from everywhere.
MAX_CHUNKS, MAX_SHARE = 50, 0.02
#: A name in more chunks than this leads nowhere in a corpus of any size.
MOST_CHUNKS = 500
#: Titles kept of one chunk, those that lead nowhere included, so that what a title loses can be counted.
MAX_FOUND = 64
_PAGE_FIELDS = ("doc_id", "title", "sought", "defines")
_HELD_FIELDS = ("part", "pending", "refs", "mentions", "unfollowed")
_TEXT_FIELDS = ("doc_id", "text")
#: Letters of the shortest name of one word, characters of the shortest Chinese name; and of those in quotation marks.
MIN_WORD, MIN_CJK = 5, 3
MIN_QUOTED_WORD, MIN_QUOTED_CJK = 3, 2
_MAX_NAME, _MAX_TEXT = 120, 40_000
_BRACKET = re.compile(r"[ ]?\(([^()]{1,60}+)\)$")
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(f"[{CJK}]")
_BESIDE_CJK = re.compile(f"(?<=[{CJK}]) | (?=[{CJK}])")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
#: Behind one of these, a capital says nothing.
_BEFORE_CAPITAL = ".!?:;。！？：；\n*#>|-•·\"“”'‘「『《"
_QUOTES = frozenset({'""', "“”", "''", "‘’", "「」", "『』", "《》", "〈〉", "**", "__", "``"})
_PATHLIKE = "/\\@.=&"
_PREVIOUS = re.compile(r"(?<![^\W_])([^\W_]++) $")
_NEXT = re.compile(r" ([^\W\d_])")

Payloads = dict[str, dict[str, Any]]


class TitleForm(NamedTuple):
    """A way to write a page's title: `shown` with its capitals, `full` False without its bracket.

    `hint`: the terms of that bracket. Without it, a name means the page only beside one of them: "Chicago (film)" is
    not meant in a text without films (measured: 4 in 10 right without hints).
    """

    shown: str
    full: bool = True
    hint: frozenset[str] = frozenset()


class Target(NamedTuple):
    """What a name leads to: the page's key and id."""

    name: TitleForm
    key: str
    doc_id: str


@lru_cache(maxsize=50_000)
def names_of(title: str) -> tuple[tuple[str, TitleForm], ...]:
    """What may be looked for of a title, each with its `phrase`.

    The whole title and, of "Log (mathematics)", the part before the bracket. None for a title that is too short or
    too common to mean this page.
    """
    whole = _prose(title) if len(title) <= _MAX_NAME else ""
    names = [TitleForm(whole)]
    if bracket := _BRACKET.search(whole):
        names.append(TitleForm(whole[: bracket.start()], False, frozenset(terms(bracket[1]))))
    return tuple(
        (phrase(name.shown), name) for name in names if _is_distinctive(name.shown, MIN_QUOTED_WORD, MIN_QUOTED_CJK)
    )


def phrase(shown: str) -> str:
    """A name or text in lower case, character by character, so that places in it are places in the original."""
    lower = shown.casefold()
    if len(lower) == len(shown):
        return lower
    return "".join(low if len(low := char.casefold()) == 1 else char for char in shown)


class Scanner:
    """All names at once, by their `phrase`."""

    def __init__(self, names: Mapping[str, Target]) -> None:
        self._phrases = list(names)
        self._targets = list(names.values())
        self._forms = [_form_of(target.name.shown) for target in self._targets]
        self._automaton = AhoCorasick(self._phrases, matchkind=MatchKind.Standard) if names else None

    def found(self, text: str, doc_id: str) -> set[str]:
        """The phrases in a text of the document `doc_id` that name another page, none inside a longer one."""
        if self._automaton is None:
            return set()
        shown = _prose(text[:_MAX_TEXT])
        spans = [
            (start, end, number)
            for number, start, end in self._automaton.find_matches_as_indexes(phrase(shown), overlapping=True)
            if _is_name_at(self._forms[number], shown, start, end)
        ]
        numbers = {number for number in _outermost(spans) if self._targets[number].doc_id != doc_id}
        hinted = any(not self._targets[number].name.full for number in numbers)
        words = frozenset(terms(shown)) if hinted else frozenset()
        names = {number: self._targets[number].name for number in numbers}
        return {self._phrases[n] for n, name in names.items() if name.full or not name.hint.isdisjoint(words)}


def _prose(text: str) -> str:
    """One space or one line end between words, none beside Chinese characters; compatibility forms unified."""
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return _BESIDE_CJK.sub("", "\n".join(" ".join(part.split()) for part in _PARAGRAPH.split(text)))


def _is_distinctive(shown: str, min_word: int = MIN_WORD, min_cjk: int = MIN_CJK) -> bool:
    """True for two words that are no stop words, one long word, or three Chinese characters."""
    if _CJK.search(shown):
        return sum(2 if _CJK.match(char) else 1 for char in shown) >= 2 * min_cjk
    words = _WORD.findall(shown)
    if len(words) > 1:
        return any(char.isalpha() for char in shown) and bool(terms(shown)) and len(shown) > min_word
    return len(words) == 1 and sum(char.isalpha() for char in shown) >= min_word


class _NameForm(NamedTuple):
    """What of a name decides where it is one, told once. `capitals`: the places of its own."""

    capitals: tuple[int, ...]
    cjk: bool
    distinctive: bool
    one_word: bool
    #: "Query optimization" is a common noun and no proper name: it may stand in small letters.
    common_noun: bool


def _form_of(name: str) -> _NameForm:
    return _NameForm(
        capitals=tuple(place for place, char in enumerate(name) if char.isupper()),
        cjk=_CJK.search(name) is not None,
        distinctive=_is_distinctive(name),
        one_word=len(_WORD.findall(name)) == 1,
        common_noun=len(terms(name)) > 1 and not any(char.isupper() for char in name[1:]),
    )


def _is_name_at(name: _NameForm, text: str, start: int, end: int) -> bool:
    """True when the match is used as a name: at word bounds, with its capitals, in no longer name."""
    if not _at_word_bounds(text, start, end):
        return False
    capitals = all(text[start + place].isupper() for place in name.capitals)
    if text[start - 1 : start] + text[end : end + 1] in _QUOTES:
        return capitals
    if name.cjk or not name.distinctive:
        return name.distinctive
    if name.one_word:
        proper = text[start].isupper() and not _at_sentence_start(text, start)
        return capitals and proper and _stands_alone(text, start, end)
    return name.common_noun or (capitals and not _name_continues(text, end))


def _at_word_bounds(text: str, start: int, end: int) -> bool:
    """True when no word runs on over either end; Chinese has no bounds."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if _is_letter(text[start]) and (_is_letter(before) or (before and before in _PATHLIKE)):
        return False
    return not (_is_letter(text[end - 1]) and _is_letter(after))


def _is_letter(char: str) -> bool:
    return (char.isalnum() or char == "_") and (char.isascii() or not _CJK.match(char))


def _at_sentence_start(text: str, start: int) -> bool:
    """True at the start of a sentence, a line or a quotation, where any word may have a capital."""
    before = text[max(0, start - 3) : start].rstrip(" ")
    return not before or before[-1] in _BEFORE_CAPITAL


def _stands_alone(text: str, start: int, end: int) -> bool:
    """True when no neighbour makes it part of a longer name: "Washington" is no "George Washington"."""
    before = _PREVIOUS.search(text[max(0, start - 40) : start])
    if before and before[1][0].isupper():
        first = start - 1 - len(before[1])
        if terms(before[1]) or not _at_sentence_start(text, first):
            return False
    return not _name_continues(text, end)


def _name_continues(text: str, end: int) -> bool:
    found = _NEXT.match(text, end)
    return bool(found and found[1].isupper())


def _outermost(spans: Iterable[tuple[int, int, int]]) -> list[int]:
    """The numbers of spans that lie within no other."""
    kept, reach = [], -1
    for _, end, number in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end > reach:
            kept.append(number)
            reach = end
    return kept


class _Page(NamedTuple):
    """A document by its first chunk. `sought`: its names that all chunks have been searched for."""

    chunk_id: str
    doc_id: str
    title: str
    sought: tuple[str, ...]


class _Held(NamedTuple):
    """What a chunk is stored with: the titles found in it, followed or not, and what it links to itself."""

    mentions: list[str]
    unfollowed: list[str]
    refs: frozenset[str]
    pending: bool

    @property
    def titles(self) -> set[str]:
        """The keys of all titles that were found in it."""
        return {*self.mentions, *self.unfollowed}


def mention_changes(store: ChunkStore, namespace: str) -> Payloads:
    """chunk_id -> payload fields to set: `mentions` and `unfollowed` where they differ, `sought` of pages.

    What they will be follows from the texts and titles of the namespace alone, not from the order in which they came: a
    title that several pages share leads to none of them, one that too many chunks hold leads nowhere.
    """
    pages = _pages(store, namespace)
    names = _target_names(pages)
    by_page: defaultdict[str, set[str]] = defaultdict(set)
    for text, target in names.items():
        by_page[target.doc_id].add(text)
    new_names = {text: names[text] for page in pages for text in by_page[page.doc_id].difference(page.sought)}
    held, chunks = _held(store, namespace)
    again = _read_again(held, {target.key for target in names.values()}, _fewer_names(pages, by_page))
    texts = _texts(store, namespace, None if new_names else sorted(again))
    found = _found(held, again, texts, names, new_names)
    counts = Counter(key for keys in found.values() for key in keys)
    limit = min(MOST_CHUNKS, max(MAX_CHUNKS, MAX_SHARE * chunks))
    changes: Payloads = {}
    for chunk_id, keys in found.items():
        mentions = [key for key in keys if counts[key] <= limit][:MAX_MENTIONS]
        unfollowed = [key for key in keys if key not in mentions]
        if (mentions, unfollowed) != held[chunk_id][:2]:
            changes[chunk_id] = {"mentions": mentions, "unfollowed": unfollowed}
    for page in pages:
        if (sought := sorted(by_page[page.doc_id])) != list(page.sought):
            changes.setdefault(page.chunk_id, {})["sought"] = sought
    return changes


def _pages(store: ChunkStore, namespace: str) -> list[_Page]:
    first = models.FieldCondition(key="ordinal", range=models.Range(lte=0))
    return [
        _Page(chunk_id, payload["doc_id"], payload["title"], tuple(payload.get("sought", ())))
        for chunk_id, payload in store.read(_within(namespace, first), _PAGE_FIELDS)
        if title_key(payload["title"]) in payload.get("defines", ())
    ]


def _target_names(pages: Sequence[_Page]) -> dict[str, Target]:
    """What to look for: names that one page alone has, a whole title before one without its bracket."""
    # Phrase -> ids of the pages that it is the title of, and the same for titles without their brackets.
    full: defaultdict[str, set[str]] = defaultdict(set)
    bare: defaultdict[str, set[str]] = defaultdict(set)
    for page in pages:
        for text, name in names_of(page.title):
            (full if name.full else bare)[text].add(page.doc_id)
    names = {}
    for page in pages:
        for text, name in names_of(page.title):
            unique = len(full[text]) == 1 if name.full else text not in full and len(bare[text]) == 1
            if unique:
                names[text] = Target(name, title_key(page.title), page.doc_id)
    return names


def _fewer_names(pages: Sequence[_Page], by_page: Mapping[str, Collection[str]]) -> set[str]:
    """The keys of pages that have lost one of their names to another page."""
    return {title_key(page.title) for page in pages if not set(page.sought) <= set(by_page.get(page.doc_id, ()))}


def _held(store: ChunkStore, namespace: str) -> tuple[dict[str, _Held], int]:
    """What the chunks of prose hold, by id, and the number of all chunks."""
    held, chunks = {}, 0
    for chunk_id, payload in store.read(_within(namespace), _HELD_FIELDS):
        chunks += 1
        if payload.get("part") != PagePart.CODE:
            mentions, unfollowed = list(payload.get("mentions", ())), list(payload.get("unfollowed", ()))
            pending = payload.get("pending", 0) > Pending.NOTHING
            held[chunk_id] = _Held(mentions, unfollowed, frozenset(payload.get("refs", ())), pending)
    return held, chunks


def _read_again(held: Mapping[str, _Held], known: Collection[str], fewer: Collection[str]) -> set[str]:
    """The chunks to be searched for all names: those that changed, or hold a title of `fewer`, or lost one of many."""
    return {
        chunk_id
        for chunk_id, one in held.items()
        if one.pending
        or not one.titles.isdisjoint(fewer)
        or (len(one.titles) == MAX_FOUND and not one.titles.issubset(known))
    }


def _found(
    held: Mapping[str, _Held],
    again: Collection[str],
    texts_of_chunks: Iterable[tuple[str, dict[str, Any]]],
    names: Mapping[str, Target],
    new_names: Mapping[str, Target],
) -> dict[str, list[str]]:
    """The keys of the titles in each chunk, the longest first, at most MAX_FOUND.

    Chunks of `again` are searched for all names, the others for new names alone.
    """
    known = {target.key for target in names.values()}
    found = {chunk_id: set[str]() if chunk_id in again else one.titles & known for chunk_id, one in held.items()}
    scanner, new_scanner = Scanner(names), Scanner(new_names)
    for chunk_id, payload in texts_of_chunks:
        if chunk_id in found:
            texts = (scanner if chunk_id in again else new_scanner).found(payload["text"], payload["doc_id"])
            found[chunk_id] |= {names[text].key for text in texts}
    return {
        chunk_id: sorted(keys - held[chunk_id].refs, key=lambda key: (-len(key), key))[:MAX_FOUND]
        for chunk_id, keys in found.items()
    }


def _texts(store: ChunkStore, namespace: str, ids: Sequence[str] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The chunks with their texts: all, or those of `ids`."""
    if ids is None:
        yield from store.read(_within(namespace), _TEXT_FIELDS)
        return
    for part in sliced(list(ids), READ_BATCH):
        yield from store.read(_within(namespace, models.HasIdCondition(has_id=list(part))), _TEXT_FIELDS)


def _within(namespace: str, *conditions: models.Condition) -> models.Filter:
    return models.Filter(must=[equals("namespace", namespace), *conditions])
