"""Compiled truth: every page found keeps at least one chunk of what it holds to be true."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import models

from shared.language.routing import route_by_rules
from shared.models import Chunk, Filters, Hit, SearchResult
from shared.models.hits import PagePart
from shared.providers.encoders import Bm25Encoder
from shared.providers.rerankers import reranker
from shared.settings import load_settings
from shared.settings.stages import TruthStage
from shared.settings.strategies import split
from shared.store import BuiltWith, ChunkPoint
from shared.store.embedded import EmbeddedStore
from tests.fakes.stores import OpenedStore
from workers.search.engine import continue_search, search
from workers.search.stages.truth import truth
from workers.search.state import Candidate, Query, SearchState, Tools
from workers.shown_hits import shown_hits

SPARSE = Bm25Encoder(10.0)


class Counted(OpenedStore):
    """A store that counts how often chunks are looked up, and listed."""

    lookups = reads = 0

    def lookup(self, flt: models.Filter, limit: int, vectors: bool = False) -> list[Hit]:
        self.lookups += 1
        return super().lookup(flt, limit, vectors)

    def read(self, *args: Any, **options: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        self.reads += 1
        return super().read(*args, **options)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Counted]:
    opened = Counted(EmbeddedStore(tmp_path / "store"))
    opened.create(BuiltWith(sparse=SPARSE.name, avg_len=SPARSE.avg_len))
    yield opened
    opened.close()


def piece(doc: str, ordinal: int, text: str, part: PagePart = PagePart.TEXT, **more: Any) -> ChunkPoint:
    name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{doc}/{ordinal}"))
    fields = {"doc_id": doc, "path": f"{doc}.md", "title": doc, "ordinal": ordinal, "part": part, **more}
    chunk = Chunk(chunk_id=name, text=text, **fields)
    return ChunkPoint(chunk=chunk, document_hash="h", source="s", sparse=SPARSE.encode_passage(text))


def find(store: OpenedStore, question: str, version: int = 0, filters: Filters | None = None) -> SearchResult:
    settings = load_settings()
    first, rest = split(settings.strategies["default"])
    query = Query(question, filters or Filters(), 10)
    kit = Tools(settings=settings, store=store, sparse=SPARSE, index_version=version)
    found = search(query, "default", first, kit, explain=True)
    found = continue_search(found, query, rest, Tools(settings=settings, reranker=reranker(settings)), explain=True)
    for hit in found.hits:
        assert sum(effect.effect for effect in hit.explain) == pytest.approx(hit.score)
    return found


def texts(found: SearchResult) -> list[str]:
    return [hit.text for hit in found.hits]


def test_given_a_page_with_truth_when_another_chunk_is_found_then_its_truth_stands_right_behind(
    store: Counted,
) -> None:
    store.upsert([
        piece("斑马", 0, "草食动物，成群生活", PagePart.TRUTH),
        piece("斑马", 1, "2026-01-02 观察到条纹图案", PagePart.TIMELINE),
        piece("other", 0, "图案的织物"),
    ])  # fmt: skip

    found = find(store, "条纹图案")

    at = texts(found).index("2026-01-02 观察到条纹图案")
    assert texts(found)[at + 1] == "草食动物，成群生活"
    assert found.hits[at + 1].score == pytest.approx(0.999 * found.hits[at].score)


def test_given_several_truths_when_a_page_is_found_then_the_one_that_was_found_too_is_lifted(store: Counted) -> None:
    store.upsert([
        piece("page", 0, "what we hold about herds", PagePart.TRUTH),
        piece("page", 1, "zebra stripes, and much else besides that nobody asked for", PagePart.TRUTH),
        piece("page", 2, "zebra stripes"),
        piece("rival", 0, "zebra stripes again"),
    ])  # fmt: skip

    found = find(store, "zebra stripes")

    assert "what we hold about herds" not in texts(found)
    order = texts(found)
    assert order.index("zebra stripes, and much else besides that nobody asked for") == order.index("zebra stripes") + 1


def test_given_a_filter_when_truth_is_fetched_then_it_holds(store: Counted) -> None:
    store.upsert([
        piece("page", 0, "a truth without the tag", PagePart.TRUTH),
        piece("page", 1, "zebra", tags=("x",)),
    ])  # fmt: skip

    assert texts(find(store, "zebra", filters=Filters(tags=("x",)))) == ["zebra"]
    assert texts(find(store, "zebra")) == ["zebra", "a truth without the tag"]


def test_given_no_truth_in_the_collection_when_searched_again_then_the_store_is_not_asked(store: Counted) -> None:
    store.upsert([piece("page", 0, "zebra")])

    first = find(store, "zebra", version=7)
    assert next(trace.skipped for trace in first.stages if trace.stage == "truth") == "no page has compiled truth"
    assert (store.reads, store.lookups) == (1, 0)
    find(store, "zebra", version=7)
    assert (store.reads, store.lookups) == (1, 0)
    store.upsert([piece("page", 1, "the truth", PagePart.TRUTH), piece("other", 0, "giraffe")])
    assert texts(find(store, "zebra", version=8)) == ["zebra", "the truth"]
    assert (store.reads, store.lookups) == (2, 1)
    assert texts(find(store, "giraffe", version=8)) == ["giraffe"]
    assert (store.reads, store.lookups) == (2, 1), "its page has no truth: nothing is looked up"


def test_given_two_tenants_when_one_has_no_truth_then_that_is_not_said_of_the_other(store: Counted) -> None:
    other = OpenedStore(store.collection, "other")
    other.create(BuiltWith(sparse=SPARSE.name, avg_len=SPARSE.avg_len))
    other.upsert([piece("theirs", 0, "zebra")])
    store.upsert([piece("page", 0, "zebra"), piece("page", 1, "the truth", PagePart.TRUTH)])

    assert texts(find(other, "zebra", version=9)) == ["zebra"]
    assert texts(find(store, "zebra", version=9)) == ["zebra", "the truth"]
    assert texts(find(other, "zebra", version=9)) == ["zebra"]


def test_given_a_cut_when_the_truth_of_a_shown_page_stands_behind_it_then_it_takes_the_place_of_its_last_hit() -> None:
    def hit(name: str, doc: str, part: PagePart = PagePart.TEXT) -> Hit:
        return Hit(chunk_id=name, doc_id=doc, path=f"{doc}.md", title=doc, text=name, score=1, part=part)

    hits = [
        hit("a1", "a"),
        hit("b1", "b"),
        hit("a2", "a"),
        hit("at", "a", PagePart.TRUTH),
        hit("ct", "c", PagePart.TRUTH),
    ]

    assert [one.chunk_id for one in shown_hits(hits, 3)] == ["a1", "b1", "at"]
    assert [one.chunk_id for one in shown_hits(hits, 1)] == ["at"]
    assert [one.chunk_id for one in shown_hits(hits, 4)] == ["a1", "b1", "a2", "at"]
    assert [one.chunk_id for one in shown_hits(hits, 0)] == []


@pytest.mark.parametrize(
    ("detail", "scores"),
    [
        ("default", {"log": 1.0, "held": 0.9, "text": 0.5}),
        ("low", {"held": 1.0, "log": 0.9, "text": 0.5}),
        ("high", {"log": 1.0, "held": 0.9, "text": 0.5}),
    ],
)
def test_low_detail_puts_the_truth_before_the_timeline_of_its_page(detail: str, scores: dict[str, float]) -> None:
    found = ordered(detail, log=(1.0, PagePart.TIMELINE), held=(0.2, PagePart.TRUTH), text=(0.5, PagePart.TEXT))
    assert found == pytest.approx(scores)


@pytest.mark.parametrize(
    ("detail", "scores"),
    [
        ("default", {"held": 1.0, "text": 0.95, "log": 0.2}),
        ("low", {"held": 1.0, "text": 0.95, "log": 0.2}),
        ("high", {"log": 1.0, "held": 0.9, "text": 0.81}),
    ],
)
def test_high_detail_puts_the_timeline_before_the_truth_of_its_page(detail: str, scores: dict[str, float]) -> None:
    found = ordered(detail, held=(1.0, PagePart.TRUTH), text=(0.95, PagePart.TEXT), log=(0.2, PagePart.TIMELINE))
    assert found == pytest.approx(scores)


def test_high_detail_keeps_timeline_and_truth_behind_text_that_is_better() -> None:
    found = ordered("high", text=(1.0, PagePart.TEXT), held=(0.3, PagePart.TRUTH), log=(0.2, PagePart.TIMELINE))
    assert found == pytest.approx({"text": 1.0, "log": 0.9, "held": 0.81})


def ordered(detail: str, **parts: tuple[float, PagePart]) -> dict[str, float]:
    """The scores of one page's chunks behind the stage, best first; share 0.9."""
    candidates = []
    for name, (score, part) in parts.items():
        hit = Hit(chunk_id=name, doc_id="page", path="page.md", title="page", text=name, score=score, part=part)
        candidates.append(Candidate(hit, 0.0).plus("search", score))
    state = SearchState(Query("q", Filters(), 5), candidates=tuple(candidates))
    options = TruthStage.model_validate({"share": 0.9, "detail": detail})
    found = truth(state, options, Tools(settings=load_settings()))
    assert all(sum(e.effect for e in c.effects) == pytest.approx(c.score) for c in found.candidates)
    assert [c.score for c in found.candidates] == sorted((c.score for c in found.candidates), reverse=True)
    return {c.hit.chunk_id: c.score for c in found.candidates}


@pytest.mark.parametrize(
    ("question", "detail"),
    [
        ("Who is Ada Lovelace?", "low"),
        ("什么是预写日志？", "low"),
        ("When did we last restore the orders database?", "high"),
        ("公司什么时候成立的？", "high"),
        ("flush interval of the log", "default"),
    ],
)
def test_the_detail_is_what_the_question_is_after(question: str, detail: str) -> None:
    assert route_by_rules(question).intent.detail == detail


def test_given_a_question_of_when_then_the_timeline_that_fits_it_is_fetched_and_leads(store: Counted) -> None:
    store.upsert([
        piece("page", 0, "the orders database holds all orders", PagePart.TRUTH),
        piece("page", 1, "2026-01-02 moved to another host", PagePart.TIMELINE),
        piece("page", 2, "2026-03-02 restored within an hour", PagePart.TIMELINE),
        piece("plain", 0, "nothing held"),
    ])  # fmt: skip

    assert texts(find(store, "what holds orders database"))[:1] == ["the orders database holds all orders"]
    found = find(store, "When was the orders database last restored?")

    at = texts(found).index("2026-03-02 restored within an hour")
    assert texts(found)[at + 1] == "the orders database holds all orders"
