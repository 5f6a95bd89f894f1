"""How much a search adds to the bare store call: ratios side by side in one run, on an embedded store.

Run: python -m pytest -m benchmark -s tests/benchmarks/bench_search_latency.py
RAMIFY_TEST_BENCH_CHUNKS sets the number of chunks (default 20,000; 100,000 takes a few minutes).
"""

from __future__ import annotations

import os
import random
import statistics
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shared.models import Chunk, Filters
from shared.providers.encoders import Bm25Encoder, SparseVector
from shared.providers.encoders.base import Embedded
from shared.settings import load_settings
from shared.settings.strategies import split
from shared.store import BuiltWith, ChunkPoint
from tests.fakes.stores import embedded
from workers.search.engine import run, search
from workers.search.stages import arms
from workers.search.state import Query, SearchState, Tools

pytestmark = pytest.mark.benchmark
CHUNKS = int(os.environ.get("RAMIFY_TEST_BENCH_CHUNKS", "20000"))
DIM, QUESTIONS, ROUNDS = 384, 40, 5
WORDS = [f"{a}{b}{c}" for a in ("ka", "lo", "mi", "ter", "sun") for b in ("ba", "re", "no", "di") for c in range(400)]


class Fixed:
    """A dense encoder whose vectors cost nothing: the model's time is not the engine's."""

    name, dim = "multilingual-fixed", DIM

    def __init__(self) -> None:
        self.vectors: dict[str, tuple[float, ...]] = {}

    def embed(self, texts: list[str], tenant: str) -> Embedded:
        return Embedded(vectors=tuple(self.vectors[text] for text in texts))


def test_search_beside_the_bare_store_call(tmp_path: Path) -> None:
    rng, random_state = random.Random(7), np.random.default_rng(7)
    encoder, dense = Bm25Encoder(60.0), Fixed()
    store = embedded(tmp_path / "store")
    store.create(BuiltWith(sparse=encoder.name, avg_len=60.0, dense=dense.name, dim=DIM))
    for start in range(0, CHUNKS, 1000):
        vectors = random_state.standard_normal((1000, DIM)).astype(np.float32)
        store.upsert([_point(start + n, _text(rng), encoder, vector) for n, vector in enumerate(vectors)])
    store.optimize()
    questions = [" ".join(_zipf(rng) for _ in range(8)) for _ in range(QUESTIONS)]
    for question in questions:
        dense.vectors[question] = tuple(float(x) for x in random_state.standard_normal(DIM))
    settings = load_settings()
    stages, _ = split(settings.strategies["default"])
    tools = Tools(settings=settings, store=store, sparse=encoder, dense=dense, embed=dense.embed)  # type: ignore[arg-type]

    def bare(question: str) -> None:
        store.query(requests[question])

    def whole(question: str) -> None:
        search(Query(question, Filters(), 50), "default", stages, tools)

    armed = tuple(stage for stage in stages if stage.stage in {"lexical", "dense"})
    states = {question: run(armed, SearchState(Query(question, Filters(), 50)), tools) for question in questions}
    requests = {question: [arm.request for arm in state.arms] for question, state in states.items()}
    times = _side_by_side(questions, {"bare": bare, "search": whole})
    store.close()

    bare_50, bare_95 = times["bare"]
    search_50, search_95 = times["search"]
    print(
        f"\n{CHUNKS} chunks, hybrid, 2 x 100 hits: bare p50 {bare_50:.2f} ms, p95 {bare_95:.2f}; "
        f"search p50 {search_50:.2f} ms ({search_50 / bare_50:.2f}x), p95 {search_95:.2f} ({search_95 / bare_95:.2f}x)"
    )
    assert arms.NO_DENSE not in states[questions[0]].warnings
    assert search_50 < 2 * bare_50
    assert search_95 < 4 * bare_95


def _side_by_side(questions: list[str], calls: dict[str, Callable[[str], None]]) -> dict[str, tuple[float, float]]:
    """(p50, p95) in ms of each call, taken turn by turn so that noise hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(ROUNDS + 1):
        for question in questions:
            for name, call in calls.items():
                begun = time.perf_counter()
                call(question)
                if turn:  # the first round warms up
                    times[name].append((time.perf_counter() - begun) * 1000)
    return {name: (statistics.median(found), statistics.quantiles(found, n=20)[18]) for name, found in times.items()}


def _zipf(rng: random.Random) -> str:
    return WORDS[min(len(WORDS) - 1, int(rng.paretovariate(0.6)))]


def _text(rng: random.Random) -> str:
    return " ".join(_zipf(rng) for _ in range(60))


def _point(number: int, text: str, encoder: Bm25Encoder, vector: np.ndarray) -> ChunkPoint:
    chunk = Chunk(
        chunk_id=str(uuid.UUID(int=number + 1)),
        doc_id=f"d{number // 4}",
        path=f"notes/{number // 4}.md",
        title=f"Note {number // 4}",
        text=text,
        ordinal=number % 4,
    )
    sparse: SparseVector = encoder.encode_passage(text)
    return ChunkPoint(chunk=chunk, document_hash="h", source="s", sparse=sparse, dense=tuple(float(x) for x in vector))
