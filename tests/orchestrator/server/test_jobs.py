"""Jobs over HTTP: taken, looked at, answered; and what is said where that cannot be."""

from __future__ import annotations

from fastapi.testclient import TestClient

from orchestrator.client import Ramify
from shared.jobs import JobStore
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
    other = http.post("/v1/jobs", json={"question": "why?", "idempotency_key": "b"}, headers=key)
    assert other.json() == first, "the header goes before the body"


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


def test_given_a_fault_that_nobody_foresaw_when_asked_then_nothing_of_the_inside_is_told(http: TestClient, monkeypatch):
    monkeypatch.setattr(Ramify, "status", lambda *_: 1 // 0)
    found = http.get("/v1/jobs/abc")
    assert (found.status_code, found.headers["content-type"]) == (500, PROBLEM)
    assert "ZeroDivision" not in found.text
