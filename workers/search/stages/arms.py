"""The arms: requests for ranked lists. They ask nothing yet; fusion sends all of them in one call of the store."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from qdrant_client import models

from shared.errors import InputError, RamifyError
from shared.models import Cost
from shared.providers.fallbacks import fell_back
from shared.providers.time_shares import share_of
from shared.settings import stages as s
from shared.store import DENSE, SPARSE, TRIGRAM, to_filter, to_sparse
from workers.search.language import model_reads
from workers.search.state import SearchArm, SearchState, Tools

NO_DENSE = "No embedding model is configured (embedding.provider): keyword search only."
LANGUAGE_NOT_READ = "The embedding model does not read the question's language: keyword search only."
NO_TRIGRAMS = "The collection has no trigrams: ingest it again with search.trigrams on."


def lexical(state: SearchState, options: s.LexicalStage, tools: Tools) -> SearchState:
    """BM25 for the question and every rewrite."""
    _, sparse = tools.need_store()
    vectors = [sparse.encode_query(text) for text in state.query.texts]
    return _with_arms(state, SPARSE, [to_sparse(v) for v in vectors], options, tools)


def trigram(state: SearchState, options: s.TrigramStage, tools: Tools) -> SearchState:
    """Trigrams of the question's words against those of titles, headings and words."""
    if tools.trigrams is None:
        return state.skip(NO_TRIGRAMS, warn=True)
    vector = to_sparse(tools.trigrams.encode_query(state.query.text))
    return _with_arms(state, TRIGRAM, [vector], options, tools)


def dense(state: SearchState, options: s.DenseStage, tools: Tools) -> SearchState:
    """Vectors of the question and every rewrite. Left out where the model does not read the question's language."""
    if tools.dense is None or tools.embed is None:
        if not state.arms and options.languages == "ignore":
            raise InputError("strategy", "vec_only", "it needs an embedding model: set embedding.provider")
        return state.skip(NO_DENSE, warn=True)
    embedding = tools.settings.embedding
    model = f"{tools.dense.name} {embedding.path}"
    known = model_reads(model, embedding.languages, state.query.text) if options.languages == "auto" else True
    if known is False:
        return state.skip(LANGUAGE_NOT_READ, warn=True)
    try:
        with share_of("embedding", tools.left_s) if state.arms else nullcontext():
            embedded = tools.embed(list(state.query.texts), state.query.tenant)
    except RamifyError as error:
        spent = state.cost + Cost(embed_calls=error.calls, embed_tokens=error.tokens)
        if not state.arms:
            error.cost = spent  # type: ignore[attr-defined] # `task_run` adds it
            raise
        fell_back("embedding", error)
        warning = f"The question could not be embedded, keyword search only: {error}"
        return state.but(cost=spent).skip(warning, warn=True)
    cost = state.cost + Cost(embed_calls=embedded.calls, embed_tokens=embedded.tokens)
    state = state.but(vector=embedded.vectors[0], cost=cost, language_unknown=known is None)
    return _with_arms(state, DENSE, [list(vector) for vector in embedded.vectors], options, tools)


def _with_arms(
    state: SearchState,
    name: str,
    queries: Sequence[models.SparseVector | list[float]],
    options: s.LexicalStage | s.DenseStage | s.TrigramStage,
    tools: Tools,
) -> SearchState:
    """One arm per text; rewrites weigh less. A list is twice as long as what is wanted, so that the arms share hits."""
    common = tools.request(to_filter(state.query.filters), options.limit or 2 * state.query.wanted)
    arms = []
    for number, query in enumerate(queries):
        request = common.model_copy(update={"query": query, "using": name})
        weight = options.weight if not number or isinstance(options, s.TrigramStage) else options.rewrite_weight
        arm = SearchArm(f"{name}#{number}" if number else name, request, weight)
        if isinstance(options, s.LexicalStage):
            arm = arm._replace(text=state.query.texts[number], title=options.title, truth=options.truth)
        arms.append(arm)
    return state.but(arms=(*state.arms, *arms))
