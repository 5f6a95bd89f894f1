"""Two tenants of one stack ask for the same things at the same paths: each is answered from its own documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from orchestrator.access.keys import KeyStore
from orchestrator.cli.main import app
from orchestrator.client import Ramify
from orchestrator.server.app import make_app
from shared.errors import InputError
from tests.acceptance.conftest import launched
from tests.fakes.lookalikes import MARKS, files

QUESTION = "How does Redis persistence fail, and who owns the page that it names?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tenants")


@pytest.fixture(scope="module")
def stack(folder: Path) -> Iterator[Ramify]:
    """The same folder ingested twice: first with alpha's files in it, then with beta's."""
    for client in launched(folder / "data"):
        for tenant in MARKS:
            written(folder / "team", files(tenant))
            for _ in client.ingest(folder / "team", tenant=tenant, prune=True):
                pass
        yield client


def written(root: Path, texts: dict[str, str]) -> None:
    for file in root.rglob("*.*"):
        file.unlink()
    for path, text in texts.items():
        file = root / Path(path).relative_to("team")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def own(tenant: str, *found: Any) -> str:
    """What was told, which must speak of the tenant and never of the other one."""
    other = next(name for name in MARKS if name != tenant)
    text = json.dumps([one.model_dump(mode="json", warnings=False) for one in found], ensure_ascii=False)
    assert MARKS[tenant] in text
    assert f"{other}mark" not in text
    assert MARKS[other][:2] not in text
    return text


@pytest.mark.parametrize("tenant", MARKS)
def test_given_two_tenants_when_each_looks_then_it_finds_its_own_and_never_the_others(
    stack: Ramify, tenant: str
) -> None:
    other = next(name for name in MARKS if name != tenant)
    for strategy in ("default", "hybrid", "hierarchical", "keyword", "multihop"):
        own(other, stack.find(QUESTION, tenant=other, strategy=strategy))  # a cache may hold the other's answer now
        own(tenant, stack.find(QUESTION, tenant=tenant, strategy=strategy, plan=True, explain=True))
    own(tenant, stack.find("缓存雪崩", tenant=tenant, target_uri="ramify://default/team/zh/"))
    own(tenant, stack.find("what calls it", tenant=tenant, near_symbol="shop.cart.total"))
    found = stack.find("redis", tenant=tenant, top_n=50)
    assert any(hit.related for hit in found.resources)
    reaching = stack.find("redis", tenant=tenant, target_uri=f"ramify://{other}/team/")
    assert (reaching.hits, reaching.total) == ((), 0)


@pytest.mark.parametrize("tenant", MARKS)
def test_given_jobs_of_two_tenants_when_they_branch_bind_and_list_then_the_answers_are_their_own(
    stack: Ramify, tenant: str
) -> None:
    plan = ["Which page does Redis persistence name?", {"query": "Who owns #1?", "depends_on": [1]}]
    asked = {
        "plan": stack.submit(QUESTION, tenant=tenant, subqueries=plan, explain=True),
        "split": stack.submit(f"{QUESTION} 缓存雪崩如何影响队列，为什么？", tenant=tenant, strategy="two_pass"),
        "list": stack.submit("List all incidents", tenant=tenant),
    }
    for name, job in asked.items():
        assert stack.wait(job, 60).state == "done", name
    own(tenant, stack.result(asked["plan"]), stack.result(asked["split"]))
    answer = stack.result(asked["list"])
    assert answer.table is not None
    incidents = [path for path in files(tenant) if "/incidents/" in path]
    assert {row.path for row in answer.table.rows} == set(incidents)
    documents = len(files(tenant)) - 1 + (9 if tenant == "beta" else 4)
    assert answer.table.planned <= documents
    own(tenant, answer, *stack.rows(asked["list"]))


def test_given_a_conversation_when_asked_for_another_tenant_then_it_is_refused_and_its_own_is_answered(
    stack: Ramify,
) -> None:
    talk = stack.session("talk", "alpha")
    talk.append("user", "Tell me of Redis persistence")
    own("alpha", stack.search("and who owns it?", talk, tenant="alpha", plan=True))
    own("alpha", stack.search("and who owns it?", talk))
    with pytest.raises(InputError, match="alpha's"):
        stack.search("and who owns it?", talk, tenant="beta")
    assert not stack.session("talk", "beta").load()


def test_given_the_command_line_when_a_tenant_is_named_then_it_reaches_the_store_and_nobody_is_default(
    stack: Ramify, folder: Path
) -> None:
    def run(*arguments: str) -> Any:
        made = CliRunner().invoke(app, ["--set", f"data_dir={folder / 'data'}", *arguments, "--json"])
        assert made.exit_code in {0, 2}, made.output
        return made

    assert json.loads(run("find", "redis").stdout)["hits"] == [], "the tenant default has nothing"
    found = run("find", "redis", "--tenant", "beta").stdout
    assert "betamark" in found
    assert "alphamark" not in found
    again = run("ingest", str(folder / "team"), "--tenant", "beta", "--prune").stdout
    assert json.loads(again.splitlines()[-1])["unchanged"] == len(files("beta")) - 1 + 9
    assert run("find", "redis", "--tenant", "a b").exit_code == 2
    assert run("ingest", str(folder / "team"), "--tenant", "a:dirs").exit_code == 2
    assert run("ingest", str(folder / "team"), "--namespace", "a:dirs").exit_code == 2


def test_given_two_keys_over_http_when_each_looks_then_documents_of_the_other_do_not_exist(stack: Ramify) -> None:
    settings = stack.settings.model_copy(update={"keys": stack.settings.keys.model_copy(update={"required": True})})
    keys = KeyStore(stack.redis, settings)
    with Ramify(settings) as client, TestClient(make_app(settings, client), "http://localhost") as http:
        shown: dict[str, list[str]] = {}
        headers = {
            tenant: {"X-API-Key": keys.create(tenant, ["read", "ask", "write"]).secret.get_secret_value()}
            for tenant in MARKS
        }
        for tenant in MARKS:
            listed = http.get("/v1/documents", headers=headers[tenant]).json()["documents"]
            shown[tenant] = [one["doc_id"] for one in listed]
            assert len(shown[tenant]) == http.get("/v1/corpus", headers=headers[tenant]).json()["documents"]
            found = http.post("/v1/find", json={"query": QUESTION}, headers=headers[tenant]).text
            assert f"{tenant}mark" in found
            assert not any(f"{other}mark" in found for other in MARKS if other != tenant)
        assert not set(shown["alpha"]) & set(shown["beta"])
        foreign, unknown = shown["alpha"][0], "0" * len(shown["alpha"][0])
        for method, path in (
            ("GET", "/v1/documents/{}"), ("GET", "/v1/documents/{}/text"), ("GET", "/v1/show?document={}"),
            ("DELETE", "/v1/documents/{}"),
        ):  # fmt: skip
            replies = [http.request(method, path.format(one), headers=headers["beta"]) for one in (foreign, unknown)]
            told = [reply.text.replace(one, "ID") for reply, one in zip(replies, (foreign, unknown), strict=True)]
            assert told[0] == told[1], path
            assert {reply.status_code for reply in replies} == {replies[0].status_code}
            assert "alphamark" not in told[0]
        assert http.get(f"/v1/documents/{foreign}/text", headers=headers["alpha"]).status_code == 200
        for tenant in MARKS:
            http.post("/v1/sessions/talk-http", json={"text": tenant}, headers=headers[tenant])
        kept = http.get("/v1/sessions/talk-http", headers=headers["beta"]).text
        assert "beta" in kept
        assert "alpha" not in kept


def test_given_two_tenants_when_one_prunes_all_it_has_then_the_other_keeps_everything(
    stack: Ramify, folder: Path
) -> None:
    before = stack.find("redis 缓存", tenant="beta", top_n=50)
    written(folder / "team", {"team/new.md": "# New\n\nOnly 甲记alphamark."})
    for _ in stack.ingest(folder / "team", tenant="alpha", prune=True):
        pass

    assert {hit.path for hit in stack.find("alphamark new", tenant="alpha").hits} == {"team/new.md"}
    after = stack.find("redis 缓存", tenant="beta", top_n=50)
    assert [(hit.chunk_id, hit.score) for hit in after.hits] == [(hit.chunk_id, hit.score) for hit in before.hits]
