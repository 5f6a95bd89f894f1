"""HTTP over a running stack with the sample corpus: asked, found, shown, checked, listed, removed."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from orchestrator.client import Ramify
from tests.support.http_server import served
from tests.support.waiting import until


@pytest.fixture(scope="module")
def http(ramify: Ramify) -> Iterator[httpx.Client]:
    with served(ramify.settings) as address, httpx.Client(base_url=address, timeout=60) as http:
        yield http


def given(http: httpx.Client, path: str, **options: object) -> dict[str, object]:
    answer = http.get(path, params={name: str(value) for name, value in options.items()})
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


def test_given_a_question_when_asked_then_its_tree_answer_and_citation_are_told(http: httpx.Client) -> None:
    taken = http.post("/v1/jobs", json={"question": "Why do queues lose messages, and what helps?"})
    place = taken.headers["location"]
    until(lambda: given(http, place)["state"] == "done", 60)
    tree = http.get(f"{place}/tree").json()["nodes"]
    assert {node["status"] for node in tree if node["node"]["kind"] == "leaf"} == {"done"}
    answer = http.get(f"{place}/result").json()
    cited = answer["summary"]["citations"][0]
    passage = given(http, "/v1/show", document=f"{taken.json()['job_id']}#{cited['number']}")
    assert cited["quote"] in str(passage["text"])
    assert "It is done" in str(given(http, f"{place}/why")["said"])
    assert http.delete(place).json()["cancelled"] == 0


def test_given_a_query_and_a_text_when_asked_then_passages_and_verdicts_are_told(http: httpx.Client) -> None:
    found = http.post("/v1/find", json={"query": "consumer groups of a Redis stream", "top_n": 3}).json()
    best = found["hits"][0]
    assert best["path"].endswith("redis-streams.md")
    checked = http.post("/v1/check", json={"text": best["text"].splitlines()[-1]}).json()
    assert checked["supported"] >= 1
    against = {"text": "The tower is 30 m high.", "passages": ["The tower is 40 m high."]}
    assert http.post("/v1/check", json=against).json()["contradicted"] == 1
    talk = http.post("/v1/search", json={"question": "Redis streams", "session_id": "http-talk", "remember": True})
    assert talk.json()["hits"]
    assert len(http.get("/v1/sessions/http-talk").json()["messages"]) == 2
    bad = http.post("/v1/find", json={"query": "redis", "strategy": "vec_only"})
    assert (bad.status_code, "embedding model" in bad.json()["detail"]) == (422, True)


def test_given_documents_when_listed_and_removed_then_the_corpus_counts_them(http: httpx.Client) -> None:
    lines = '{"id": "http-1", "text": "# Ferries\\n\\nThe ferry leaves at noon."}\n'
    pushed = http.post("/v1/ingests?source=http", content=lines, headers={"content-type": "application/jsonl"})
    job_id = pushed.json()["job_id"]
    until(lambda: given(http, f"/v1/ingests/{job_id}")["state"] == "done", 60)
    page = http.get("/v1/documents", params={"limit": 500}).json()
    (document,) = [one for one in page["documents"] if one["title"] == "Ferries"]
    total = http.get("/v1/corpus").json()["documents"]
    assert (page["total"], page["following"]) == (total, "")
    text = http.get(f"/v1/documents/{document['doc_id']}/text").json()["text"]
    assert "leaves at noon" in text
    part = http.delete("/v1/documents/Ferr")
    assert (part.status_code, document["doc_id"] in part.json()["fix"]) == (404, True)
    assert http.delete(f"/v1/documents/{document['doc_id']}").json()["documents"][0]["status"] == "removed"
    assert http.get(f"/v1/documents/{document['doc_id']}").status_code == 404
    assert http.get("/v1/corpus").json()["documents"] == total - 1


def test_given_operators_when_they_look_then_pools_lanes_and_counts_are_told(http: httpx.Client) -> None:
    pools = {one["pool"]: one for one in http.get("/v1/pools").json()["pools"]}
    assert {len(one["workers"]) for one in pools.values()} == {1}
    assert pools["search"]["queues"].keys() == {"search", "index"}
    assert [lane["lane"] for lane in http.get("/v1/lanes").json()["lanes"]] == ["interactive", "batch"]
    assert http.get("/v1/stats").json()["jobs_kept"] >= 1
