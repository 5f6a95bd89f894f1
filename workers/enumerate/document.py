"""A document as a scan sees it: what its first chunk says of it, and the texts of all its chunks."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shared.language.text import plain
from shared.uri import SCHEME, quoted

#: What is read of a first chunk, and of those behind it.
FIRST = ("doc_id", "path", "title", "date", "tags", "kind", "namespace", "facet", "heading", "text", "ordinal")
FURTHER = ("doc_id", "ordinal", "facet", "heading", "text")
#: Of a document's texts so much is looked at, in characters.
MAX_TEXT = 2_000_000


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
