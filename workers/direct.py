"""`python -m workers.direct`: the search pipeline in one process, without Redis and Celery, for evaluations.

Reads one JSON object a line on stdin and answers each with one line on stdout; logs go to stderr. First
{"open": {"folder", "corpus", "rebuild"}}, then {"question", "strategy", "of_type", "limit", "subqueries"} until the end
of input. `strategy` is the request's own, `of_type` that of the question's type; a named symbol is read as in a job.
`subqueries` are texts or objects as in a job's request; those that depend on others run after them, bound as in a job.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shared import models
from shared.errors import InputError, RamifyError
from shared.providers.rerankers import reranker
from shared.settings import Settings, load_settings
from shared.settings.faults import request_fault
from shared.tenants import DEFAULT_TENANT
from workers.index.pipeline import Indexer
from workers.question_search import QuestionSearch, leaf_search
from workers.search.resources import SearchResources
from workers.search.state import Tools

_PIECE_BYTES = 1_000_000
_TIMEOUT_S = 60.0
_MARKER = "built.json"
#: Several chunks of a document are one document: so many more are merged than are wanted.
_CHUNKS_PER_DOCUMENT = 3
_MOST_RESULTS = 200


class DirectSearch:
    """One corpus in one folder, asked question by question."""

    def __init__(self, settings: Settings, folder: Path, corpus: Path, *, rebuild: bool) -> None:
        if rebuild and folder.exists():
            shutil.rmtree(folder)
        self.settings = settings.model_copy(update={"data_dir": folder})
        self._folder, self._source = folder, corpus
        self._resources = SearchResources(self.settings)
        llm = self._resources.llm()
        self._tools = Tools(settings=self.settings, reranker=reranker(self.settings), llm=llm, timeout_s=_TIMEOUT_S)

    def build(self) -> dict[str, Any]:
        """Index the corpus unless that was done before; prints progress lines on the way."""
        begun = time.perf_counter()
        marker = self._folder / _MARKER
        built = not marker.exists()
        if built:
            marker.write_text(json.dumps({"documents": self._index()}), encoding="utf-8")
        documents = json.loads(marker.read_text(encoding="utf-8"))["documents"]
        info = self._resources.store(DEFAULT_TENANT).info()
        seconds = round(time.perf_counter() - begun, 2)
        return {"documents": documents, "chunks": info.points if info else 0, "built": built, "seconds": seconds}

    def _index(self) -> int:
        indexer = Indexer(self._resources.store(DEFAULT_TENANT), self._resources.dense(), self.settings)
        total, done, added = self._source.stat().st_size, 0, 0
        for offset, piece in _pieces(self._source):
            raw = models.RawDocument(
                source=str(self._source), path="corpus.jsonl", identity="corpus", suffix=".jsonl", content=piece,
                line_offset=offset,
            )  # fmt: skip
            outcomes, _ = indexer.index([raw])
            failed = next((out for out in outcomes if out.status is models.DocumentStatus.FAILED), None)
            if failed:
                raise InputError("corpus", str(self._source), failed.reason)
            added += len(outcomes)
            done += len(piece)
            _write({"progress": {"done": done, "total": max(done, total)}})
        indexer.finish()
        indexer.optimize()
        return added

    def ask(self, request: models.JobRequest, of_type: str | None, limit: int) -> dict[str, Any]:
        """One question through its leaves, the tree merge and the root rerank, as in a job."""
        begun = time.perf_counter()
        search = QuestionSearch(
            leaf_search(self._resources, self._tools), self._tools, request, _CHUNKS_PER_DOCUMENT * limit
        )
        search.plan(_nodes(request.question, of_type, request.subqueries))
        pool = search.pool(self.settings.gaps.max_leaves if self.settings.gaps.enabled else 0)
        found = [(hit.path.partition("#")[2] or hit.path, hit.parts.get("rerank")) for hit in pool.hits]
        names = list(dict.fromkeys(name for name, _ in found))[:limit]
        relevance = {name: score for name, score in sorted(found, key=lambda one: one[1] or 0.0) if score is not None}
        ms = round((time.perf_counter() - begun) * 1000, 3)
        warnings = list(dict.fromkeys(search.warnings))
        told = {"documents": names, "relevance": relevance, "warnings": warnings}
        return {**told, "ms": ms, "cost": search.cost.model_dump()}

    def close(self) -> None:
        """Close the store and the LLM's connections."""
        self._resources.close()


def _nodes(question: str, strategy: str | None, plan: models.Plan) -> Iterator[models.Node]:
    """The question's own leaf, then one for each entry of the plan; `strategy` is that of the question's type."""
    place = {"parent_id": models.ROOT_ID, "level": 1, "strategy": strategy}
    original = {"id": f"{models.ROOT_ID}.0", "facet": models.Facet.ORIGINAL, "query": question}
    yield models.Node.model_validate({**place, **original})
    for number, entry in enumerate(plan, 1):
        waits = tuple(f"{models.ROOT_ID}.{other}" for other in entry.depends_on)
        own = {"id": f"{models.ROOT_ID}.{number}", "facet": entry.dimension, "query": entry.query, "depends_on": waits}
        yield models.Node.model_validate({**place, **own})


def _pieces(corpus: Path) -> Iterator[tuple[int, bytes]]:
    """(lines before, whole lines) of a JSON Lines file."""
    with corpus.open("rb") as handle:
        before = 0
        while lines := handle.readlines(_PIECE_BYTES):
            yield before, b"".join(lines)
            before += len(lines)


def _request(asked: Mapping[str, Any], limit: int) -> models.JobRequest:
    fields = {name: asked[name] for name in ("question", "strategy", "subqueries") if name in asked}
    try:
        return models.JobRequest(**fields, top_n=min(limit, _MOST_RESULTS))
    except ValidationError as error:
        raise request_fault(error) from None


def _write(answer: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Answer line by line; a question that fails gets an error line and does not end the process."""
    direct: DirectSearch | None = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if "open" in request:
                wanted = request["open"]
                folder, corpus = Path(wanted["folder"]), Path(wanted["corpus"])
                direct = DirectSearch(load_settings(), folder, corpus, rebuild=bool(wanted.get("rebuild")))
                _write({"opened": direct.build()})
            elif direct is None:
                _write({"error": "open a corpus first"})
            else:
                limit = int(request.get("limit", 20))
                _write(direct.ask(_request(request, limit), request.get("of_type"), limit))
        except (RamifyError, OSError, KeyError, ValueError) as error:
            reason = str(error) if isinstance(error, RamifyError) else f"{type(error).__name__}: {error}"
            _write({"error": reason, "bad_input": isinstance(error, InputError)})
    if direct is not None:
        direct.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
