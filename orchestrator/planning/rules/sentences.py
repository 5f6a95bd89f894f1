"""Cuts a text into its sentences and list items, in linear time. Judges none of them."""

from __future__ import annotations

import re

_ITEM_START = re.compile(r"^\s*(?:[-*•·]|\(?\d{1,2}[.)、](?!\d)|[一二三四五六七八九十]、)\s*")
_INLINE_ITEM = re.compile(r"(?:(?<=[\s:;,。])|^)\(?\d{1,2}[)、]\s*")
#: A full stop before a small letter ends an abbreviation, unless a question starts there; "?" may stand within a title.
_END = re.compile(
    r"[。\n]+|[?!;]+(?=[\s\"')\]]|$|[^\x00-\x7f])(?!\s*\(|\s+or\b)"
    r"|\.(?=\s*$|\s+(?:[^a-z\s]|(?:how|what|why|when|where|who|which|should|can|is|are|do|does)\b))"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|etc|mr|mrs|ms|dr|no|st|approx|incl|fig|jr|sr|inc|ltd|co|corp)|\b[a-z]|^\d{1,2})$",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """The sentences of `text` in order, each with the mark that ends it, without numbering and bullets.

    Numbered items within a line ("1) ... 2) ...") count as sentences when there are at least two. Full stops within
    names and numbers (node.js, 3.11) and after abbreviations end nothing.
    """
    if len(_INLINE_ITEM.findall(text)) > 1:
        text = _INLINE_ITEM.sub("\n", text)
    found: list[str] = []
    start = 0
    for end in _END.finditer(text):
        # only the tail before the mark matters to the abbreviations: a slice keeps this linear
        if end[0] == "." and _ABBREVIATION.search(text[max(start, end.start() - 8) : end.start()]):
            continue
        found.append(text[start : end.end()])
        start = end.end()
    found.append(text[start:])
    cleaned = (" ".join(_ITEM_START.sub("", sentence).split()) for sentence in found)
    return [sentence for sentence in cleaned if any(char.isalnum() for char in sentence)]
