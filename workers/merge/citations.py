"""What a number in a text stands for: the one place that makes citations and quotes. Pure."""

from __future__ import annotations

from shared.models import Citation, Hit
from shared.models.support import Quotation
from workers.display import plain_line


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
        place=plain_line(hit.place_of(quote)),
        where=hit.place_at(first, first + len(quote)),
        start=start,
        end=end,
        score=hit.score,
    )


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
