"""A document as a scan sees it, and whether it says what a list asks for. Pure, linear in the text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shared.language.sentences import sentences
from shared.language.text import CJK, key, plain, terms
from shared.models.enumeration import MAX_SENTENCE, Condition, ListRow, Scan
from shared.uri import SCHEME, quoted
from workers.display import plain_line

#: What is read of a first chunk, and of those behind it.
FIRST = ("doc_id", "path", "title", "date", "tags", "kind", "namespace", "facet", "heading", "text", "ordinal")
FURTHER = ("doc_id", "ordinal", "facet", "heading", "text")
#: Letters that a word's other forms may have behind its stem.
_MOST_ENDING = 6
_LEAST_STEM = 2
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
    """One document; `first` is the payload of its first chunk."""

    first: dict[str, Any]
    pieces: list[ListedChunk] = field(default_factory=list)

    def add(self, payload: dict[str, Any]) -> None:
        """One more of its chunks."""
        self.pieces.append(
            ListedChunk(
                ordinal=int(payload.get("ordinal") or 0),
                heading=str(payload.get("heading") or ""),
                text=str(payload.get("text") or ""),
                facet=payload.get("facet"),
            )
        )

    @property
    def doc_id(self) -> str:
        """Stable over ingests."""
        return str(self.first["doc_id"])

    @property
    def title(self) -> str:
        """For people."""
        return str(self.first.get("title") or "")

    @property
    def tags(self) -> tuple[str, ...]:
        """As they were written."""
        return tuple(self.first.get("tags") or ())

    @property
    def uri(self) -> str:
        """The address of the document."""
        return f"{SCHEME}{self.first.get('namespace') or 'default'}/{quoted(str(self.first['path']))}"

    def in_order(self) -> list[ListedChunk]:
        """The chunks as they stand in the document."""
        return sorted(self.pieces, key=lambda piece: piece.ordinal)

    def digest(self) -> str:
        """Equal for equal texts, whatever white space and case, wherever they stand."""
        said = hashlib.blake2b(digest_size=12)
        for piece in self.in_order():
            said.update(" ".join(piece.text.split()).casefold().encode("utf-8", "replace"))
        return said.hexdigest()


class ConditionWords:
    """One way to say a condition. Exact: letter by letter; else every word in all its forms, wherever it stands."""

    def __init__(self, spelt: str, *, exact: bool) -> None:
        text = " ".join(plain(spelt).split())
        self._key = key(spelt)
        self._terms = [] if exact else list(dict.fromkeys(terms(text)))
        self._patterns = [_form(term) for term in self._terms] or [_literal(text)]

    def stand_in(self, text: str) -> bool:
        """True when plain `text` has them all."""
        return all(self._found(number, text) for number in range(len(self._patterns)))

    def tag(self, keys: frozenset[str]) -> bool:
        """True when a tag says it."""
        return self._key in keys

    def _found(self, number: int, text: str) -> bool:
        pattern = self._patterns[number]
        if not self._terms:
            return pattern.search(text) is not None
        wanted = [self._terms[number]]
        return any(terms(found.group()) == wanted for found in pattern.finditer(text))


def _literal(text: str) -> re.Pattern[str]:
    head = r"(?<![a-z0-9])" if text[:1].isascii() and text[:1].isalnum() else ""
    tail = r"(?![a-z0-9])" if text[-1:].isascii() and text[-1:].isalnum() else ""
    return re.compile(head + re.escape(text).replace(r"\ ", r"\s+") + tail)


def _form(term: str) -> re.Pattern[str]:
    """Words that may have this stem; the stemmer has the last word."""
    if not (term.isascii() and term.isalnum()):
        return _literal(term)
    stem = term[:-1] if term.endswith("y") and len(term) > _LEAST_STEM else term
    return re.compile(rf"(?<![^\W_{CJK}]){stem}[a-z']{{0,{_MOST_ENDING}}}(?![^\W_{CJK}])")


@dataclass(frozen=True)
class _Asked:
    words: tuple[ConditionWords, ...]
    tagged: bool
    negated: bool


class Matcher:
    """The conditions of a scan, ready for many documents."""

    def __init__(self, scan: Scan) -> None:
        self._facets = frozenset(scan.facets)
        self._asked = [_asked(condition) for condition in scan.conditions]

    def fits(self, document: ListedDocument) -> bool:
        """True when the document says all that it must and nothing that it must not."""
        if self._facets and not any(piece.facet in self._facets for piece in document.pieces):
            return False
        if not self._asked:
            return True
        texts = [plain(document.title), *(piece.plain for piece in document.pieces)]
        tags = frozenset(key(tag) for tag in document.tags)
        return all(_holds(asked, texts, tags) for asked in self._asked)

    def sentence(self, document: ListedDocument) -> str:
        """The first sentence that says what is asked for; where only the title or a tag does, the document's first."""
        pieces = document.in_order()
        if self._facets:
            pieces = [piece for piece in pieces if piece.facet in self._facets]
        for asked in self._asked:
            if asked.negated:
                continue
            for words in asked.words:
                for piece in pieces:
                    if words.stand_in(piece.plain) and (said := _sentence(piece, words)):
                        return said
        return next((said for piece in pieces if (said := _sentence(piece, None))), "")


def _asked(condition: Condition) -> _Asked:
    ways = tuple(ConditionWords(word, exact=condition.exact) for word in condition.words)
    return _Asked(ways, condition.tagged, condition.negated)


def _holds(asked: _Asked, texts: Sequence[str], tags: frozenset[str]) -> bool:
    said = any(_said(words, texts) or (asked.tagged and words.tag(tags)) for words in asked.words)
    return said != asked.negated


def _said(words: ConditionWords, texts: Sequence[str]) -> bool:
    return any(words.stand_in(text) for text in texts)


def _sentence(piece: ListedChunk, words: ConditionWords | None) -> str:
    for said in sentences(piece.text):
        if _HEADING.match(said) or not said.strip():
            continue
        if words is None or words.stand_in(plain(said)):
            line = plain_line(said)
            if line:
                return line if len(line) <= MAX_SENTENCE else f"{line[: MAX_SENTENCE - 1]}…"
    return ""


def row_of(document: ListedDocument, sentence: str, fields: dict[str, str]) -> ListRow:
    """The row of a document that fits."""
    first = document.first
    return ListRow(
        doc_id=document.doc_id,
        title=document.title,
        path=str(first["path"]),
        uri=document.uri,
        date=first.get("date"),
        tags=document.tags,
        kind=str(first.get("kind") or ""),
        sentence=sentence,
        fields=fields,
        digest=document.digest(),
    )
