"""`python -m tests.cluster.qdrant_stand_in HOST PORT`: a Qdrant server of Python, for hosts where there is none.

The calls of `shared.store.server` over REST, answered by qdrant-client's local mode, in memory. No payload indexes.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from pydantic import TypeAdapter
from pydantic_core import to_json
from qdrant_client import QdrantClient, models
from qdrant_client.local import sparse_distances

_SELECTOR: TypeAdapter[Any] = TypeAdapter(models.PointsSelector)
_OPERATIONS: TypeAdapter[Any] = TypeAdapter(list[models.UpdateOperation])
_PATH = re.compile(r"/collections(?:/(?P<name>[^/]+)(?P<rest>/.*)?)?")
_READS = ("/query/batch", "/scroll", "/count", "/facet")


class SparseProducts:
    """Products of sparse vectors, thirty times as fast as local mode's own: what was stored is read once."""

    def __init__(self) -> None:
        self._read = dict[int, tuple[Any, dict[int, float]]]()

    def product(self, query: Any, stored: Any) -> Any:
        """None where they have nothing in common."""
        kept, values = self._read.get(id(stored), (None, {}))
        if kept is not stored:
            values = dict(zip(stored.indices, stored.values, strict=True))
            self._read[id(stored)] = stored, values
        found = [
            value * values[index] for index, value in zip(query.indices, query.values, strict=True) if index in values
        ]
        return np.float32(sum(found)) if found else None


class StandIn:
    """One client for all connections: local mode is made for one thread."""

    def __init__(self) -> None:
        sparse_distances.sparse_dot_product = SparseProducts().product
        self._client, self._lock = QdrantClient(":memory:"), threading.Lock()

    def answer(self, method: str, name: str, rest: str, body: Any) -> Any:
        """The `result` of a call. Raises: KeyError for one that is not known here, ValueError as the client does."""
        with self._lock:
            if not name:
                return self._client.get_collections()
            if name == "aliases":
                actions = models.ChangeAliasesOperation.model_validate(body).actions
                return self._client.update_collection_aliases(actions)
            if rest in {"", "/exists", "/index"}:
                return self._collection(method + rest, name, body)
            if method == "POST" and (rest == "/points" or rest.endswith(_READS)):
                return self._read(method + rest, name, body)
            done = {"operation_id": 1, "status": "completed"}
            return [done] * changes if (changes := self._write(method + rest, name, body)) else done

    def _collection(self, call: str, name: str, body: Any) -> Any:
        if call == "GET/exists":
            return {"exists": self._client.collection_exists(name)}
        if call == "GET":
            return self._client.get_collection(name)
        if call == "PUT":
            wanted = models.CreateCollection.model_validate(body)
            return self._client.create_collection(
                name,
                vectors_config=wanted.vectors or {},
                sparse_vectors_config=wanted.sparse_vectors,
                metadata=wanted.metadata,
            )
        if call == "DELETE":
            return self._client.delete_collection(name)
        if call == "PATCH":
            return self._client.update_collection(name, metadata=body.get("metadata"))
        if call == "PUT/index":
            return {"operation_id": 1, "status": "completed"}
        raise KeyError(call)

    def _read(self, call: str, name: str, body: Any) -> Any:
        match call:
            case "POST/points/query/batch":
                asked = models.QueryRequestBatch.model_validate(body).searches
                return self._client.query_batch_points(name, asked)
            case "POST/points/scroll":
                page = models.ScrollRequest.model_validate(body)
                points, after = self._client.scroll(
                    name, page.filter, page.limit or 10, offset=page.offset,
                    with_payload=_given(page.with_payload, True), with_vectors=_given(page.with_vector, False),
                )  # fmt: skip
                return {"points": points, "next_page_offset": after}
            case "POST/points/count":
                return self._client.count(name, models.CountRequest.model_validate(body).filter)
            case "POST/facet":
                facet = models.FacetRequest.model_validate(body)
                return self._client.facet(name, facet.key, facet.filter, facet.limit or 10)
            case "POST/points":
                wanted = models.PointRequest.model_validate(body)
                payload, vectors = _given(wanted.with_payload, True), _given(wanted.with_vector, False)
                return self._client.retrieve(name, wanted.ids, payload, vectors)
            case _:
                raise KeyError(call)

    def _write(self, call: str, name: str, body: Any) -> int:
        """How many changes it was, of a list of them; 0 for one alone."""
        match call:
            case "POST/points/delete":
                self._client.delete(name, _SELECTOR.validate_python(body))
            case "PUT/points/vectors":
                self._client.update_vectors(name, models.UpdateVectors.model_validate(body).points)
            case "POST/points/vectors/delete":
                gone = models.DeleteVectors.model_validate(body)
                self._client.delete_vectors(name, gone.vector, models.PointIdsList(points=gone.points or []))
            case "POST/points/batch":
                operations = _OPERATIONS.validate_python(body["operations"])
                self._client.batch_update_points(name, operations)
                return len(operations)
            case "PUT/points":
                self._client.upsert(name, models.PointsList.model_validate(body).points)
            case _:
                raise KeyError(call)
        return 0


def _given(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def serve(host: str, port: int) -> None:
    """Never returns."""
    stand_in = StandIn()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
            status, said = 200, dict[str, Any]()
            try:
                found = _PATH.fullmatch(urlsplit(self.path).path)
                assert found, self.path
                said["result"] = stand_in.answer(self.command, found["name"] or "", found["rest"] or "", body)
            except Exception as error:  # noqa: BLE001 - whoever asks shall see it
                status, said["status"] = 400, {"error": f"{type(error).__name__}: {error}"}
            raw = to_json({"status": "ok", "time": 0.0, **said}, exclude_none=True)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - the base class's names

        def log_message(self, *_: object) -> None:
            """Its log is for errors."""

    ThreadingHTTPServer((host, port), Handler).serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
