"""`python -m workers.direct`: the search pipeline in one process, without Redis and Celery, for evaluations.

Reads one JSON object a line on stdin and answers each with one line on stdout; logs go to stderr. First
{"open": {"folder", "corpus", "rebuild"}}, then {"question", "strategy", "limit", "subqueries"} until the end of input.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shared.encoders import Bm25Encoder
from shared.errors import InputError, RamifyError
from shared.models import ROOT_ID, Cost, DocumentStatus, Facet, Filters, LeafResult, LeafStatus, Node, RawDocument
from shared.rerankers import reranker
from shared.settings import Settings, load_settings
from workers.corpus import Corpus
from workers.index.pipeline import Indexer
from workers.merge.tree import apply_root_rerank, merge_tree, of_one_leaf
from workers.search.leaf import Ask, rerank_half, search_half
from workers.search.stages.rerank import spent
from workers.search.tools import Tools

_PIECE = 1_000_000
_TIMEOUT_S = 60.0
_DONE = "built.json"
#: Several chunks of a document are one document: so many more are merged than are wanted.
_CHUNKS_PER_DOCUMENT = 3


class Direct:
    """One corpus in one folder, asked question by question."""

    def __init__(self, settings: Settings, folder: Path, corpus: Path, *, rebuild: bool) -> None:
        if rebuild and folder.exists():
            shutil.rmtree(folder)
        self._settings = settings.model_copy(update={"data_dir": folder})
        self._folder, self._source = folder, corpus
        self._corpus = Corpus(self._settings)
        self._reranker = reranker(self._settings)

    def build(self) -> dict[str, Any]:
        """Index the corpus unless that was done before; prints progress lines on the way."""
        begun = time.perf_counter()
        mark = self._folder / _DONE
        built = not mark.exists()
        if built:
            documents = self._index()
            mark.write_text(json.dumps({"documents": documents}), encoding="utf-8")
        documents = json.loads(mark.read_text(encoding="utf-8"))["documents"]
        info = self._corpus.store().info()
        seconds = round(time.perf_counter() - begun, 2)
        return {"documents": documents, "chunks": info.points if info else 0, "built": built, "seconds": seconds}

    def _index(self) -> int:
        indexer = Indexer(self._corpus.store(), Bm25Encoder, self._corpus.dense(), self._settings)
        total, done, added = self._source.stat().st_size, 0, 0
        for offset, piece in _pieces(self._source):
            raw = RawDocument(
                source=str(self._source), path="corpus.jsonl", identity="corpus", suffix=".jsonl", content=piece,
                line_offset=offset,
            )  # fmt: skip
            outcomes, _ = indexer.index([raw])
            bad = next((out for out in outcomes if out.status is DocumentStatus.FAILED), None)
            if bad:
                raise InputError("corpus", str(self._source), bad.reason)
            added += len(outcomes)
            done += len(piece)
            _say({"progress": {"done": done, "total": max(done, total)}})
        indexer.finish()
        return added

    def ask(self, question: str, strategy: str, limit: int, subqueries: list[str]) -> dict[str, Any]:
        """One question through its leaves, the tree merge and the root rerank, as a job would go."""
        begun = time.perf_counter()
        texts = [question, *subqueries]
        nodes = {f"{ROOT_ID}.{n}": _node(n, text) for n, text in enumerate(texts)}
        limits = self._settings.multi_query
        chunks = _CHUNKS_PER_DOCUMENT * limit
        cost, leaves, warnings = Cost(), list[LeafResult](), list[str]()
        tools = Tools(settings=self._settings, reranker=self._reranker, timeout_s=_TIMEOUT_S)
        for node in nodes.values():
            ask = Ask(text=node.query, strategy=strategy, filters=Filters(), wanted=limits.candidates_per_query)
            first = search_half(ask, self._corpus, None, _TIMEOUT_S)
            found = rerank_half(ask, first, tools)
            cost += first.cost + found.cost
            warnings += found.warnings
            leaves.append(
                LeafResult(
                    node_id=node.id,
                    status=LeafStatus.DONE,
                    hits=found.hits[: chunks if node.facet is Facet.ORIGINAL else limits.top_n_per_leaf],
                    reranker=found.reranked_by,
                )
            )
        pool = merge_tree(leaves, nodes, limits, chunks)
        if not of_one_leaf(pool):
            ranked = self._reranker.rerank(question, pool.hits, _TIMEOUT_S)
            cost += spent(ranked)
            pool = apply_root_rerank(pool, ranked.hits, ranked.reranker)
        names = list(dict.fromkeys(hit.path.partition("#")[2] or hit.path for hit in pool.hits))[:limit]
        ms = round((time.perf_counter() - begun) * 1000, 3)
        return {"documents": names, "ms": ms, "cost": cost.model_dump(), "warnings": list(dict.fromkeys(warnings))}

    def close(self) -> None:
        """Let go of the store."""
        self._corpus.close()


def _node(number: int, text: str) -> Node:
    facet = Facet.CORE if number else Facet.ORIGINAL
    return Node(id=f"{ROOT_ID}.{number}", parent_id=ROOT_ID, level=1, facet=facet, query=text)


def _pieces(corpus: Path) -> Iterator[tuple[int, bytes]]:
    """(lines before, whole lines) of a JSON Lines file, packed or not."""
    with gzip.open(corpus, "rb") if corpus.suffix == ".gz" else corpus.open("rb") as handle:
        before = 0
        while lines := handle.readlines(_PIECE):
            yield before, b"".join(lines)
            before += len(lines)


def _answer(direct: Direct, request: Mapping[str, Any]) -> dict[str, Any]:
    strategy = request.get("strategy") or direct._settings.search.strategy  # noqa: SLF001 - of this file
    return direct.ask(request["question"], strategy, int(request.get("limit", 20)), list(request.get("subqueries", ())))


def _say(answer: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Answer line by line; a question that fails is told and does not end the process."""
    direct: Direct | None = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if "open" in request:
                wanted = request["open"]
                folder, corpus = Path(wanted["folder"]), Path(wanted["corpus"])
                direct = Direct(load_settings(), folder, corpus, rebuild=bool(wanted.get("rebuild")))
                _say({"opened": direct.build()})
            elif direct is None:
                _say({"error": "open a corpus first"})
            else:
                _say(_answer(direct, request))
        except (RamifyError, OSError, KeyError, ValueError) as error:
            reason = str(error) if isinstance(error, RamifyError) else f"{type(error).__name__}: {error}"
            _say({"error": reason, "bad_input": isinstance(error, InputError)})
    if direct is not None:
        direct.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
