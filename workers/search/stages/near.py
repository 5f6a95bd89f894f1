"""Search from a named symbol: its definitions, then who calls them, then what they call, before what words find.

A name that nothing defines is a warning with the most similar symbols, or ignored where the question only may name one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from enum import IntEnum
from pathlib import PurePosixPath

from qdrant_client import models

from shared.language.page_keys import is_page_key
from shared.models import Hit
from shared.models.hits import PagePart, Via
from shared.store import SPARSE, to_filter, to_sparse
from shared.store.schema import equals, one_of
from workers.search.stages.edge_keys import Neighbour, asked_direction, has_direction
from workers.search.stages.symbol_names import imported_as, other_names, without_imports
from workers.search.state import Candidate, SearchState, Tools, by_score

#: Definitions of one name that a search starts from; chunks looked at to find them; later parts of long ones.
_MAX_DEFINITIONS, _MAX_LOOKUP, _MAX_PARTS = 3, 50, 20
_MAX_SUGGESTIONS = 3
#: Chunks that lead to one definition; definitions that a name in one of them may mean, for it to count.
MAX_CALLERS, MAX_MEANINGS = 1000, 10
#: Results that an answer can show.
_MAX_SHOWN = 200
_TEST_FOLDERS = frozenset({"test", "tests", "testing", "__tests__", "spec", "specs", "testdata", "fixtures"})
_TEST_FILE = re.compile(r"^(?:test_.*|conftest)\.|[._](?:test|tests|spec)\.\w+$|(?:Test|Tests)\.java$")


class Precedence(IntEnum):
    """In which order a symbol and what calls join with it are shown. `CALLED` leads where that is asked for."""

    DEFINITION = 0
    CALLER = 1
    CALLER_IN_TEST = 2
    POSSIBLE_CALLER = 3
    IMPORTER = 4
    CALLED = 5


def near_symbol_anchors(state: SearchState, tools: Tools) -> tuple[SearchState, list[tuple[float, list[Hit]]]]:
    """The state, and the definitions of the symbol asked for to start from, as (score, chunks); they lead the hits.

    A definition scores twice the best candidate, so that what it calls, at half of that, competes with what the
    question found. A warning says where the name is unknown, with the most similar symbols, or has several definitions.
    """
    name = state.query.near_symbol or state.query.read_symbol or ""
    named = _definitions(name, state, tools) if name else []
    if not named and not state.query.near_symbol:
        return state, []
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
        via = Via(chunk_id=hit.chunk_id, bridge=name, hop=1, how="symbol", precedence=Precedence.DEFINITION)
        new = old._replace(hit=old.hit.model_copy(update={"via": via}))
        known[hit.chunk_id] = new.plus("edges", score - old.score, best=best, symbol=name)
    return state.but(candidates=by_score(list(known.values()))), [
        (score, [_named(hit, name, state, tools), *(part for part in parts if _same_definition(part, hit))])
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
    return exact or sorted(
        found, key=lambda hit: (is_test(hit.path), len(hit.symbol or ""), hit.symbol or "", hit.chunk_id)
    )


def _same_definition(one: Hit, other: Hit) -> bool:
    return (one.doc_id, one.symbol) == (other.doc_id, other.symbol)


def _named(hit: Hit, name: str, state: SearchState, tools: Tools) -> Hit:
    """The definition with all names that callers may know it by, and no names of others that its chunk holds."""
    last = name.rpartition(".")[2]
    own = tuple(key for key in hit.defines if is_page_key(key) or key.rpartition(".")[2] == last) or hit.defines
    others = other_names(hit.model_copy(update={"defines": own}), state.query.filters.namespace, tools.need_store()[0])
    return hit.model_copy(update={"defines": (*own, *others)})


def callers_first(
    groups: Sequence[list[Neighbour]], state: SearchState, fewest: int
) -> tuple[SearchState, list[list[Neighbour]]]:
    """The neighbours of each definition with the precedence that they are shown in.

    A caller that is several chunks stands once, with the best of those that call. As many callers stay as a leaf hands
    on, at least `fewest`; a warning says how many there are where the answer shows fewer.
    """
    ranked = [[one._replace(precedence=_precedence(one)) for one in group] for group in groups]
    called = _once(one for group in ranked for one in group if _is_caller(one))
    wanted = max(fewest, state.query.wanted, state.query.shown)
    kept = {one.hit.chunk_id for one in called[:wanted]}
    sure = [one for one in called if one.precedence in {Precedence.CALLER, Precedence.CALLER_IN_TEST}]
    definitions = len(groups)
    state = state.but(candidates=[_counted(one, len(sure)) for one in state.candidates])
    if state.query.shown and len(sure) + definitions > state.query.shown:
        state = state.but(warnings=(*state.warnings, _more(len(sure), definitions, state)))
    if asked_direction(state.query.text) == "out":
        ranked = [[_called_before(one) for one in group] for group in ranked]
    return state, [[one for one in group if not _is_caller(one) or one.hit.chunk_id in kept] for group in ranked]


def _counted(one: Candidate, callers: int) -> Candidate:
    """A definition with how many call it; another candidate as it is."""
    via = one.hit.via
    if via is None or via.precedence != Precedence.DEFINITION:
        return one
    counted = via.model_copy(update={"callers": callers})
    return one._replace(hit=one.hit.model_copy(update={"via": counted}))


def _precedence(one: Neighbour) -> Precedence | None:
    """None for links and mentions: what they lead to competes by its score."""
    if is_page_key(one.edge.key) or one.edge.how in {"mention", "mentioned by"}:
        return None
    if not has_direction(one.edge.how, "back"):
        return Precedence.CALLED
    if _only_imports(one.hit, one.edge.key):
        return Precedence.IMPORTER
    if one.edge.places > 1:
        return Precedence.POSSIBLE_CALLER
    return Precedence.CALLER_IN_TEST if is_test(one.hit.path) else Precedence.CALLER


def _is_caller(one: Neighbour) -> bool:
    return one.precedence is not None and has_direction(one.edge.how, "back")


def _called_before(one: Neighbour) -> Neighbour:
    """What is called before callers, which keep their order."""
    if one.precedence is None:
        return one
    return one._replace(precedence=1 if one.precedence == Precedence.CALLED else one.precedence + 1)


def _once(callers: Iterable[Neighbour]) -> list[Neighbour]:
    """The best chunk of each calling definition, in the order that they are shown."""
    found: dict[tuple[str, str | None], Neighbour] = {}
    for one in sorted(
        callers, key=lambda one: (one.precedence or 0, -one.relevance / one.edge.places, one.hit.chunk_id)
    ):
        found.setdefault((one.hit.doc_id, one.hit.symbol), one)
    return list(found.values())


def _only_imports(hit: Hit, key: str) -> bool:
    """Whether the lines of a module outside of its definitions name the last part of `key` in imports alone."""
    name = key.rpartition(".")[2]
    if hit.heading or not re.search(rf"\b{re.escape(name)}\b", hit.text):
        return False
    words = "|".join(map(re.escape, {name, *imported_as(name, hit.text)}))
    return re.search(rf"(?<![\w'\"])(?:{words})\b(?!['\"])", without_imports(hit.text)) is None


def is_test(path: str) -> bool:
    """Whether a file holds tests, by its folders and its name."""
    pure = PurePosixPath(path)
    return not _TEST_FOLDERS.isdisjoint(pure.parts[:-1]) or _TEST_FILE.search(pure.name) is not None


def _more(callers: int, definitions: int, state: SearchState) -> str:
    name = state.query.near_symbol or state.query.read_symbol
    shown, needed = max(0, state.query.shown - definitions), min(_MAX_SHOWN, callers + definitions)
    return (
        f"{name} is called in {callers} places, of which the first {shown} are shown: ask for {needed} results for all."
    )


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
