"""What a hop along the edges costs beside a plain hybrid search, in the same run, on an embedded store.

Run: python -m pytest -m benchmark -s tests/benchmarks/bench_hop.py
RAMIFY_TEST_BENCH_CHUNKS sets the number of definitions (default 6,000).
"""

from __future__ import annotations

import os
import random
import statistics
import time
import uuid
from pathlib import Path

import numpy as np
import pytest

from shared.models import Chunk, Filters
from shared.providers.encoders import Bm25Encoder
from shared.providers.encoders.base import Embedded
from shared.settings import load_settings
from shared.settings import stages as s
from shared.settings.strategies import split
from shared.store import BuiltWith, ChunkPoint
from tests.fakes.stores import embedded
from workers.search.engine import run, search
from workers.search.state import Query, SearchState, Tools

pytestmark = pytest.mark.benchmark
CHUNKS = int(os.environ.get("RAMIFY_TEST_BENCH_CHUNKS", "6000"))
DIM, QUESTIONS, ROUNDS, PER_FILE = 384, 20, 3, 12
WORDS = [f"{a}{b}{c}" for a in ("ka", "lo", "mi", "ter", "sun") for b in ("ba", "re", "no", "di") for c in range(200)]
#: Names that many files define, as real trees have them (run, get, close ...).
COMMON = [f"common{n}" for n in range(20)]


class Fixed:
    """A dense encoder whose vectors cost nothing: the model's time is not the engine's."""

    name, dim = "multilingual-fixed", DIM

    def __init__(self) -> None:
        self.vectors: dict[str, tuple[float, ...]] = {}

    def embed(self, texts: list[str], tenant: str) -> Embedded:
        return Embedded(vectors=tuple(self.vectors[text] for text in texts))


@pytest.mark.parametrize("with_vectors", [True, False], ids=["hybrid", "bm25"])
def test_a_hop_beside_a_plain_search(tmp_path: Path, with_vectors: bool) -> None:
    rng, noise = random.Random(7), np.random.default_rng(7)
    encoder, dense = Bm25Encoder(60.0), Fixed()
    store = embedded(tmp_path / "store")
    model = {"dense": dense.name, "dim": DIM} if with_vectors else {}
    store.create(BuiltWith(sparse=encoder.name, avg_len=60.0, **model))
    for start in range(0, CHUNKS, 1000):
        numbers = range(start, min(CHUNKS, start + 1000))
        store.upsert([_definition(n, rng, encoder, noise if with_vectors else None) for n in numbers])
    store.optimize()
    questions = [" ".join(rng.choice(WORDS) for _ in range(6)) for _ in range(QUESTIONS)]
    for question in questions:
        dense.vectors[question] = tuple(float(x) for x in noise.standard_normal(DIM))
    settings = load_settings()
    stages, _ = split(settings.strategies["hybrid"])
    more = {"dense": dense, "embed": dense.embed} if with_vectors else {}
    tools = Tools(settings=settings, store=store, sparse=encoder, **more)  # type: ignore[arg-type]

    plain: list[float] = []
    hops: dict[int, list[float]] = {1: [], 2: []}
    reached: dict[int, list[int]] = {1: [], 2: []}
    for turn in range(ROUNDS + 1):
        for question in questions:
            query = Query(question, Filters(), 50)
            begun = time.perf_counter()
            search(query, "hybrid", stages, tools)
            spent = time.perf_counter() - begun
            if turn:  # the first round warms up
                plain.append(spent * 1000)
            found = run(stages, SearchState(query), tools)
            for depth in (1, 2):
                begun = time.perf_counter()
                walked = run((s.EdgesStage(depth=depth),), found, tools)
                spent = time.perf_counter() - begun
                if turn:
                    hops[depth].append(spent * 1000)
                    reached[depth].append(sum(1 for candidate in walked.candidates if candidate.hit.via))
    store.close()

    base = statistics.median(plain)
    for depth, times in hops.items():
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[18]
        print(
            f"\n{CHUNKS} definitions, {'hybrid' if with_vectors else 'bm25'}, depth {depth}: plain search p50 "
            f"{base:.2f} ms; expansion p50 {p50:.2f} ms ({p50 / base:.2f}x), p95 {p95:.2f}; "
            f"{statistics.median(reached[depth]):.0f} neighbours"
        )
        assert statistics.median(reached[depth]) >= 10
        assert p50 < 3 * depth * base


def _definition(number: int, rng: random.Random, encoder: Bm25Encoder, noise: np.random.Generator | None) -> ChunkPoint:
    symbol = _symbol(number)
    parts = symbol.split(".")
    calls = [_symbol(min(CHUNKS - 1, int(rng.paretovariate(0.4)) - 1)) for _ in range(6)]  # a few are called by many
    text = " ".join(rng.choice(WORDS) for _ in range(60))
    chunk = Chunk(
        chunk_id=str(uuid.UUID(int=number + 1)),
        doc_id=f"d{number // PER_FILE}",
        path=f"{'/'.join(parts[:-1])}.py",
        title=".".join(parts[:-1]),
        text=text,
        ordinal=number % PER_FILE,
        part="code",
        symbol=symbol,
        defines=tuple(".".join(parts[at:]) for at in range(len(parts))),
        refs=tuple(dict.fromkeys([*calls, *rng.sample(COMMON, 4)])),
    )
    vector = tuple(float(x) for x in noise.standard_normal(DIM)) if noise else ()
    return ChunkPoint(
        chunk=chunk, document_hash="h", source="s", sparse=encoder.encode_passage(f"{symbol} {text}"), dense=vector
    )


def _symbol(number: int) -> str:
    name = COMMON[number // PER_FILE % len(COMMON)] if number % PER_FILE == 0 else f"f{number}"
    return f"pkg{number // 200}.mod{number // PER_FILE}.{name}"
