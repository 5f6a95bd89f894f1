"""Names in a passage: what a next hop can be searched by. Pure, no model, linear in the text's length.

They are the title, what stands in quotation or title marks, and what the languages know as runs of names ("University
of Oxford").
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.language import derived, languages
from shared.language.text import fold, has_cjk

#: Longest name in characters, most names of a passage, and how much of a passage is read.
MAX_NAME = 80
MAX_NAMES = 24
MAX_TEXT = 4000

_MARKED = re.compile(r"《([^《》\n]{1,80}+)》|「([^「」\n]{2,40}+)」|“([^“”\n]{2,80}+)”|\"([^\"\n]{2,80}+)\"")
_BRACKET = re.compile(r"(?<!\s)\s*+[(（][^()（）]{1,60}+[)）]\s*+$")
_ENDS = r"[\s\"'“”.,:;()\-]"
_CLEAN = re.compile(rf"^{_ENDS}++|['’]s{_ENDS}*+$|(?<!{_ENDS}){_ENDS}++$")


def names_of(title: str, text: str) -> tuple[str, ...]:
    """Distinct names in order: the title (without its bracket) first, then as they stand in the text.

    At most MAX_NAMES of at most MAX_NAME characters each; a name that differs only in case from an earlier one is left
    out.
    """
    found: dict[str, str] = {}
    for name in _candidates(title, text[:MAX_TEXT]):
        tidy = _CLEAN.sub("", name)
        if 1 < len(tidy) <= MAX_NAME:
            found.setdefault(fold(tidy), tidy)
        if len(found) >= MAX_NAMES:
            break
    return tuple(found.values())


def transcribed_names(text: str) -> list[str]:
    """Foreign names that are written by their sound in the beginning of `text`."""
    patterns = (language.names.transcribed for language in languages())
    return [name for pattern in patterns if pattern for name in pattern.findall(text[:MAX_TEXT])]


def bare(title: str) -> str:
    """A title without the bracket that tells it from its namesakes: "Log (mathematics)" is "Log"."""
    return _BRACKET.sub("", title) or title


def _candidates(title: str, text: str) -> Iterator[str]:
    if title:
        yield bare(title)
    found_at = [(found.start(), next(part for part in found.groups() if part)) for found in _MARKED.finditer(text)]
    for language in languages():
        runs = language.names.runs.finditer(text) if language.names.runs else ()
        found_at += [(found.start(), found[0]) for found in runs if _is_name(found, text)]
    for _, name in sorted(found_at):
        words = name.split()
        while words and words[0].lower() in _plain() and len(words) > 1:
            words = words[1:]
        yield name if has_cjk(name) else " ".join(words)


@derived
def _plain() -> frozenset[str]:
    """Words that begin sentences in capitals and name nothing alone."""
    return frozenset[str]().union(*(language.names.plain for language in languages()))


def _is_name(found: re.Match[str], text: str) -> bool:
    """Not one plain word: "The", or a word in capitals only because a sentence begins with it."""
    words = [word for word in found.group().split() if word.lower().strip(".,") not in _plain()]
    if not words:
        return False
    if len(words) > 1 or not _begins(text[max(0, found.start() - 3) : found.start()]):
        return True
    lower = words[0].lower()
    return f" {lower} " not in text and len(lower) > 2


def _begins(before: str) -> bool:
    """True where a sentence, a line or a quotation begins behind `before`."""
    bare = before.rstrip()
    return not before or "\n" in before[len(bare) :] or bare.endswith((*'.!?:;"“(',))
