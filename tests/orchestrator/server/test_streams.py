"""Events and posted batches over HTTP: what goes over the wire, and what is refused."""

from __future__ import annotations

import gzip
import json

import pytest
import redis
from fastapi.testclient import TestClient

from orchestrator.client import Ramify
from shared.jobs import JobStore
from tests.fakes.walked_jobs import WalkedJob

PROBLEM = "application/problem+json"
LINES = {"content-type": "application/jsonl"}


def events(raw: str) -> list[dict[str, str]]:
    found = []
    for block in raw.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "event" in fields:
            found.append(fields)
    return found


@pytest.fixture
def ended(ramify: Ramify, store: JobStore) -> str:
    job_id = ramify.submit("why?")
    assert WalkedJob(store, job_id).to("summarising").done()
    return job_id


def test_an_ended_job_is_replayed_with_the_ids_of_redis(http: TestClient, client: redis.Redis, ended: str):
    answer = http.get(f"/v1/jobs/{ended}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert (answer.headers["cache-control"], answer.headers["x-accel-buffering"]) == ("no-cache", "no")
    found = events(answer.text)
    stored = [entry_id.decode() for entry_id, _ in client.xrange(f"ramify:{{{ended}}}:events")]
    assert [one["id"] for one in found if "id" in one] == stored
    assert (found[-2]["event"], json.loads(found[-2]["data"])["state"]) == ("state", "done")
    assert (found[-1]["event"], json.loads(found[-1]["data"])) == ("end", {"state": "done"})
    behind = http.get(f"/v1/jobs/{ended}/events", headers={"Last-Event-ID": stored[2]})
    assert [one["id"] for one in events(behind.text) if "id" in one] == stored[3:]
    assert http.get(f"/v1/jobs/{ended}/events?after={stored[2]}").text == behind.text


def test_a_browser_that_knows_the_end_does_not_connect_again(http: TestClient, client: redis.Redis, ended: str):
    last = client.xrevrange(f"ramify:{{{ended}}}:events", count=1)[0][0].decode()
    assert http.get(f"/v1/jobs/{ended}/events", headers={"Last-Event-ID": last}).status_code == 204


def test_an_id_that_is_none_is_refused(http: TestClient, ended: str):
    for last in ("x", "1-2-3", "-", "1" * 30, "1-é"):
        refused = http.get(f"/v1/jobs/{ended}/events", headers={"Last-Event-ID": last.encode()})
        assert (refused.status_code, refused.headers["content-type"]) == (422, PROBLEM)


def test_events_of_others_are_not_found(http: TestClient, ramify: Ramify):
    theirs, batch = ramify.submit("why?", tenant="other"), ramify.for_tenant("other").open_batch()
    for path in (f"jobs/{theirs}", "jobs/none", f"batches/{batch}", "batches/none"):
        answer = http.get(f"/v1/{path}/events")
        assert (answer.status_code, answer.headers["content-type"]) == (404, PROBLEM)


def test_a_batch_is_followed_by_its_accounts(http: TestClient, ramify: Ramify, store: JobStore):
    taken = http.post("/v1/batches", content=b"why?\nhow?\n", headers=LINES).json()
    for job_id in ramify.batch_jobs(taken["batch_id"]):
        WalkedJob(store, job_id).to("summarising").done()
    answer = http.get(f"/v1/batches/{taken['batch_id']}/events")
    first, last = events(answer.text)
    assert (first["event"], json.loads(first["data"])["done"], last["event"]) == ("accounts", 2, "end")
    again = http.get(f"/v1/batches/{taken['batch_id']}/events", headers={"Last-Event-ID": first["id"]})
    assert [one["event"] for one in events(again.text)] == ["end"], "what is known is not told again"


def test_a_batch_is_taken_as_lines_compressed_or_as_an_array(http: TestClient):
    lines = b'{"question": "why?", "id": 7}\n\n{"question": ""}\n'
    taken = http.post("/v1/batches", content=lines, headers=LINES)
    assert (taken.status_code, taken.headers["location"]) == (202, f"/v1/batches/{taken.json()['batch_id']}")
    found = taken.json()
    assert (found["lines"], found["enqueued"], found["blank"], found["rejected"]) == (3, 1, 1, 1)
    assert found["rejects"][0]["line"] == 3
    packed = gzip.compress(lines) + gzip.compress(b"more?\n")
    zipped = http.post("/v1/batches", content=packed, headers=LINES | {"content-encoding": "gzip"})
    assert (zipped.json()["enqueued"], zipped.json()["lines"]) == (2, 4)
    array = http.post("/v1/batches", json={"questions": ["why?"], "options": {"top_n": 3}, "name": "n"})
    assert (array.status_code, array.json()["enqueued"]) == (202, 1)


def test_options_and_key_of_lines_stand_in_query_and_header(http: TestClient, ramify: Ramify):
    headers = LINES | {"Idempotency-Key": "k"}
    first, again = (
        http.post('/v1/batches?options={"top_n": 3}&name=n', content=b"why?\n", headers=headers).json() for _ in "12"
    )
    assert (first["batch_id"], again["entered_before"]) == (again["batch_id"], 1)
    assert ramify.resume_batch(first["batch_id"]).source.defaults == {"top_n": 3}


REFUSED = (
    ("", b"why?", {"content-type": "image/png"}, "Content-Type"),
    ("", b"why?", LINES | {"content-encoding": "br"}, "gzip"),
    ("", b"no gzip", LINES | {"content-encoding": "gzip"}, "it is no gzip"),
    ("", gzip.compress(b"why?\n")[:-4], LINES | {"content-encoding": "gzip"}, "ends in the middle"),
    ("?options=5", b"why?", LINES, "JSON object"),
    ("?options={", b"why?", LINES, "JSON object"),
    ('?options={"top_n": 0}', b"why?", LINES, "top_n"),
    ('?options={"tenant": "other"}', b"why?", LINES, "tenant"),
    ('?budget={"max_calls": -1}', b"why?", LINES, "max_calls"),
    ("", b"\n\n", LINES, "no question"),
    ("", b'{"questions": ["why?"], "idempotency_key": ""}', {"content-type": "application/json"}, "idempotency"),
)


def test_what_cannot_be_taken_is_one_problem(http: TestClient):
    for query, body, headers, said in REFUSED:
        refused = http.post(f"/v1/batches{query}", content=body, headers=headers)
        assert (refused.status_code, refused.headers["content-type"]) == (422, PROBLEM)
        assert said in refused.json()["detail"]
