"""Which page, slide or rows the parts of a document's chunks come from. Pure."""

from __future__ import annotations

from workers.index.documents import Document

_ANCHOR_CHARS = 80
#: How many places after the present one may begin in the same chunk without their anchors being found.
_AHEAD = 4


class PlaceMarks:
    """Goes through the chunks of a document in order; `of` gives the places of each."""

    def __init__(self, document: Document) -> None:
        starts = [start for start, _ in document.places]
        self._names = [name for _, name in document.places]
        self._anchors = [
            _anchor(document.text[start:end]) for start, end in zip(starts, [*starts[1:], None], strict=False)
        ]
        self._at = 0

    def of(self, text: str) -> tuple[tuple[int, str], ...]:
        """Offsets in a chunk's text and the place that begins there; the first one is that of its beginning."""
        if not self._names:
            return ()
        found = [(0, self._names[self._at])]
        searched = 0
        while (following := self._next(text, searched)) is not None:
            self._at, searched = following
            if searched <= 0 or not text[:searched].strip():
                found = [(0, self._names[self._at])]
            else:
                found.append((searched, self._names[self._at]))
            searched += 1
        return tuple(found)

    def _next(self, text: str, start: int) -> tuple[int, int] | None:
        for number in range(self._at + 1, min(self._at + 1 + _AHEAD, len(self._names))):
            anchor = self._anchors[number]
            place = text.find(anchor, start) if anchor else -1
            if place >= 0:
                return number, text.rfind("\n", 0, place) + 1
        return None


def _anchor(part: str) -> str:
    """What shows where a part begins: its first line, behind headings and the head of a table."""
    lines = [line for line in part.split("\n", 8)[:8] if line.strip() and not line.startswith("#")]
    is_table = len(lines) > 2 and lines[0].startswith("|") and lines[1].startswith("| ---")
    return lines[2 if is_table else 0][:_ANCHOR_CHARS].strip() if lines else ""
