"""The documents that answers cite, as BibTeX and CSL-JSON know them. Pure.

A key is made of the document's id and path alone: the same document has the same key in every export.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from pydantic import Field

from orchestrator.text_lines import json_text, one_line
from shared.models import Answer, Hit
from shared.models.base import Model
from shared.uri import page_uri

_SLUG = re.compile(r"[^a-z0-9]+")
_MOST_SLUG, _DIGITS = 40, 8
#: What TeX would read as a command. Source: D. E. Knuth, The TeXbook, chapter 7 (category codes).
_TEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
        "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    }
)  # fmt: skip
#: What would end a value, or be read as a comment, inside of an address.
_IN_URL = str.maketrans({"{": "%7B", "}": "%7D", "\\": "%5C", " ": "%20"})
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class CitedQuote(Model):
    """What an answer quotes of a document: the citation's number there, the words, and where in the file they stand."""

    number: int
    quote: str = ""
    place: str = ""


class AnswerSource(Model):
    """A document that an answer cites. `version`: of its content, as in the manifest. `date`: ISO, of the document."""

    key: str
    doc_id: str
    title: str
    path: str
    uri: str = ""
    date: str | None = None
    tags: tuple[str, ...] = ()
    version: str = ""
    quotes: tuple[CitedQuote, ...] = Field(default=(), description="in the order of their numbers")


def sources_of(answer: Answer) -> tuple[AnswerSource, ...]:
    """The documents that an answer cites, in the order in which it does."""
    hits: dict[str, Hit] = {hit.chunk_id: hit for leaf in answer.leaves for hit in leaf.hits}
    hits |= {hit.chunk_id: hit for hit in answer.results}
    rows = {row.doc_id: row for row in answer.table.rows} if answer.table else {}
    found = dict[str, AnswerSource]()
    for citation in sorted(answer.summary.citations, key=lambda one: one.number):
        hit, row = hits.get(citation.chunk_id), rows.get(citation.doc_id)
        doc_id = citation.doc_id or (hit.doc_id if hit else citation.path)
        quote = CitedQuote(number=citation.number, quote=citation.quote, place=citation.place)
        if (known := found.get(doc_id)) is not None:
            found[doc_id] = known.model_copy(update={"quotes": (*known.quotes, quote)})
            continue
        found[doc_id] = AnswerSource(
            key=source_key(doc_id, citation.path),
            doc_id=doc_id,
            title=citation.title,
            path=citation.path,
            uri=page_uri(hit) if hit else row.uri if row else "",
            date=hit.date if hit else row.date if row else None,
            tags=hit.tags if hit else row.tags if row else (),
            version=hit.version if hit else "",
            quotes=(quote,),
        )
    return tuple(found.values())


def source_key(doc_id: str, path: str) -> str:
    """Like `redis-streams-3f2a9c01`: letters and digits of ASCII, which every tool takes as a key."""
    plain = unicodedata.normalize("NFKD", PurePosixPath(path).stem).encode("ascii", "ignore").decode().lower()
    slug = _SLUG.sub("-", plain).strip("-")[:_MOST_SLUG].strip("-") or "source"
    return f"{slug}-{hashlib.sha256(doc_id.encode('utf-8', 'replace')).hexdigest()[:_DIGITS]}"


def bibtex(sources: Iterable[AnswerSource]) -> str:
    """An entry `@misc` for each, in UTF-8; braces round a title keep its capitals."""
    return "".join(f"{_entry(source)}\n" for source in sources)


def _entry(source: AnswerSource) -> str:
    year, month = _year_month(source.date)
    fields = {
        "title": f"{{{_tex(source.title or source.path)}}}",
        "year": year,
        "month": month,
        "howpublished": _tex(source.path),
        "url": one_line(source.uri).translate(_IN_URL),
        "keywords": _tex(", ".join(source.tags)),
        "note": _tex(f"version {source.version}") if source.version else "",
    }
    lines = [f"  {name} = {value if name == 'month' else f'{{{value}}}'}," for name, value in fields.items() if value]
    return "\n".join((f"@misc{{{source.key},", *lines, "}"))


def _tex(text: str) -> str:
    return one_line(text).translate(_TEX)


def _year_month(day: str | None) -> tuple[str, str]:
    parts = _date_parts(day)
    return (str(parts[0]), _MONTHS[parts[1] - 1]) if parts else ("", "")


def _date_parts(day: str | None) -> list[int]:
    found = re.fullmatch(r"(\d{4})-(0[1-9]|1[0-2])-(\d{2})", day or "")
    return [int(part) for part in found.groups()] if found else []


def csl(sources: Iterable[AnswerSource]) -> str:
    """A list of CSL-JSON items (https://citeproc-js.readthedocs.io/en/latest/csl-json/markup.html)."""
    return f"{json_text([_item(source) for source in sources], indent=1)}\n"


def _item(source: AnswerSource) -> dict[str, Any]:
    parts = _date_parts(source.date)
    item: dict[str, Any] = {
        "id": source.key,
        "type": "document",
        "title": one_line(source.title or source.path),
        "archive_location": source.path,
        "URL": source.uri,
        "keyword": ", ".join(source.tags),
        "version": source.version,
        "issued": {"date-parts": [parts]} if parts else None,
    }
    return {name: value for name, value in item.items() if value}
