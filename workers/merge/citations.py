"""What a number in a text stands for. Pure."""

from __future__ import annotations

from shared.models import Citation, Hit
from workers.display import plain_line


def citation(number: int, hit: Hit, quote: str) -> Citation:
    """`[number]` stands for `hit`; `quote` is a verbatim slice of its text."""
    path, title = plain_line(hit.path), plain_line(hit.title)
    place = plain_line(hit.place_of(quote))
    return Citation(number=number, chunk_id=hit.chunk_id, path=path, title=title, quote=quote, place=place)
