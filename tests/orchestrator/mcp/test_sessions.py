"""Sessions of the SDK's client with a server in this process: tools, waiting, progress, errors, tenants."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from orchestrator.client import Ramify
from orchestrator.mcp.server import CorpusServer
from shared.jobs import JobStore
from shared.settings import Settings
from shared.settings.path_key import key_file, new_key
from tests.fakes.walked_jobs import WalkedJob
from tests.orchestrator.mcp.conftest import ask_and_cancel, within
from tests.support.waiting import until

Made = Callable[..., CorpusServer]


def _walk(ramify: Ramify, store: JobStore, to: str = "done") -> Thread:
    """Walks the next job to its end, as workers would, on a thread."""

    def work() -> None:
        (status,) = until(ramify.jobs, 10)
        walked = WalkedJob(store, status.job_id)
        walked.to("summarising")
        if to == "done":
            walked.done()

    thread = Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_given_a_job_that_ends_when_asked_then_the_answer_comes_with_progress(
    server: Made, ramify: Ramify, store: JobStore, mode: str
) -> None:
    steps: list[tuple[float, float | None, str | None]] = []

    async def told(*step: Any) -> None:
        steps.append(step)

    async def session(client: Client) -> Any:
        return await client.call_tool("ask", {"question": "why?"}, progress_callback=told)

    walking = _walk(ramify, store)
    found = within(server(wait_s=20), session, mode=mode)
    walking.join()
    assert not found.is_error
    assert found.structured_content["ended"] is True
    assert found.structured_content["state"] == "done"
    done = [step[0] for step in steps]
    assert done == sorted(set(done))
    assert steps[0][2] == f"job {found.structured_content['job_id']} was taken"
    assert all(total is not None and at < total for at, total, _ in steps)
    assert sum("searched, " in str(said) for *_, said in steps) == 3
    assert "question 0.1" in " ".join(str(said) for *_, said in steps)


def test_given_a_job_that_goes_on_when_asked_then_its_id_is_given_and_result_has_it_later(
    server: Made, ramify: Ramify, store: JobStore
) -> None:
    async def session(client: Client) -> tuple[Any, Any, Any]:
        asked = await client.call_tool("ask", {"question": "why?"})
        job_id = asked.structured_content["job_id"]
        early = await client.call_tool("result", {"id": job_id})
        WalkedJob(store, job_id).to("summarising")
        WalkedJob(store, job_id).done()
        return asked, early, await client.call_tool("result", {"id": job_id})

    asked, early, late = within(server(), session)
    for found in (asked, early):
        assert (found.is_error, found.structured_content["ended"], found.structured_content["state"]) == (
            False, False, "queued",
        )  # fmt: skip
        job_id = found.structured_content["job_id"]
        assert f"Call `result` with the id {job_id}" in found.content[0].text
    assert late.structured_content["state"] == "done"


def test_given_a_call_that_is_cancelled_when_asked_then_its_job_ends(server: Made, ramify: Ramify) -> None:
    async def session(client: Client) -> None:
        await ask_and_cancel(client, ramify)
        await anyio.to_thread.run_sync(lambda: until(lambda: ramify.jobs(state="cancelled"), 10))

    within(server(wait_s=20), session)
    (status,) = ramify.jobs()
    assert status.error == "the MCP client cancelled the call"


def test_given_a_call_that_is_cancelled_while_its_job_is_made_when_it_is_there_then_it_ends(
    server: Made, ramify: Ramify, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, asked = Ramify.submit, []

    def slow(*given: Any, **options: Any) -> str:
        asked.append(given)
        time.sleep(0.5)
        return submit(*given, **options)

    monkeypatch.setattr(Ramify, "submit", slow)

    async def session(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "ask", {"question": "why?"})
            await anyio.to_thread.run_sync(lambda: until(lambda: asked, 20))
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(lambda: until(lambda: ramify.jobs(state="cancelled"), 10))

    within(server(wait_s=20), session)


def test_given_an_idempotency_key_when_the_call_is_cancelled_then_the_job_of_others_goes_on(
    server: Made, ramify: Ramify
) -> None:
    async def session(client: Client) -> None:
        await ask_and_cancel(client, ramify, idempotency_key="one")
        await anyio.sleep(0.5)

    within(server(wait_s=20), session)
    assert [status.state for status in ramify.jobs()] == ["queued"]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("ask", {}, "question: it is missing: give it"),
        ("ask", {"question": " "}, "question: ' ' cannot be used: is empty: write a question"),
        ("ask", {"question": "why?", "top_n": 0}, "top_n: 0 cannot be used: input should be greater than or equal"),
        (
            "ask",
            {"question": "why?", "tenant": "b"},
            "tenant: 'b' cannot be used: there is no such argument",
        ),
        ("ask", {"question": "why?", "lane": "batch"}, "lane: 'batch' cannot be used: there is no such argument"),
        ("status", {"id": "nope"}, "ID: 'nope' cannot be used: there is no such job or batch"),
        ("result", {"id": "a\x1b[31m\u202eb"}, r"job id: 'a\x1b[31m\u202eb' cannot be used"),
        ("ingest", {"paths": ["notes"]}, "paths: 'notes' cannot be used: give absolute names"),
        ("ingest", {"paths": ["/nowhere/at/all"]}, "PATH: '/nowhere/at/all' cannot be used"),
        ("nothing", {}, "tool: 'nothing' cannot be used: there are "),
    ],
)
def test_given_what_cannot_be_used_when_called_then_the_sentence_is_a_tool_error(
    server: Made, tool: str, arguments: dict[str, Any], said: str
) -> None:
    found = within(server(), lambda client: client.call_tool(tool, arguments))
    assert found.is_error
    assert found.content[0].text.startswith(said)
    assert found.structured_content is None


def test_given_a_job_of_another_tenant_when_named_then_it_does_not_exist(server: Made, ramify: Ramify) -> None:
    job_id = ramify.submit("whose?", tenant="b")
    calls = [(tool, {"id": job_id}) for tool in ("status", "result")]

    async def session(client: Client) -> list[Any]:
        return [await client.call_tool(*call) for call in calls]

    assert all(
        found.is_error and "there is no such job" in found.content[0].text for found in within(server(), session)
    )
    own = within(server("b"), lambda client: client.call_tool(*calls[0]))
    assert own.structured_content["question"] == "whose?"


def test_given_no_stack_when_called_then_one_sentence_says_how_to_start_it_and_a_later_one_is_found(
    settings: Settings, redis_url: str
) -> None:
    from orchestrator.mcp.desk import StdioDesk

    nowhere = settings.model_copy(update={"redis": type(settings.redis)()})
    desk = StdioDesk(nowhere)

    async def session(client: Client) -> tuple[Any, Any, Any]:
        with pytest.raises(MCPError, match="ramify up"):
            await client.list_resources()
        gone = await client.call_tool("ask", {"question": "why?"})
        desk._settings = settings
        return len((await client.list_tools()).tools), gone, await client.call_tool("ask", {"question": "why?"})

    tools, gone, taken = within(CorpusServer(desk, settings.mcp.model_copy(update={"wait_s": 0.1})), session)
    assert tools
    assert gone.is_error
    assert gone.content[0].text.startswith("Ramify is not running here: start it with `ramify up -d`")
    assert taken.structured_content["state"] == "queued"


def test_given_no_place_when_many_wait_then_the_next_one_is_not_made_to_wait(server: Made) -> None:
    async def session(client: Client) -> float:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "ask", {"question": "first?"})
            await anyio.to_thread.run_sync(lambda: until(lambda: full.borrowed_tokens, 20))
            began = anyio.current_time()
            found = await client.call_tool("ask", {"question": "second?"})
            took = anyio.current_time() - began
            group.cancel_scope.cancel()
        assert found.structured_content["ended"] is False
        return took

    one = server(wait_s=20, waiting=1)
    full = one._calls._waiting._limiter
    assert within(one, session) < 15


def test_given_a_fault_of_the_server_when_called_then_nothing_of_the_inside_is_told(
    server: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret of the inside")

    monkeypatch.setattr(Ramify, "status", broken)
    found = within(server(), lambda client: client.call_tool("status", {"id": "x"}))
    assert found.is_error
    assert found.content[0].text == "unforeseen: the log of the server says what went wrong"


def test_given_files_when_put_in_then_the_job_and_what_to_do_next_are_told(
    server: Made, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.documents.ingest.Ingesting.by_name", lambda _: True)  # as with the embedded stack
    key_file(settings).parent.mkdir(mode=0o700)
    key_file(settings).write_text(new_key())
    key_file(settings).chmod(0o600)
    (tmp_path / "a.md").write_text("# A")

    async def session(client: Client) -> tuple[Any, Any]:
        found = await client.call_tool("ingest", {"paths": [str(tmp_path)]})
        return found, await client.call_tool("status", {"id": found.structured_content["job_id"]})

    found, status = within(server(), session)
    assert not found.structured_content["ended"]
    assert "call `status` with the id" in found.content[0].text
    assert str(tmp_path) not in status.content[0].text + str(status.structured_content)
