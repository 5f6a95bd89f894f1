"""Which storage facet of a memory answers which search facet (B9; the table of seed 000). Pure data."""

from __future__ import annotations

from collections.abc import Mapping

#: Search facet -> storage facet. `original` asks for no facet.
STORED: Mapping[str, str] = {
    "core": "context",
    "why": "intent",
    "how": "action",
    "case": "result",
    "note": "insight",
}


def stored_facet(search_facet: str) -> str:
    """The storage facet that answers a search facet; empty when there is none."""
    return STORED.get(search_facet, "")
