"""What a number in a text stands for: the one place that makes citations and quotes. Pure."""

from __future__ import annotations

from pathlib import PurePath

from shared.models import Citation, Hit
from shared.models.ingest import FORMATS
from shared.models.support import Quotation
from workers.display import plain_line

#: Formats of messages.
_MAILS = frozenset({"mail", "mbox"})


def citation(number: int, hit: Hit, quote: str) -> Citation:
    """`[number]` stands for `hit`; `quote` is a verbatim slice of its text."""
    start, end = _span(hit, quote)
    first = max(0, hit.text.find(quote))
    return Citation(
        number=number,
        chunk_id=hit.chunk_id,
        doc_id=hit.doc_id,
        path=plain_line(hit.path),
        title=plain_line(hit.title),
        quote=quote,
        place=plain_line(_place(hit, quote)),
        where=hit.place_at(first, first + len(quote)),
        start=start,
        end=end,
        score=hit.score,
    )


def _place(hit: Hit, quote: str) -> str:
    """Where in its file a quote stands, as people read it.

    A file of a format without pages, such as Word or mail, has its headings, and a mail without any its subject.
    """
    suffix = PurePath(hit.path.partition("#")[0]).suffix.lower()
    if (place := hit.place_of(quote)) or suffix not in FORMATS:
        return place
    return hit.heading or (f'message "{hit.title}"' if FORMATS[suffix] in _MAILS else "")


def quotation(number: int, hit: Hit, quote: str) -> Quotation:
    """`quote`, a slice of the text of `hit`, which `[number]` stands for."""
    start, end = _span(hit, quote)
    return Quotation(number=number, text=quote, start=start, end=end)


def _span(hit: Hit, quote: str) -> tuple[int | None, int | None]:
    """Where a quote stands in the text of its document; None where it does not in one piece, or that is not known."""
    first = hit.text.find(quote) if quote else -1
    found = hit.in_document(first, first + len(quote)) if first >= 0 else ()
    is_whole = len(found) == 1 and found[0][1] - found[0][0] == len(quote)
    return found[0] if is_whole else (None, None)
