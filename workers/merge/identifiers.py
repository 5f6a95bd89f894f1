"""Identifiers in a question (a UUID, a hash, a ticket's number), and whether the results name them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.language import languages
from shared.language.text import fold, terms
from shared.models import Hit

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_HASH = r"(?=[0-9a-f]{0,63}[0-9])(?=[0-9a-f]{0,63}[a-f])[0-9a-f]{7,64}"
_TICKET = r"[a-z][a-z0-9]{1,9}-[0-9]{2,10}"
_BEFORE, _AFTER = r"(?<![0-9a-z_\-])", r"(?![0-9a-z_\-])"
_IDENTIFIER = re.compile(rf"{_BEFORE}(?:{_UUID}|{_HASH}|{_TICKET}){_AFTER}", re.ASCII | re.IGNORECASE)
_NUMBERED, _HASHED = (re.compile(one, re.ASCII | re.IGNORECASE) for one in (_TICKET, _HASH))
_DAY = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
#: A question with more words of its own asks about these, and names the identifier beside it.
_MOST_BESIDE = 2


def identifiers(question: str) -> list[str]:
    """Those of the question, as they are written, each once. UTF-8 and GPT-4, names with one digit, are none."""
    return list(dict.fromkeys(_IDENTIFIER.findall(question)))


def unnamed(question: str, hits: Sequence[Hit]) -> list[str]:
    """The identifiers of the question that no hit has in its text, title, heading or path."""
    wanted = identifiers(question)
    return [one for one in wanted if not any(_names(hit, one) for hit in hits)] if wanted else []


def named_numbers(question: str, hits: Sequence[Hit]) -> frozenset[int]:
    """The hits, numbered from 1, whose title, heading or path names an identifier of the question, or its day."""
    wanted = [*identifiers(question), *_DAY.findall(question)]
    return frozenset(
        number
        for number, hit in enumerate(hits, start=1)
        if any(names(f"{hit.title}\n{hit.heading}\n{hit.path}", one) for one in wanted)
    )


def without(question: str, lost: Sequence[str]) -> str:
    """The question without these identifiers, so that the rest of it can be looked for in what was found."""
    for one in lost:
        question = question.replace(one, " ")
    return question


def unnamed_subject(question: str, hits: Sequence[Hit]) -> list[str]:
    """The identifiers that the question is about, where no hit names one of them; none where it asks about more.

    It is about them when it says little else, or when hits name others of the same series (INC-17 for INC-99999).
    """
    lost = unnamed(question, hits)
    if not lost or len(lost) < len(identifiers(question)):
        return []
    generic = {term for language in languages() for word in language.words.generic for term in terms(word)}
    rest = frozenset(terms(without(question, lost))) - generic
    series = {one.rpartition("-")[0].lower() for one in lost if _NUMBERED.fullmatch(one)}
    return lost if len(rest) <= _MOST_BESIDE or any(_in_series(hit, series) for hit in hits) else []


def names(text: str, identifier: str) -> bool:
    """True where the text has it, with or without its hyphens; a hash may be written out."""
    written = "[-_ ]?".join(map(re.escape, fold(identifier).split("-")))
    end = "" if _HASHED.fullmatch(identifier) else r"(?![0-9a-z])"
    return re.search(rf"(?<![0-9a-z]){written}{end}", fold(text), re.ASCII) is not None


def _names(hit: Hit, identifier: str) -> bool:
    return names(f"{hit.title}\n{hit.heading}\n{hit.path}\n{hit.text}", identifier)


def _in_series(hit: Hit, series: set[str]) -> bool:
    found = _IDENTIFIER.findall(f"{hit.title}\n{hit.heading}\n{hit.text}")
    return any(one.rpartition("-")[0].lower() in series for one in found if _NUMBERED.fullmatch(one))
