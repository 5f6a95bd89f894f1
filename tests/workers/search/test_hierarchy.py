"""From directory to directory: where it starts, what it opens, when it stops. On the embedded store and real BM25."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import models
from rich.console import Console

from orchestrator.cli.render.answer import draw_stages
from shared.models import Chunk, Filters, Hit, SearchResult
from shared.providers.encoders import Embedded
from shared.providers.encoders.sparse import Bm25Encoder
from shared.settings import load_settings
from shared.settings import stages as s
from shared.settings.strategies import split
from shared.store import BuiltWith, ChunkPoint, ChunkStore
from tests.fakes.stores import open_store
from workers.index.directories import Directories
from workers.index.documents import chunk_id, document_id
from workers.index.encoding import KeywordEncoders
from workers.search.engine import search
from workers.search.stages.hierarchy import NO_NODES
from workers.search.state import Query, Tools

SPARSE = Bm25Encoder(20.0)
PAGES = {
    "n/en/caching/stampede.md": "A cache stampede: all requests miss the cache and compute the same value.",
    "n/en/caching/jitter.md": "Add jitter to the expiry of every key, so that they do not end together.",
    "n/en/garden/tomatoes.md": "Tomatoes want sun and water. Water them in the morning.",
    "n/zh/缓存/雪崩.md": "缓存雪崩：大量缓存同时过期，数据库压力骤增。",
    "n/zh/生活/番茄.md": "阳台种番茄，每天早上浇水。",
    "n/zh/生活/菜谱.md": "番茄炒蛋要先炒蛋。",
    "m/readme.md": "Nothing of note.",
}


class Dense:
    """Points one way for the words of caching, another way for the rest."""

    name, dim = "fake", 2

    def embed_queries(self, texts: Sequence[str]) -> Embedded:
        return self.embed_passages(texts)

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        near = ((1.0, 0.0) if "cache" in text.lower() or "缓存" in text else (0.0, 1.0) for text in texts)
        return Embedded(vectors=tuple(near), calls=1)


def stocked(folder: Path, dense: Dense | None, pages: dict[str, str], *, described: bool = True) -> ChunkStore:
    settings = load_settings(data_dir=folder)
    store = open_store(settings)
    store.create(
        BuiltWith(sparse=SPARSE.name, avg_len=SPARSE.avg_len, dense=dense and dense.name, dim=2 if dense else 0)
    )
    points = []
    for path, text in pages.items():
        namespace = "other" if path.startswith("m/") else "default"
        doc_id = document_id(path, namespace, "default")
        chunk = Chunk(
            chunk_id=chunk_id(doc_id, 0, text), doc_id=doc_id, path=path, title=Path(path).stem, text=text,
            namespace=namespace, kind="memory" if "garden" in path else "resource",
            date="2026-01-01" if "jitter" in path else None,
        )  # fmt: skip
        vector = dense.embed_passages([text]).vectors[0] if dense else ()
        points.append(
            ChunkPoint(chunk=chunk, document_hash=text, source="/s", sparse=SPARSE.encode_passage(text), dense=vector)
        )
    store.upsert(points)
    if described:
        for namespace in ("default", "other"):
            Directories(store, dense, settings).renew(namespace, lambda: KeywordEncoders(SPARSE, None))
    return store


@pytest.fixture(params=["bm25", "dense"])
def dense(request: pytest.FixtureRequest) -> Dense | None:
    return Dense() if request.param == "dense" else None


@pytest.fixture
def store(tmp_path: Path, dense: Dense | None) -> Iterator[ChunkStore]:
    opened = stocked(tmp_path, dense, PAGES)
    yield opened
    opened.close()


def ask(store: ChunkStore, question: str, dense: Dense | None = None, **more: Any) -> SearchResult:
    filters = Filters(**more.pop("filters", {}))
    stages, _ = split(load_settings().strategies["hierarchical"])
    stages = (s.HierarchyStage(**more), *stages[1:])
    settings = load_settings(embedding={"languages": ("en", "zh")})
    embed = (lambda texts, _: dense.embed_queries(texts)) if dense else None
    tools = Tools(settings=settings, store=store, sparse=SPARSE, dense=dense, embed=embed)
    return search(Query(question, filters, 5), "hierarchical", stages, tools, explain=True)


def paths(found: SearchResult) -> list[str]:
    return [hit.path for hit in found.hits]


@pytest.mark.parametrize(
    ("question", "path", "directory"),
    [
        ("What is a cache stampede?", "n/en/caching/stampede.md", "n/en/caching/"),
        ("缓存雪崩怎么办？", "n/zh/缓存/雪崩.md", "n/zh/缓存/"),
    ],
)
def test_given_a_question_when_searched_then_its_directory_is_opened_and_told(
    store: ChunkStore, dense: Dense | None, question: str, path: str, directory: str
) -> None:
    found = ask(store, question, dense)
    first = found.hits[0]
    assert first.path == path
    assert first.via is not None
    assert (first.via.how, first.via.bridge, first.via.hop) == ("directory", directory, 1)
    trace = found.stages[0]
    assert directory in [step.path for step in trace.trail]
    assert trace.stopped
    assert not any(hit.namespace.endswith(":dirs") for hit in found.hits), "directories lead, they do not answer"


def test_given_hits_when_explained_then_own_and_directory_sum_to_the_score(
    store: ChunkStore, dense: Dense | None
) -> None:
    found = ask(store, "cache stampede jitter", dense, alpha=0.7)
    assert len(found.hits) >= 2
    for hit in found.hits:
        assert [effect.stage for effect in hit.explain] == ["hierarchy", "hierarchy directory"]
        assert sum(effect.effect for effect in hit.explain) == pytest.approx(hit.score)
        assert hit.score == pytest.approx(0.7 * hit.parts["own"] + 0.3 * hit.parts["directory"])
        assert 0 <= hit.score <= 1


def test_given_a_word_that_only_a_neighbour_holds_when_searched_then_its_directory_lifts_the_answer(
    tmp_path: Path,
) -> None:
    pages = {
        "n/pool/sizing.md": "The pool has two threads for every core.",
        "n/pool/limits.md": "Connections close after seven seconds.",
        **{
            f"n/other/{name}.md": f"Connections close after {name} seconds."
            for name in ("two", "three", "four", "five")
        },
    }
    store = stocked(tmp_path, None, pages)
    question = "When does the pool close its connections?"
    stages, _ = split(load_settings().strategies["bm25_only"])
    tools = Tools(settings=load_settings(), store=store, sparse=SPARSE)
    plain = {hit.path: hit.score for hit in search(Query(question, Filters(), 9), "bm25_only", stages, tools).hits}
    assert plain["n/pool/limits.md"] == pytest.approx(plain["n/other/two.md"]), "its own words do not tell it apart"
    found = {hit.path: hit.score for hit in ask(store, question).hits}
    assert found["n/pool/limits.md"] > 1.2 * max(score for path, score in found.items() if path.startswith("n/other/"))
    store.close()


def test_given_a_deep_directory_when_searched_then_it_is_reached_through_those_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {"n/a/b/c/raft.md": "The raft consensus protocol.", "n/x/y/z.md": "Something else entirely."}
    store = stocked(tmp_path, None, pages)
    starts_only_at_the_top(store, monkeypatch)
    trail = ask(store, "raft consensus").stages[0].trail
    assert [(step.path, step.round) for step in trail] == [
        ("/", 1),
        ("n/", 2),
        ("n/a/", 3),
        ("n/a/b/", 4),
        ("n/a/b/c/", 5),
    ]
    for above, step in pairwise(trail):
        assert step.parent == above.score
        assert step.score == pytest.approx((step.own + above.score) / 2)
    store.close()


def starts_only_at_the_top(store: ChunkStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The global search finds nothing; the lookup of roots gives "/" alone."""
    real, looked = store.query, store.lookup
    calls: list[int] = []

    def query(requests: Sequence[models.QueryRequest]) -> list[list[Hit]]:
        calls.append(len(requests))
        return [[] for _ in requests] if len(calls) == 1 else real(requests)

    monkeypatch.setattr(store, "query", query)
    monkeypatch.setattr(store, "lookup", lambda *asked: [hit for hit in looked(*asked) if hit.path == "/"])


def test_given_filters_when_searched_then_they_hold_for_documents_and_bound_the_directories(
    store: ChunkStore, dense: Dense | None
) -> None:
    found = ask(store, "cache stampede water", dense, filters={"paths": ("n/en/garden/",)})
    assert paths(found) == ["n/en/garden/tomatoes.md"]
    assert {step.path for step in found.stages[0].trail} <= {"/", "n/", "n/en/", "n/en/garden/"}
    assert paths(ask(store, "cache stampede water", dense, filters={"kinds": ("memory",)})) == [
        "n/en/garden/tomatoes.md"
    ]
    late = ask(store, "cache expiry jitter", dense, filters={"after": date(2025, 1, 1)})
    assert paths(late) == ["n/en/caching/jitter.md"]


def test_given_another_namespace_when_searched_then_neither_documents_nor_directories_of_it_are_seen(
    store: ChunkStore, dense: Dense | None
) -> None:
    found = ask(store, "nothing of note: cache", dense, filters={"namespace": "other"})
    assert paths(found) == ["m/readme.md"]
    assert {step.path for step in found.stages[0].trail} <= {"/", "m/"}
    assert ask(store, "cache", dense, filters={"namespace": "third"}).hits == ()


def test_given_a_path_filter_on_a_file_when_searched_then_its_directory_is_opened(
    store: ChunkStore, dense: Dense | None
) -> None:
    found = ask(store, "tomatoes cache", dense, filters={"paths": ("n/en/caching/jit",)})
    assert set(paths(found)) <= {"n/en/caching/jitter.md"}


def test_given_a_high_threshold_when_searched_then_nothing_below_it_is_opened_or_returned(
    store: ChunkStore, dense: Dense | None
) -> None:
    found = ask(store, "cache stampede", dense, threshold=0.35)
    assert found.hits
    assert all(hit.score > 0.35 for hit in found.hits)
    assert all(step.score > 0.35 for step in found.stages[0].trail if step.parent is not None)
    assert ask(store, "cache stampede", dense, threshold=1.0).hits == ()


def test_given_few_rounds_when_searched_then_it_stops_and_says_so(store: ChunkStore, dense: Dense | None) -> None:
    trace = ask(store, "cache water 缓存 番茄", dense, rounds=1, beam=1, threshold=0.0).stages[0]
    assert len(trace.trail) == 1
    assert trace.stopped == "1 rounds were made"


def test_given_no_reranker_when_searched_then_scores_are_those_of_the_search(
    store: ChunkStore, dense: Dense | None
) -> None:
    found = ask(store, "What is a cache stampede?", dense, rerank="none")
    assert found.hits[0].path == "n/en/caching/stampede.md"


def test_given_a_corpus_without_nodes_when_searched_then_all_of_it_is_searched_with_a_warning(tmp_path: Path) -> None:
    store = stocked(tmp_path, None, PAGES, described=False)
    found = ask(store, "cache stampede")
    assert paths(found)[0] == "n/en/caching/stampede.md"
    assert found.warnings == (NO_NODES,)
    assert sum(effect.effect for effect in found.hits[0].explain) == pytest.approx(found.hits[0].score)
    store.close()


def test_given_words_that_nothing_holds_when_searched_then_nothing_is_found(store: ChunkStore) -> None:
    assert ask(store, "quantum chromodynamics").hits == ()


def test_given_a_trail_when_drawn_then_directories_and_the_reason_to_stop_are_shown(store: ChunkStore) -> None:
    console = Console(width=120, record=True, file=StringIO())
    console.print(draw_stages(ask(store, "What is a cache stampede?").stages))
    text = console.export_text()
    assert "hierarchy: directories in the order of opening" in text
    assert "n/en/caching/" in text
    assert "stopped: " in text
