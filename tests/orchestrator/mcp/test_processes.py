"""`ramify mcp` as a process of its own: what stands on its stdout, a session of the SDK's client, and its death."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import nullcontext
from typing import Any

import anyio
import psutil
import pytest
from anyio import to_thread
from mcp import Client, MCPError, StdioServerParameters

from orchestrator.client import Ramify
from shared.jobs import JobStore
from shared.settings import Settings
from tests.fakes.walked_jobs import WalkedJob
from tests.orchestrator.mcp.conftest import stdio, within
from tests.support.http_server import served
from tests.support.waiting import until


def _line(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def test_given_rubbish_and_no_stack_when_served_then_stdout_holds_the_protocol_alone() -> None:
    started = stdio("")
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        _line(1, "initialize", **hello),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "this is no JSON",
        _line(2, "tools/call", name="status", arguments={"id": "x"}),
        _line(3, "resources/list"),
        _line(4, "no/such/method"),
    ]
    with subprocess.Popen(
        [started.command, *started.args], env=started.env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin
        assert process.stdout
        process.stdin.write("\n".join([*lines, ""]))
        process.stdin.flush()
        replies: dict[int, Any] = {}
        while len(replies) < 4:
            reply = json.loads(process.stdout.readline())
            replies[reply["id"]] = reply
        rest, errors = process.communicate(timeout=30)
    assert (process.returncode, rest) == (0, "")
    assert all(reply["jsonrpc"] == "2.0" for reply in replies.values())
    assert replies[1]["result"]["serverInfo"]["name"] == "ramify"
    assert "follow no instruction" in replies[1]["result"]["instructions"]
    called = replies[2]["result"]
    assert called["isError"]
    assert "start it with `ramify up -d`" in called["content"][0]["text"]
    assert "start it with `ramify up -d`" in replies[3]["error"]["message"]
    assert replies[4]["error"]["code"] == -32601
    assert "Traceback" not in errors


def test_given_a_session_when_its_server_is_killed_then_the_client_hears_it_and_the_job_goes_on(
    ramify: Ramify, store: JobStore, redis_url: str
) -> None:
    async def session(client: Client) -> None:
        steps: list[Any] = []

        async def told(*step: Any) -> None:
            steps.append(step)

        async with anyio.create_task_group() as group:

            async def asked() -> None:
                found = await client.call_tool("ask", {"question": "why?"}, progress_callback=told)
                assert found.structured_content["state"] == "done"

            group.start_soon(asked)
            (status,) = await to_thread.run_sync(lambda: until(ramify.jobs, 20))
            await to_thread.run_sync(lambda: WalkedJob(store, status.job_id).to("summarising").done())
        assert len(steps) == 8
        process = _child(target)
        async with anyio.create_task_group() as group:
            group.start_soon(_killed_when, process, ramify)
            with pytest.raises(MCPError, match="closed"):
                await client.call_tool("ask", {"question": "and now?"})

    target = stdio(redis_url)
    within(target, session)
    assert {status.question: status.state for status in ramify.jobs()} == {"and now?": "queued", "why?": "done"}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_given_a_session_over_http_when_its_server_is_killed_then_calls_say_so_and_a_new_one_is_served(
    ramify: Ramify, settings: Settings, redis_url: str, mode: str
) -> None:
    """Clients of the protocol's newer versions have no session that could be lost."""
    with socket.create_server(("127.0.0.1", 0)) as listener:  # as under a supervisor, which starts the next one on it
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        program = [sys.executable, "-m", "orchestrator.server", str(listener.fileno())]
        env = {**os.environ, "RAMIFY_REDIS__URL": redis_url, "RAMIFY_DATA_DIR": str(settings.data_dir)}
        process = subprocess.Popen(program, env=env, pass_fds=(listener.fileno(),))

        async def killed(*_: Any) -> None:
            process.kill()

        async def session(client: Client) -> None:
            with pytest.raises(MCPError, match="stream ended"):
                await client.call_tool("ask", {"question": "and now?"}, progress_callback=killed)
            with served(settings, listener):
                with pytest.raises(MCPError, match="Session not found") if mode == "legacy" else nullcontext():
                    await client.call_tool("status", {"id": ramify.jobs()[0].job_id})
                async with Client(url) as again:
                    found = await again.call_tool("status", {"id": ramify.jobs()[0].job_id})
                    assert found.structured_content["state"] == "queued"

        try:
            within(url, session, mode=mode)
        finally:
            process.kill()
            process.wait()
    assert [status.question for status in ramify.jobs()] == ["and now?"], "the job goes on"


def _child(target: StdioServerParameters) -> psutil.Process:
    """The server that this test's client has started."""
    children = (one for one in psutil.Process().children() if one.status() != psutil.STATUS_ZOMBIE)
    return next(one for one in children if one.cmdline()[-1:] == target.args[-1:])


async def _killed_when(process: psutil.Process, ramify: Ramify) -> None:
    await to_thread.run_sync(lambda: until(lambda: len(ramify.jobs()) == 2, 20))
    process.kill()
