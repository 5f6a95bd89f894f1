"""Search from a named symbol: the definitions of that name, or a warning that names the most similar symbols."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from qdrant_client import models

from shared.models import Hit
from shared.models.hits import PagePart, Via
from shared.store import SPARSE, to_filter, to_sparse
from shared.store.schema import equals, one_of
from workers.search.state import Candidate, SearchState, Tools, by_score

#: Definitions of one name that a search starts from; chunks looked at to find them; later parts of long ones.
_MAX_DEFINITIONS, _MAX_LOOKUP, _MAX_PARTS = 3, 50, 20
_MAX_SUGGESTIONS = 3


def near_symbol_anchors(state: SearchState, tools: Tools) -> tuple[SearchState, list[tuple[float, list[Hit]]]]:
    """The state, and the definitions of `near_symbol` as (score, chunks) to start from; they lead the candidates.

    A definition scores twice the best candidate, so that what it calls, at half of that, competes with what the
    question found. A warning says where the name is unknown, with the most similar symbols, or has several definitions.
    """
    name = state.query.near_symbol or ""
    named = _definitions(name, state, tools)
    if not named:
        return state.but(warnings=(*state.warnings, _unknown(name, state, tools))), []
    chosen = named[:_MAX_DEFINITIONS]
    if len(named) > 1:
        state = state.but(warnings=(*state.warnings, _several(name, named)))
    best = max((candidate.score for candidate in state.candidates), default=0.0)
    score = 2 * best if best > 0 else 1.0
    parts = _parts(chosen, state, tools)
    known = {candidate.hit.chunk_id: candidate for candidate in state.candidates}
    for hit in chosen:
        old = known.get(hit.chunk_id) or Candidate(hit, 0.0)
        via = Via(chunk_id=hit.chunk_id, bridge=name, hop=1, how="symbol")
        new = old._replace(hit=old.hit.model_copy(update={"via": via}))
        known[hit.chunk_id] = new.plus("edges", score - old.score, symbol=name)
    return state.but(candidates=by_score(list(known.values()))), [
        (score, [hit, *(part for part in parts if (part.doc_id, part.symbol) == (hit.doc_id, hit.symbol))])
        for hit in chosen
    ]


def _definitions(name: str, state: SearchState, tools: Tools) -> list[Hit]:
    """Exact matches, else suffix matches, shortest symbol first; of overloads in one file the longest."""
    store, _ = tools.need_store()
    flt = models.Filter(must=[to_filter(state.query.filters), equals("defines", name)])
    longest: dict[tuple[str, str | None], Hit] = {}
    for hit in sorted(store.lookup(flt, _MAX_LOOKUP, tools.dense is not None), key=lambda hit: -len(hit.text)):
        if hit.symbol:
            longest.setdefault((hit.doc_id, hit.symbol), hit)
    found = list(longest.values())
    exact = [hit for hit in found if hit.symbol == name]
    return exact or sorted(found, key=lambda hit: (len(hit.symbol or ""), hit.symbol or "", hit.chunk_id))


def _parts(chosen: Sequence[Hit], state: SearchState, tools: Tools) -> list[Hit]:
    """The later parts of long definitions: their calls count too."""
    store, _ = tools.need_store()
    symbols, docs = [hit.symbol for hit in chosen if hit.symbol], [hit.doc_id for hit in chosen]
    flt = models.Filter(must=[to_filter(state.query.filters), one_of("doc_id", docs), one_of("symbol", symbols)])
    first = {hit.chunk_id for hit in chosen}
    found = store.lookup(flt, _MAX_PARTS, tools.dense is not None)
    return [hit for hit in found if hit.chunk_id not in first]


def _several(name: str, named: Sequence[Hit]) -> str:
    symbols = [hit.symbol or "" for hit in named]
    shown = ", ".join(f"{symbol} ({hit.path})" for symbol, hit in zip(symbols[:_MAX_DEFINITIONS], named, strict=False))
    more = f" and {len(named) - _MAX_DEFINITIONS} more" if len(named) > _MAX_DEFINITIONS else ""
    return f"{name} names {len(named)} definitions, {shown}{more}: write more of the name to start from one of them."


def _unknown(name: str, state: SearchState, tools: Tools) -> str:
    """The warning, with known symbols that share words with the name, the most similar first."""
    store, sparse = tools.need_store()
    words = sparse.encode_query(name.replace(".", " "))
    request = models.QueryRequest(
        query=to_sparse(words),
        using=SPARSE,
        filter=models.Filter(must=[to_filter(state.query.filters), equals("part", PagePart.CODE.value)]),
        limit=_MAX_LOOKUP,
        with_payload=True,
    )
    tail = models.Filter(must=[to_filter(state.query.filters), equals("defines", name.rpartition(".")[2])])
    found = [*store.query([request])[0], *store.lookup(tail, _MAX_LOOKUP)]
    symbols = sorted({hit.symbol for hit in found if hit.symbol})
    near = get_close_matches(name, symbols, n=_MAX_SUGGESTIONS, cutoff=0.6)
    hint = f"did you mean {', '.join(near)}?" if near else "ingest the code that defines it, or leave the name out."
    return f"No definition is called {name} here, so the question was searched without it: {hint}"
