"""Which sources of an answer are out of date: they or another page say so, or there is a newer version. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from shared.language import claim_pattern, derived_last
from shared.language.names import bare
from shared.language.text import flat, fold
from shared.models import Hit
from shared.models.verdicts import StaleReason, StaleSource
from workers.display import plain_line

#: Characters behind "supersedes" in which the page is named.
_NAMED_WITHIN = 160
#: An identifier that names a page: ADR-012, KR 4.
_IDENTIFIER = re.compile(r"\b[a-z]{2,8}[- ]?\d{1,5}\b")
_DIGITS = re.compile(r"\d+")
_MOST_SAID = 160
#: Behind a title that only begins a longer one: a letter or digit, a bracket or a word with a number, a capital letter.
_GOES_ON = re.compile(r"[^\W_]|\s*[(\uff08][^)\uff09]{0,20}\d|\s+(?:\w+\s+)?\d|\s+[A-Z]")
#: Fewest characters of a title that is looked for in another page.
_LEAST_TITLE = 6


def stale_sources(numbers: Iterable[int], hits: Sequence[Hit], question: str, today: str) -> list[StaleSource]:
    """Of the hits with these `numbers` (from 1), those that are out of date; of each document the first one.

    `today` is an ISO day.
    """
    asked = fold(question)
    first: dict[str, int] = {}
    for number in numbers:
        if number <= len(hits):
            first.setdefault(hits[number - 1].doc_id, number)
    found = (_stale(number, hits, asked, today) for number in first.values())
    return [one for one in found if one is not None]


def _stale(number: int, hits: Sequence[Hit], asked: str, today: str) -> StaleSource | None:
    hit = hits[number - 1]
    others = [(n, one) for n, one in enumerate(hits, start=1) if one.doc_id != hit.doc_id]
    if hit.superseded:
        newer = next((n for n, one in others if _names(hit.superseded, one, hit) or _supersedes(one, hit)), None)
        return StaleSource(number=number, reason=StaleReason.SAYS_SO, said=plain_line(hit.superseded), newer=newer)
    for n, one in others:
        if not one.superseded and (line := _supersedes(one, hit)):
            return StaleSource(number=number, reason=StaleReason.SUPERSEDED_BY, said=line, newer=n)
    if hit.valid_until is not None and hit.valid_until < today:
        return StaleSource(number=number, reason=StaleReason.VALID_UNTIL, said=hit.valid_until)
    later = [(version, n) for n, one in others if (version := _later_version(hit, one, asked))]
    if later:
        return StaleSource(number=number, reason=StaleReason.NEWER_VERSION, newer=max(later)[1])
    return None


def _supersedes(page: Hit, old: Hit) -> str:
    """The line in which a page says that it takes the place of another; "" where it does not."""
    said = (line for named, line in _lines_that_supersede(page.text) if _names(named, old, page, whole=True))
    return next(said, "")


@derived_last(2048)
def _lines_that_supersede(text: str) -> tuple[tuple[str, str], ...]:
    """Where a text says that it takes the place of something: what follows there, and the line as it is shown."""
    low, lines = fold(text), list[tuple[str, str]]()
    for found in claim_pattern("supersedes").finditer(low) if len(low) == len(text) else ():
        start, end = low.rfind("\n", 0, found.start()) + 1, low.find("\n", found.end())
        line_end = len(low) if end < 0 else end
        named = text[found.end() : min(line_end, found.end() + _NAMED_WITHIN)]
        lines.append((named, plain_line(text[start:line_end])[:_MOST_SAID]))
    return tuple(lines)


def _names(text: str, page: Hit, by: Hit, *, whole: bool = False) -> bool:
    """Whether a text of `by` names a page: by its title, its file, or in the same folder by the identifier of both.

    `whole`: not where the title only begins a longer one.
    """
    words, path = flat(text), PurePath(page.path)
    names = {name for name in (page.title, bare(page.title), path.stem) if not _IDENTIFIER.fullmatch(fold(name))}
    long = [name for name in names if len(flat(name).strip()) >= _LEAST_TITLE]
    if any(_ends(name, text) if whole else flat(name) in words for name in long):
        return True
    own = _IDENTIFIER.match(fold(page.title)) or _IDENTIFIER.match(fold(path.stem))
    return own is not None and path.parent == PurePath(by.path).parent and flat(own[0]) in words


def _ends(name: str, text: str) -> bool:
    """Whether `text` has the name and does not go on with it."""
    units = r"[\W_]*".join(map(re.escape, flat(name).split()))
    written = re.compile(rf"(?<![^\W_]){units}", re.IGNORECASE)
    return any(not _GOES_ON.match(text, found.end()) for found in written.finditer(text))


def _later_version(hit: Hit, other: Hit, asked: str) -> tuple[int, ...]:
    """The version of another page that is a later one of the same; () where it is not, or the question names one."""
    ours, theirs = _version(hit.title), _version(other.title)
    if ours is None or theirs is None or ours[0] != theirs[0] or theirs[1] <= ours[1]:
        return ()
    if any(re.search(rf"(?<!\d){'.'.join(map(str, version))}(?!\d)", asked) for version in (ours[1], theirs[1])):
        return ()
    return theirs[1]


@derived_last(2048)
def _version(title: str) -> tuple[str, tuple[int, ...]] | None:
    """A title without its version, and that; None for a title without one."""
    low = fold(title)
    found = claim_pattern("versions").search(low)
    if found is None or not (rest := flat(low[: found.start()] + low[found.end() :]).strip()):
        return None
    return rest, tuple(int(part) for part in _DIGITS.findall(found[0]))
