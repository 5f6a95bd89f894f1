"""An agent's session with all tools and resources, by the SDK's client, over a running stack with the sample corpus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from orchestrator.client import Ramify
from orchestrator.mcp.desk import StdioDesk
from orchestrator.mcp.server import CorpusServer


def _session(ramify: Ramify, work: Callable[[Client], Awaitable[Any]]) -> Any:
    server = CorpusServer(StdioDesk(ramify.settings), ramify.settings.mcp)

    async def run() -> Any:
        with anyio.fail_after(90):
            async with Client(server) as client:
                return await work(client)

    return anyio.run(run)


async def _call(client: Client, tool: str, **arguments: Any) -> Any:
    """The structured content; the client holds it against the tool's schema."""
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found.content[0].text
    assert found.content[0].text
    return found.structured_content


def test_given_the_sample_corpus_when_an_agent_finds_and_reads_then_passages_lead_to_their_documents(
    ramify: Ramify,
) -> None:
    async def work(client: Client) -> None:
        found = await _call(client, "find", query="consumer groups of a Redis stream", top_n=3)
        best = found["passages"][0]
        assert best["path"].endswith("redis-streams.md")
        (read,) = (await client.read_resource(best["uri"])).contents
        assert best["text"].split("\n")[0] in read.text
        (whole,) = (await client.read_resource(read.meta["document"])).contents
        assert len(whole.text) > len(best["text"])
        tagged = await _call(client, "find", query="vacuum", filters={"tags": ["postgres"]})
        assert tagged["passages"]
        assert (await _call(client, "find", query="vacuum", filters={"tags": ["no such tag"]}))["passages"] == []
        talk = {"messages": [{"role": "user", "content": "What are Redis streams?"}]}
        searched = await _call(client, "search", question="And how do its consumer groups work?", session=talk)
        assert searched["retrieval"]
        assert searched["passages"]

    _session(ramify, work)


def test_given_the_sample_corpus_when_an_agent_asks_and_checks_then_sources_and_verdicts_stand(ramify: Ramify) -> None:
    async def work(client: Client) -> None:
        answer = await _call(client, "ask", question="Why did checkout slow down in March 2026?")
        assert answer["ended"]
        assert any("checkout-slowdown" in source["path"] for source in answer["sources"])
        again = await _call(client, "result", id=answer["job_id"])
        assert again["answer"] == answer["answer"]
        assert (await _call(client, "status", id=answer["job_id"]))["state"] == "done"
        assert (await _call(client, "cancel", id=answer["job_id"])) == {
            "id": answer["job_id"], "ended": 0, "state": "done",
        }  # fmt: skip
        checked = await _call(client, "check", text="Checkout slowed down in March 2026. Checkout has 90 pools.")
        assert (checked["supported"], checked["unsupported"] + checked["contradicted"]) == (1, 1)

    _session(ramify, work)


def test_given_a_folder_when_an_agent_puts_it_in_then_it_is_found_and_again_nothing_changes(
    ramify: Ramify, tmp_path: Path
) -> None:
    (tmp_path / "zeppelin.md").write_text("# The blue zeppelin\n\nIt flew over Friedrichshafen in 1909.\n")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")

    async def work(client: Client) -> None:
        put = {"paths": [str(tmp_path)], "namespace": "agent"}
        first = await _call(client, "ingest", **put)
        assert (first["ended"], first["added"], first["failed"]) == (True, 1, 1)
        assert "broken.pdf" in first["failures"][0]
        assert (await _call(client, "ingest", **put))["unchanged"] == 1
        found = await _call(client, "find", query="zeppelin", filters={"namespace": "agent"})
        assert found["passages"][0]["title"].startswith("The blue zeppelin")

    _session(ramify, work)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_given_the_sample_corpus_when_listed_then_every_document_comes_once(ramify: Ramify, mode: str) -> None:
    server = CorpusServer(StdioDesk(ramify.settings), ramify.settings.mcp)

    async def run() -> list[str]:
        async with Client(server, mode=mode) as client:
            page = await client.list_resources()
            uris = [one.uri for one in page.resources]
            while page.next_cursor:
                page = await client.list_resources(cursor=page.next_cursor)
                uris += [one.uri for one in page.resources]
            return uris

    uris = anyio.run(run)
    assert len(uris) == len(set(uris)) >= 150
