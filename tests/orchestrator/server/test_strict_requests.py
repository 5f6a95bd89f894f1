"""What every route has in common: it refuses unknown parameters, packed bodies and ids of another kind."""

from __future__ import annotations

import json
import re

import pytest
from fastapi.testclient import TestClient

from orchestrator.client import Ramify
from orchestrator.operations.operation import HttpRoute
from orchestrator.operations.registry import OPERATIONS
from shared.jobs import JobStore, new_id
from shared.models import JobRequest
from shared.models.ingest import HandedOver, IngestRequest
from tests.fakes.walked_jobs import WalkedJob

ROUTES = [route for one in OPERATIONS.values() for route in one.routes]
#: Routes of things that are found by an id of their own.
BY_ID = [route for route in ROUTES if re.search(r"/\{(id|job|left|right|other)\}", route.path)]


def _asked(http: TestClient, route: HttpRoute, path: str) -> tuple[int, str]:
    given = {"json": {}} if route.method == "POST" else {}
    answer = http.request(route.method, path, **given)
    detail = answer.json().get("detail", "") if answer.status_code >= 400 else ""
    return answer.status_code, detail


def test_an_unknown_parameter_is_refused_by_every_route(http: TestClient) -> None:
    for route in ROUTES:
        path = re.sub(r"\{[^}]*\}", "x", route.path)
        given = {"json": {}} if route.method == "POST" else {}
        answer = http.request(route.method, f"{path}?bogus=1", **given)
        chat = path.startswith(("/v1/chat", "/v1/models"))
        assert answer.status_code == (400 if chat else 422), (route, answer.text)
        assert "bogus" in answer.text
        assert "there is no such parameter" in answer.text, (route, answer.text)
    assert "there are limit" in http.get("/v1/batches?bogus=1").json()["fix"]
    assert http.get("/healthz?bogus=1").status_code == 422


def test_an_id_of_another_kind_is_not_found_or_in_conflict_on_every_route(
    http: TestClient, ramify: Ramify, store: JobStore
) -> None:
    ingest, documents = new_id(), IngestRequest(by=HandedOver.DOCUMENTS, sources=("notes",))
    store.enqueue([(ingest, JobRequest(question="ingest", ingest=documents))])
    batch = http.post("/v1/batches", json=["who?"]).json()["batch_id"]
    question, done = ramify.submit("why?"), ramify.submit("why so?")
    assert WalkedJob(store, done).to("summarising").done()
    ids = [question, done, batch, ingest, "none"]
    for route in BY_ID:
        for own in ids:
            if route.path.endswith("/events"):
                continue  # a stream without an end, of an id that is its own
            status, detail = _asked(http, route, re.sub(r"\{[^}]*\}", own, route.path))
            assert status in {200, 202, 404, 409, 422}, (route, own, detail)
            assert status < 400 or " " in detail, (route, own)
    found = http.get(f"/v1/ingests/{question}")
    assert (found.status_code, f"job {question} is a question" in found.json()["detail"]) == (409, True)


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate"])
def test_a_packed_body_is_refused_where_it_is_not_unpacked(http: TestClient, encoding: str) -> None:
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
    refused = http.post("/v1/jobs", content=b'{"question": "why?"}', headers=headers)
    assert (refused.status_code, "Content-Encoding" in refused.json()["detail"]) == (415, True)
    plain = http.post("/v1/jobs", json={"question": "why?"}, headers={"Content-Encoding": "identity"})
    assert plain.status_code == 202


def test_head_is_answered_where_balancers_look(http: TestClient) -> None:
    for path in ("/healthz", "/readyz", "/"):
        found = http.head(path)
        assert (found.status_code, found.content) == (200, b"")


def test_a_line_of_a_batch_is_named_by_one_word(http: TestClient) -> None:
    batch = http.post("/v1/batches", json=["who?"]).json()["batch_id"]
    for kind in ("lines", "report"):
        (line,) = http.get(f"/v1/batches/{batch}/{kind}").text.splitlines()
        assert json.loads(line).get("line") == 1, line


@pytest.mark.parametrize(
    ("path", "body", "field", "fix"),
    [
        ("/v1/jobs", {}, "question", "it is missing: give it"),
        ("/v1/jobs", {"question": "why?", "mod": 1}, "mod", "there is no such field: leave it out"),
        ("/v1/jobs", {"question": "why?", "filters": {"namespace": "a b"}}, "filters.namespace", "use 1 to 64 letters"),
        ("/v1/ingests", {"documents": []}, "documents", "give at least 1"),
    ],
)
def test_a_fix_says_what_to_do(http: TestClient, path: str, body: dict[str, object], field: str, fix: str) -> None:
    found = http.post(path, json=body).json()
    assert (found["status"], found["field"]) == (422, field)
    assert found["fix"].startswith(fix)
    assert found["detail"].endswith(found["fix"])


def test_a_value_is_told_as_it_was_written(http: TestClient) -> None:
    assert http.get("/v1/jobs?limit=many").json()["value"] == "many"


def test_the_way_out_is_a_request_not_a_command(http: TestClient, ramify: Ramify, store: JobStore) -> None:
    job, ingest = ramify.submit("why?"), new_id()
    documents = IngestRequest(by=HandedOver.DOCUMENTS, sources=("notes",))
    store.enqueue([(ingest, JobRequest(question="ingest", ingest=documents))])
    for path, said in (
        (f"/v1/jobs/{job}/result", f"`GET /v1/jobs/{job}`"),
        ("/v1/jobs/none", "`GET /v1/jobs` lists them"),
        (f"/v1/jobs/{ingest}/result", f"`GET /v1/ingests/{ingest}`"),
        (f"/v1/ingests/{job}", f"`GET /v1/jobs/{job}/result`"),
        ("/v1/jobs/none/why", ""),
    ):
        told = http.get(path).json()
        assert said in told["detail"], told
        assert "`ramify " not in told["detail"] + told.get("fix", ""), told
