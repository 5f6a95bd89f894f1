"""Jobs over HTTP: taken, looked at, answered; and what is said where that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import Request
from fastapi.testclient import TestClient

from orchestrator.access.caller import Caller
from orchestrator.access.dependency import caller
from orchestrator.client import Ramify
from orchestrator.server.app import make_app
from shared.jobs import JobStore
from shared.models import JobStatus
from shared.models.told import FOR_OTHERS
from shared.settings import load_settings
from tests.fakes.walked_jobs import WalkedJob

PROBLEM = "application/problem+json"


def test_given_a_question_when_posted_then_its_job_is_taken_found_and_answered(http: TestClient, store: JobStore):
    taken = http.post("/v1/jobs", json={"question": "why?", "top_n": 3})
    assert taken.status_code == 202
    job_id = taken.json()["job_id"]
    assert taken.headers["location"] == f"/v1/jobs/{job_id}"
    status = http.get(taken.headers["location"])
    assert (status.status_code, status.json()["state"], status.json()["tenant"]) == (200, "queued", "default")
    early = http.get(f"/v1/jobs/{job_id}/result")
    assert (early.status_code, early.headers["content-type"], early.headers["retry-after"]) == (409, PROBLEM, "5")
    assert WalkedJob(store, job_id).to("summarising").done()
    assert http.get(f"/v1/jobs/{job_id}/result").json()["coverage"] == "3 of 3 leaves answered"


def test_given_an_idempotency_key_when_posted_twice_then_it_is_one_job(http: TestClient):
    key = {"Idempotency-Key": "a"}
    first, second = (http.post("/v1/jobs", json={"question": "why?"}, headers=key).json() for _ in range(2))
    assert first == second
    beside = http.post("/v1/jobs", json={"question": "why?", "idempotency_key": "a"}, headers=key)
    assert (beside.status_code, beside.json()) == (202, first)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ({"question": "what else?"}, [("Idempotency-Key", "a")]),
        ({"question": "why?", "top_n": 3}, [("Idempotency-Key", "a")]),
        ({"question": "why?", "idempotency_key": "b"}, [("Idempotency-Key", "a")]),
        ({"question": "why?"}, [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]),
    ],
)
def test_given_a_key_of_another_question_or_two_keys_when_posted_then_it_is_refused(
    http: TestClient, body: dict[str, object], headers: list[tuple[str, str]]
):
    http.post("/v1/jobs", json={"question": "why?"}, headers={"Idempotency-Key": "a"})
    refused = http.post("/v1/jobs", json=body, headers=headers)
    assert (refused.status_code, refused.json()["field"]) == (422, "Idempotency-Key")
    assert "another" in refused.json()["fix"] or "send one of the two" in refused.json()["fix"]
    in_body = http.post("/v1/jobs", json={"question": "what else?", "idempotency_key": "a"})
    assert (in_body.status_code, in_body.json()["field"]) == (422, "idempotency_key")
    assert len(http.get("/v1/jobs").json()["jobs"]) == 1


def test_given_what_cannot_be_taken_when_posted_then_the_problem_has_the_sentence_of_the_command_line(http: TestClient):
    refused = http.post("/v1/jobs", json={"question": "why?", "top_n": 0})
    assert (refused.status_code, refused.headers["content-type"]) == (422, PROBLEM)
    found = refused.json()
    assert found.pop("title").startswith("Unprocessable")  # the words are of Python's release
    assert found == {
        "type": "about:blank",
        "status": 422,
        "detail": "top_n: 0 cannot be used: input should be greater than or equal to 1",
        "field": "top_n",
        "value": "0",
        "fix": "input should be greater than or equal to 1",
    }
    for body in (
        {"question": "why?", "tenant": "other"},
        {"question": "why?", "ingest": {}},
        {"question": " "},
        {},
        [],
    ):
        assert http.post("/v1/jobs", json=body).status_code == 422
    broken = http.post("/v1/jobs", content=b"{", headers={"content-type": "application/json"})
    assert (broken.status_code, broken.headers["content-type"]) == (400, PROBLEM)
    deep = http.post("/v1/jobs", content=b"[" * 100_000, headers={"content-type": "application/json"})
    assert (deep.status_code, "nested too deeply" in deep.json()["detail"]) == (400, True)
    form = http.post("/v1/jobs", content=b'{"question": "why?"}')
    assert (form.status_code, form.headers["content-type"]) == (415, PROBLEM)
    unknown = http.post("/v1/jobs", json={"question": "why?", "strategy": "none"})
    assert unknown.json()["field"] == "strategy"


def test_given_ids_that_are_not_the_callers_when_asked_for_then_they_are_not_found(http: TestClient, ramify: Ramify):
    theirs = ramify.submit("why?", tenant="other")
    answers = [http.get(f"/v1/{kind}/{id_}") for kind in ("jobs", "batches") for id_ in (theirs, "none")]
    assert {(one.status_code, one.headers["content-type"]) for one in answers} == {(404, PROBLEM)}
    assert "there is no such job" in answers[0].json()["fix"]


def test_given_paths_methods_and_queries_that_there_are_not_then_each_is_a_problem(http: TestClient):
    for answer, status in (
        (http.get("/v1/nothing"), 404),
        (http.put("/v1/jobs"), 405),
        (http.get("/v1/jobs/abc/result?parcial=true"), 422),
    ):
        assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
        assert answer.json()["status"] == status
    assert "GET /v1/show?document=PATH" in http.get("/v1/documents/a%2Fb.md").json()["detail"]


def test_given_a_fault_that_nobody_foresaw_when_asked_then_nothing_of_the_inside_is_told(http: TestClient, monkeypatch):
    monkeypatch.setattr(Ramify, "status", lambda *_: 1 // 0)
    found = http.get("/v1/jobs/abc")
    assert (found.status_code, found.headers["content-type"]) == (500, PROBLEM)
    assert "ZeroDivision" not in found.text


def test_given_no_redis_when_asked_from_elsewhere_then_its_address_is_not_told(tmp_path: Path):
    app = make_app(load_settings(redis={"url": "redis://127.0.0.1:9/0"}, data_dir=tmp_path))

    async def far(request: Request) -> Caller:
        request.state.caller = Caller(remote=True)
        return request.state.caller

    with TestClient(app, raise_server_exceptions=False, base_url="http://127.0.0.1") as http:
        near = http.get("/v1/jobs/abc")
        app.dependency_overrides[caller] = far
        told = http.get("/v1/jobs/abc")
        assert http.get("/readyz").status_code == 503
    assert (near.status_code, told.status_code) == (503, 503)
    assert "127.0.0.1:9 does not answer" in near.json()["detail"]
    assert "127.0.0.1" not in told.text
    assert told.headers["retry-after"] == "5"


def test_given_an_ingest_when_its_job_is_told_elsewhere_then_folders_of_the_server_are_left_out():
    fields = {
        "job_id": "a",
        "state": "done",
        "lane": "interactive",
        "tenant": "t",
        "created_at": 1.0,
        "updated_at": 1.0,
    }
    status = JobStatus(question="ingest /home/ann/notes, /srv/wiki and 2 more", **fields)
    assert status.model_dump(mode="json")["question"] == status.question
    told = status.model_dump(mode="json", context=FOR_OTHERS)["question"]
    assert told == "ingest notes, wiki and 2 more"
    asked = JobStatus(question="Why TCP/IP, and how?", **fields)
    assert asked.model_dump(mode="json", context=FOR_OTHERS)["question"] == asked.question
