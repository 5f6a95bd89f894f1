"""A document with all its chunks, and whether it meets the conditions of a list. Pure, linear in the text."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shared.language.document_fields import entries
from shared.language.sentences import sentences
from shared.language.text import CJK, plain, terms, value_key
from shared.models.enumeration import MAX_SENTENCE, AmountOrder, Condition, Grouping, ListRow, Scan
from shared.uri import SCHEME, quoted
from workers.display import plain_line

#: Payload fields that are read of a first chunk, and of those behind it.
FIRST = (
    "doc_id",
    "path",
    "title",
    "date",
    "tags",
    "kind",
    "namespace",
    "facet",
    "heading",
    "text",
    "ordinal",
    "fields",
)
FURTHER = ("doc_id", "ordinal", "facet", "heading", "text")
#: Letters that a word's other forms may have behind its stem.
_MAX_ENDING = 6
_MIN_STEM = 2
#: Between two words that stand beside each other.
_BESIDE = r"[\s\-_/]{1,4}"
_HEADING = re.compile(r"\s*#{1,6}\s")


@dataclass
class ListedChunk:
    """One chunk of a document."""

    ordinal: int
    heading: str
    text: str
    facet: str | None

    @cached_property
    def plain(self) -> str:
        """Heading and text as conditions are compared with them."""
        return plain(f"{self.heading}\n{self.text}")


@dataclass
class ListedDocument:
    """One document; `first` is the payload of its first chunk, `payloads` are those of all."""

    first: dict[str, Any]
    chunks: list[ListedChunk] = field(default_factory=list)
    payloads: list[dict[str, Any]] = field(default_factory=list)

    def add(self, payload: dict[str, Any]) -> None:
        """One more of its chunks."""
        self.payloads.append(payload)
        heading, text = str(payload.get("heading") or ""), str(payload.get("text") or "")
        self.chunks.append(ListedChunk(int(payload.get("ordinal") or 0), heading, text, payload.get("facet")))

    @property
    def title(self) -> str:
        """As the document says, "" without one."""
        return str(self.first.get("title") or "")

    def in_order(self) -> list[ListedChunk]:
        """The chunks as they stand in the document."""
        return sorted(self.chunks, key=lambda chunk: chunk.ordinal)

    def amount(self, by: AmountOrder) -> float | None:
        """Its number in that field; the largest of several."""
        keys = frozenset(map(value_key, by.names))
        stored = entries(self.first.get("fields") or ())
        found = (by.numbers.get(value_key(value)) for name, value in stored if value_key(name) in keys)
        return max((number for number in found if number is not None), default=None)

    def groups(self, per: Grouping) -> tuple[str, ...]:
        """Its values of that field, each once, or the tags, kind or part of its date that stand for them."""
        date = str(self.first.get("date") or "")
        if per.by != "field":
            tags = tuple(map(str, self.first.get("tags") or ()))
            own = {"tag": tags, "kind": (str(self.first.get("kind") or ""),), "month": (date[:7],), "year": (date[:4],)}
            return tuple(filter(None, own[per.by]))
        keys = frozenset(map(value_key, per.names))
        found = (value for name, value in entries(self.first.get("fields") or ()) if value_key(name) in keys)
        return tuple({value_key(value): value for value in found}.values())

    def row(self, sentence: str, fields: dict[str, str], near: int = 0) -> ListRow:
        """The document's row in a list. Its digest is equal for equal texts and fields, whatever their case."""
        digest = hashlib.blake2b(digest_size=12)
        for said in sorted(map(str, self.first.get("fields") or ())):
            digest.update(said.casefold().encode("utf-8", "replace"))
        for chunk in self.in_order():
            digest.update(" ".join(chunk.text.split()).casefold().encode("utf-8", "replace"))
        path = str(self.first["path"])
        return ListRow(
            doc_id=str(self.first["doc_id"]),
            title=self.title,
            path=path,
            uri=f"{SCHEME}{self.first.get('namespace') or 'default'}/{quoted(path)}",
            date=self.first.get("date"),
            tags=tuple(self.first.get("tags") or ()),
            kind=str(self.first.get("kind") or ""),
            sentence=sentence,
            fields=fields,
            digest=digest.hexdigest(),
            near=near,
        )


class ConditionWords:
    """One way to say a condition. Exact: letter by letter; else its words beside each other, each in all its forms."""

    def __init__(self, words: str, *, exact: bool) -> None:
        text = " ".join(plain(words).split())
        self.key = value_key(words)
        self._terms = [] if exact else list(dict.fromkeys(terms(text)))
        self._literal = None if self._terms else _literal(text)
        self._form = re.compile(_BESIDE.join(map(_form, self._terms)))

    def stand_in(self, text: str) -> bool:
        """True when plain `text` has them all."""
        if self._literal is not None:
            return self._literal.search(text) is not None
        return any(terms(found.group()) == self._terms for found in self._form.finditer(text))


def _literal(text: str) -> re.Pattern[str]:
    head = r"(?<![a-z0-9])" if text[:1].isascii() and text[:1].isalnum() else ""
    tail = r"(?![a-z0-9])" if text[-1:].isascii() and text[-1:].isalnum() else ""
    return re.compile(head + re.escape(text).replace(r"\ ", r"\s+") + tail)


def _form(term: str) -> str:
    """Words that may have this stem; whether they do, the stemmer decides."""
    if not (term.isascii() and term.isalnum()):
        return _literal(term).pattern
    stem = term[:-1] if term.endswith("y") and len(term) > _MIN_STEM else term
    return rf"(?<![^\W_{CJK}]){stem}[a-z']{{0,{_MAX_ENDING}}}(?![^\W_{CJK}])"


class Matcher:
    """The conditions of a scan, ready for many documents."""

    def __init__(self, scan: Scan) -> None:
        self._facets = frozenset(scan.facets)
        self._only = frozenset(value_key(tag) for group in scan.tags for tag in group) if scan.only_tags else None
        self._conditions = [_ready(condition) for condition in scan.conditions]
        self._ranking = [_ready(condition) for condition in scan.ranking]

    def fits(self, document: ListedDocument) -> bool:
        """True when the document says all that it must and nothing that it must not."""
        if self._facets and not any(chunk.facet in self._facets for chunk in document.chunks):
            return False
        if self._only is not None and not self._only.issuperset(map(value_key, document.first.get("tags") or ())):
            return False
        if not self._conditions:
            return True
        texts = [plain(document.title), *(chunk.plain for chunk in document.chunks)]
        tags = frozenset(value_key(tag) for tag in document.first.get("tags") or ())
        return all(
            any((condition.tagged and words.key in tags) or any(map(words.stand_in, texts)) for words in ways)
            != condition.negated
            for condition, ways in self._conditions
        )

    def near(self, document: ListedDocument) -> int:
        """How many of the words that were not understood it has."""
        if not self._ranking:
            return 0
        texts = [plain(document.title), *(chunk.plain for chunk in document.chunks)]
        return sum(any(map(words.stand_in, texts)) for _, ways in self._ranking for words in ways)

    def sentence(self, document: ListedDocument) -> str:
        """The first sentence that says what is asked for; where only the title or a tag does, the document's first."""
        chunks = [chunk for chunk in document.in_order() if not self._facets or chunk.facet in self._facets]
        said = (*self._conditions, *self._ranking)
        asked = [words for condition, ways in said if not condition.negated for words in ways]
        for words in asked:
            for chunk in chunks:
                if words.stand_in(chunk.plain) and (found := _sentence(chunk, words)):
                    return found
        return next((found for chunk in chunks if (found := _sentence(chunk, None))), "")


def _ready(condition: Condition) -> tuple[Condition, list[ConditionWords]]:
    return condition, [ConditionWords(words, exact=condition.exact) for words in condition.words]


def _sentence(chunk: ListedChunk, words: ConditionWords | None) -> str:
    for sentence in sentences(chunk.text):
        if sentence.strip() and not _HEADING.match(sentence) and (words is None or words.stand_in(plain(sentence))):
            line = plain_line(sentence)
            if line:
                return line if len(line) <= MAX_SENTENCE else f"{line[: MAX_SENTENCE - 1]}…"
    return ""
