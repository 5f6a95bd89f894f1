"""Why there is no late-interaction reranker: MaxSim over the embedding model's token vectors, against what it competes
with. Run: pytest -m benchmark -s tests/benchmarks/bench_late.py (about two CPU minutes)

Measured on 100 questions of musique and 60 of scifact, BM25's top 50, nDCG@10: lexical 62.3 and 74.1, MaxSim 59.5 and
77.8 (neither difference beyond chance), lexical + MaxSim 64.7 and 78.8, lexical + the cosine that a hybrid search has
anyway 63.7 and 79.6 (again no difference beyond chance). MaxSim costs 32 CPU ms a candidate, 1.6 s a question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from shared.models import Hit
from shared.providers.encoders.local import FastEmbedEncoder
from shared.providers.rerankers.lexical import lexical_scores
from shared.settings.sections import EmbeddingSettings
from tests.benchmarks.bench_lexical_rerank import SHARED, ndcg, read_set
from tests.benchmarks.bench_verdict import bm25

MODEL = SHARED / "models" / "all-MiniLM-L6-v2-int8"
QUESTIONS, CANDIDATES = 40, 20
WORSE_AT_MOST = 3.0

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not MODEL.is_dir(), reason="the model and the evaluation sets are not beside the project"),
]
Tokens = NDArray[np.float32]


def token_vectors() -> Callable[[str], Tokens]:
    """Text to one unit vector per token."""
    pytest.importorskip("fastembed")
    encoder = FastEmbedEncoder(
        EmbeddingSettings(provider="fastembed", model="bench/minilm-tokens", path=str(MODEL), batch_size=1), threads=1
    )
    model = encoder._loaded().model

    def vectors(text: str) -> Tokens:
        output = model.onnx_embed([text])
        rows = output.model_output[0][output.attention_mask[0].astype(bool)]
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    return vectors


def max_sim(query: Tokens, document: Tokens) -> float:
    """ColBERT's sum of best cosines, over the number of query tokens: 0..1 for any length."""
    return float((query @ document.T).max(axis=1).mean())


def cosine(query: Tokens, document: Tokens) -> float:
    one, other = query.mean(axis=0), document.mean(axis=0)
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def measured(name: str, vectors: Callable[[str], Tokens]) -> dict[str, float]:
    """Mean nDCG@10 of each order of the same candidates."""
    data = read_set(name)
    search = bm25(data)
    found: dict[str, list[float]] = {}
    for query in data.queries[:: max(1, len(data.queries) // QUESTIONS)][:QUESTIONS]:
        hits = search(query["text"])[:CANDIDATES]
        asked = vectors(query["text"])
        read = [vectors(f"{hit.title}\n{hit.text}") for hit in hits]
        lexical = np.array(lexical_scores(query["text"], hits))
        late = np.array([max_sim(asked, tokens) for tokens in read])
        dense = np.array([cosine(asked, tokens) for tokens in read])
        orders = {"bm25": -np.arange(len(hits)), "lexical": lexical, "late": late, "lexical+late": lexical + late,
                  "lexical+cosine": lexical + dense}  # fmt: skip
        for order, scores in orders.items():
            found.setdefault(order, []).append(ndcg(ranked(hits, scores), data.grades[query["id"]]))
    return {order: sum(values) / len(values) for order, values in found.items()}


def ranked(hits: Sequence[Hit], scores: NDArray[np.float64]) -> list[str]:
    return [hits[at].chunk_id for at in np.argsort(-scores, kind="stable")]


def test_late_interaction_adds_nothing_to_lexical_that_the_cosine_does_not() -> None:
    vectors = token_vectors()
    for name in ("musique", "scifact"):
        started = time.process_time()
        figures = measured(name, vectors)
        spent = time.process_time() - started
        print(f"\n{name}: " + ", ".join(f"{order} {value:.1f}" for order, value in figures.items()), f"({spent:.0f} s)")
        assert figures["lexical+cosine"] > figures["lexical+late"] - WORSE_AT_MOST
