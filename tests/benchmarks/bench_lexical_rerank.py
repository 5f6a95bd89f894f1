"""nDCG@10 of the lexical reranker against no rerank, over BM25's own top 50 and, if asked, over hybrid ones.

Run: pytest -m benchmark -s tests/benchmarks/bench_lexical_rerank.py
With RAMIFY_TEST_BENCH_HYBRID=1 the English sets are searched by BM25 and MiniLM too (about 8 CPU minutes more).
"""

from __future__ import annotations

import gzip
import json
import math
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from qdrant_edge import Bm25, Bm25Config, TokenizerType

from shared.models import Hit
from shared.providers.rerankers.lexical import LexicalReranker

SHARED = Path(__file__).parents[2] / "../shared"
CHINESE = {"cmrc2018", "t2ranking_mini"}
SETS = ("musique", "2wiki", "hotpotqa", "scifact", "cmrc2018", "t2ranking_mini")
CANDIDATES, DEEP, RRF_K = 50, 100, 60
WORSE_AT_MOST = 0.2

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not (SHARED / "eval").is_dir(), reason="the evaluation sets are not beside the project"),
]
Ranked = list[tuple[int, float]]


@dataclass
class EvalSet:
    corpus: list[dict[str, str]]
    queries: list[dict[str, str]]
    grades: dict[str, dict[str, int]]


def read_set(name: str) -> EvalSet:
    folder = SHARED / "eval" / name

    def lines(file: str) -> list[str]:
        with gzip.open(folder / file, "rt", encoding="utf-8") as stream:
            return stream.read().splitlines()

    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for line in lines("qrels.tsv.gz")[1:]:
        query, chunk, grade = line.split("\t")
        grades[query][chunk] = int(grade)
    return EvalSet(
        [json.loads(line) for line in lines("corpus.jsonl.gz")],
        [json.loads(line) for line in lines("queries.jsonl.gz")],
        grades,
    )


def bm25(data: EvalSet, *, chinese: bool) -> list[Ranked]:
    """Exact BM25 over the whole set: Qdrant's weights with `avg_len` fitted, and its IDF."""
    tokenizer = TokenizerType.Multilingual if chinese else TokenizerType.Word
    texts = [f"{entry['title']}\n{entry['text']}" for entry in data.corpus]
    # With b = 0 and a huge k a weight is the term's count, so the sum is the length in tokens.
    counter = Bm25(Bm25Config(k=1e6, b=0.0, avg_len=1.0, tokenizer=tokenizer, ascii_folding=True))
    avg_len = sum(sum(counter.embed_document(text).values) for text in texts) / len(texts)
    encoder = Bm25(Bm25Config(avg_len=avg_len, tokenizer=tokenizer, ascii_folding=True))
    postings: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for at, text in enumerate(texts):
        vector = encoder.embed_document(text)
        for index, value in zip(vector.indices, vector.values, strict=True):
            postings[index].append((at, value))
    found = []
    for query in data.queries:
        scores: dict[int, float] = defaultdict(float)
        for index in encoder.embed_query(query["text"]).indices:
            having = postings.get(index, [])
            idf = math.log(1 + (len(texts) - len(having) + 0.5) / (len(having) + 0.5))
            for at, value in having:
                scores[at] += idf * value
        found.append(best(scores.items()))
    return found


def dense(data: EvalSet) -> list[Ranked]:
    fastembed = pytest.importorskip("fastembed")
    from fastembed.common.model_description import ModelSource, PoolingType

    name = "bench/all-MiniLM-L6-v2-int8"
    if name not in {entry["model"] for entry in fastembed.TextEmbedding.list_supported_models()}:
        fastembed.TextEmbedding.add_custom_model(
            name, pooling=PoolingType.MEAN, normalization=True, sources=ModelSource(hf=name), dim=384,
            model_file="model.onnx",
        )  # fmt: skip
    folder = SHARED / "models" / "all-MiniLM-L6-v2-int8"
    model = fastembed.TextEmbedding(name, specific_model_path=str(folder), threads=1)
    texts = [f"{entry['title']}\n{entry['text']}"[:1200] for entry in data.corpus]
    passages = np.array(list(model.embed(texts, batch_size=1)))
    queries = np.array(list(model.embed([query["text"] for query in data.queries], batch_size=1)))
    return [best(enumerate(map(float, row))) for row in queries @ passages.T]


def rrf(*arms: Ranked) -> Ranked:
    scores: dict[int, float] = defaultdict(float)
    for arm in arms:
        for rank, (at, _) in enumerate(arm, start=1):
            scores[at] += 1 / (RRF_K + rank)
    return best(scores.items())


def best(scores: Iterable[tuple[int, float]]) -> Ranked:
    return sorted(scores, key=lambda pair: (-pair[1], pair[0]))[:DEEP]


def ndcg(ids: list[str], grades: dict[str, int]) -> float:
    def gain(sequence: Iterable[int]) -> float:
        return sum((2**grade - 1) / math.log2(at + 2) for at, grade in enumerate(list(sequence)[:10]))

    return 100 * gain(grades.get(one, 0) for one in ids) / gain(sorted(grades.values(), reverse=True))


def measured(data: EvalSet, found: list[Ranked]) -> tuple[float, float]:
    """Mean nDCG@10 in percent: as found, and reranked."""
    reranker = LexicalReranker()
    before, after = [], []
    for query, ranked in zip(data.queries, found, strict=True):
        hits = [
            Hit(
                chunk_id=entry["id"], doc_id=entry["id"], path="", title=entry["title"], text=entry["text"], score=score
            )
            for entry, score in ((data.corpus[at], score) for at, score in ranked[:CANDIDATES])
        ]
        grades = data.grades[query["id"]]
        before.append(ndcg([hit.chunk_id for hit in hits], grades))
        reranked = reranker.rerank(query["text"], hits, timeout_s=10)
        after.append(ndcg([hit.chunk_id for hit in reranked.hits], grades))
    return sum(before) / len(before), sum(after) / len(after)


def test_lexical_rerank_is_better_than_none_on_most_sets_and_worse_on_no_set() -> None:
    rows = []
    for name in SETS:
        data = read_set(name)
        lexical = bm25(data, chinese=name in CHINESE)
        rows.append((name, "bm25", *measured(data, lexical)))
        if os.environ.get("RAMIFY_TEST_BENCH_HYBRID") and name not in CHINESE:
            hybrid = [rrf(*arms) for arms in zip(lexical, dense(data), strict=True)]
            rows.append((name, "hybrid", *measured(data, hybrid)))
    print(f"\n{'set':15} {'candidates':10} {'none':>6} {'lexical':>8} {'gain':>6}")
    for name, kind, none, reranked in rows:
        print(f"{name:15} {kind:10} {none:6.1f} {reranked:8.1f} {reranked - none:+6.1f}")
    gains = [reranked - none for _, _, none, reranked in rows]
    assert min(gains) >= -WORSE_AT_MOST
    assert sum(gain > 0 for gain in gains) > len(gains) / 2
