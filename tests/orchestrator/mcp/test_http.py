"""MCP over HTTP, with a real server on a socket: sessions of two keys, hosts and origins, large bodies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
import httpx
import httpx2
import pytest
import redis
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from orchestrator.access.keys import KeyStore
from orchestrator.client import Ramify
from shared.jobs import JobStore
from shared.settings import Settings
from tests.fakes.walked_jobs import WalkedJob
from tests.orchestrator.mcp.conftest import ask_and_cancel, within
from tests.orchestrator.retries.test_refresh import mark
from tests.support.http_server import served
from tests.support.waiting import until

_HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
_ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def url(client: redis.Redis, settings: Settings) -> Iterator[str]:
    own = settings.mcp.model_copy(update={"wait_s": 0.3})
    with served(settings.model_copy(update={"mcp": own})) as address:
        yield f"{address}/mcp"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_given_a_server_when_asked_over_http_then_the_job_is_taken_and_answered(
    url: str, ramify: Ramify, store: JobStore, mode: str
) -> None:
    async def session(client: Client) -> tuple[Any, Any]:
        asked = await client.call_tool("ask", {"question": "why?"})
        job_id = asked.structured_content["job_id"]
        WalkedJob(store, job_id).to("summarising").done()
        return asked, await client.call_tool("result", {"id": job_id})

    asked, late = within(url, session, mode=mode)
    assert (asked.structured_content["state"], late.structured_content["state"]) == ("queued", "done")
    assert [status.tenant for status in ramify.jobs()] == ["default"]


def test_given_a_stale_answer_when_refreshed_then_a_job_is_waited_for_and_one_that_holds_is_told_so(
    url: str, ramify: Ramify, store: JobStore
) -> None:
    walked = WalkedJob(store, ramify.submit("why?"))
    assert walked.finish("waiting")

    async def session(client: Client) -> tuple[Any, Any, Any]:
        holds = await client.call_tool("refresh", {"id": walked.id})
        mark(store, walked.id)
        made = await client.call_tool("refresh", {"id": walked.id})
        return holds, made, await client.call_tool("diff", {"id": walked.id, "other": walked.id})

    holds, made, differs = within(url, session)
    assert holds.is_error
    assert "nothing that its answer rests on has changed since" in holds.content[0].text
    assert made.structured_content["job_id"] == ramify.status(walked.id).retried_as
    assert (made.structured_content["ended"], differs.is_error) == (False, False)
    assert "Nothing differs" in differs.content[0].text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_given_a_call_that_is_cancelled_over_http_when_asked_then_its_job_ends(
    client: redis.Redis, settings: Settings, ramify: Ramify, mode: str
) -> None:
    async def session(client: Client) -> None:
        await ask_and_cancel(client, ramify)
        await anyio.to_thread.run_sync(lambda: until(lambda: ramify.jobs(state="cancelled"), 10))

    with served(settings) as address:
        within(f"{address}/mcp", session, mode=mode)


def test_given_no_place_of_files_when_listed_over_http_then_nothing_that_names_them_is_there(url: str) -> None:
    found = within(url, lambda client: client.list_tools())
    assert "ask" in {tool.name for tool in found.tools}
    assert "ingest" not in {tool.name for tool in found.tools}
    refused = within(url, lambda client: client.call_tool("ingest", {"paths": ["/etc"]}))
    assert refused.is_error
    assert refused.content[0].text.startswith("tool: 'ingest' cannot be used: there are")


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}])
def test_given_another_host_or_origin_when_asked_then_it_is_refused(url: str, headers: dict[str, str]) -> None:
    reply = httpx.post(url, json=_HELLO, headers={**_ACCEPT, **headers})
    assert reply.status_code in {403, 421}
    assert "result" not in reply.text


def test_given_a_large_body_when_posted_then_it_is_refused(url: str, settings: Settings) -> None:
    body = b'"' + b"x" * settings.server.max_body_bytes + b'"'
    reply = httpx.post(url, content=body, headers={**_ACCEPT, "Content-Type": "application/json"})
    assert reply.status_code == 413


@pytest.mark.parametrize("body", [{}, {"jsonrpc": "2.0"}, 7])
def test_given_a_body_that_is_no_message_when_posted_then_a_sentence_says_so(url: str, body: object) -> None:
    reply = httpx.post(url, json=body, headers=_ACCEPT)
    assert reply.status_code == 400
    assert reply.json()["error"]["message"].startswith("the body is no JSON-RPC message: send one")
    assert "pydantic" not in reply.text


class Walled(NamedTuple):
    """A server that wants keys, and a key for each of these names: tenants, and `reader`, which may only read."""

    url: str
    keys: dict[str, str]


@pytest.fixture
def walled(client: redis.Redis, settings: Settings) -> Iterator[Walled]:
    store = KeyStore(client, settings)
    keys = {name: store.create(name).secret.get_secret_value() for name in ("a", "b")}
    keys["reader"] = store.create("a", ["read"]).secret.get_secret_value()
    wanted = {"keys": settings.keys.model_copy(update={"required": True}), "mcp": settings.mcp.but(wait_s=0)}
    with served(settings.model_copy(update=wanted)) as address:
        yield Walled(f"{address}/mcp", keys)


@asynccontextmanager
async def _as(name: str, walled: Walled) -> AsyncIterator[Any]:
    """A client's connection with the key of that name."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {walled.keys[name]}"}) as http,
        streamable_http_client(walled.url, http_client=http) as streams,
    ):
        yield streams


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_given_two_keys_when_they_ask_at_once_then_each_has_its_own_tenant(
    walled: Walled, ramify: Ramify, mode: str
) -> None:
    async def ask(client: Client) -> Any:
        return (await client.call_tool("ask", {"question": "whose?"})).structured_content["job_id"]

    async def session(one: Client) -> None:
        async with Client(_as("b", walled), mode=mode) as other:
            for _ in range(3):
                own, foreign = await ask(one), await ask(other)
                assert (await one.call_tool("status", {"id": own})).structured_content["job_id"] == own
                refused = await one.call_tool("status", {"id": foreign})
                assert refused.is_error
                assert "there is no such job" in refused.content[0].text

    within(_as("a", walled), session, mode=mode)
    assert sorted(status.tenant for status in ramify.jobs()) == ["a", "a", "a", "b", "b", "b"]


def test_given_a_key_that_may_only_read_when_it_asks_then_it_is_told_and_sees_no_such_tool(walled: Walled) -> None:
    async def session(client: Client) -> tuple[Any, Any]:
        return await client.list_tools(), await client.call_tool("ask", {"question": "why?"})

    listed, refused = within(_as("reader", walled), session)
    assert "ask" not in {tool.name for tool in listed.tools}
    assert refused.is_error
    assert "scope ask" in refused.content[0].text


def test_given_the_session_of_another_key_when_used_then_it_does_not_exist(walled: Walled) -> None:
    def post(name: str, body: object, **headers: str) -> httpx.Response:
        key = {"Authorization": f"Bearer {walled.keys[name]}"}
        return httpx.post(walled.url, json=body, headers={**_ACCEPT, **key, **headers})

    session = {"Mcp-Session-Id": post("a", _HELLO).headers["mcp-session-id"]}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    assert post("b", listing, **session).status_code == 404
    assert post("a", listing, **session).status_code == 200


@pytest.mark.parametrize("key", ["", "rmf_0000000000000000_" + "0" * 64, "none"])
def test_given_no_key_that_is_known_when_asked_then_it_is_refused_before_anything_is_served(
    walled: Walled, key: str
) -> None:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    reply = httpx.post(walled.url, json=_HELLO, headers={**_ACCEPT, **headers})
    assert reply.status_code == 401
    assert reply.headers["www-authenticate"].startswith("Bearer")
    assert "mcp-session-id" not in reply.headers


def test_given_a_key_with_one_place_when_it_asks_twice_then_the_second_call_says_so(
    walled: Walled, client: redis.Redis, settings: Settings
) -> None:
    walled.keys["one"] = KeyStore(client, settings).create("a", open_jobs=1).secret.get_secret_value()

    async def session(client: Client) -> list[Any]:
        return [await client.call_tool("ask", {"question": "why?"}) for _ in range(2)]

    taken, refused = within(_as("one", walled), session)
    assert not taken.is_error
    assert refused.is_error
    assert "1 open jobs and batches" in refused.content[0].text
