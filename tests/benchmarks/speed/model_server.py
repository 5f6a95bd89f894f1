"""A model server for Ramify and its peers: five searches of each question, a cited sentence, each after a latency.

`python -m tests.benchmarks.speed.model_server` prints its port. PUT /latency sets the seconds of each call by endpoint.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from orchestrator.local.child_process import launcher
from tests.fakes.answers import QUERY, chat_body, decomposition, embeddings_body, rerank_body

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_SEARCHES = {
    "core": "What is known of {}",
    "why": "What are the reasons: {}",
    "how": "Which steps does this take: {}",
    "case": "When did this happen: {}",
    "note": "What has to be watched out for: {}",
}
_ANSWER = "The notes say so [1]."
_ROOT = Path(__file__).parents[3]


class Server:
    """One that runs, at `url`."""

    def __init__(self, port: int) -> None:
        self._port, self.url = port, f"http://127.0.0.1:{port}/v1"

    def wait_each(self, **seconds: float) -> None:
        """How long each call takes from now on: `chat`, `embeddings`, `rerank`."""
        link = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        link.request("PUT", "/latency", json.dumps(seconds))
        link.getresponse().read()
        link.close()


@contextmanager
def model_server() -> Iterator[Server]:
    """A process of this module, which ends with this one."""
    command = [*launcher(signal.SIGTERM), sys.executable, "-m", "tests.benchmarks.speed.model_server"]
    process = subprocess.Popen(command, cwd=_ROOT, text=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield Server(int(process.stdout.readline()))
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


class _Calls:
    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = json.loads(await reader.readexactly(int(length[1])) if length else b"{}")
                method, path, _ = head.split(b" ", 2)
                said = json.dumps(await self._said(method, path.rpartition(b"/")[2].decode(), body)).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(said), said))
                await writer.drain()
        writer.close()

    async def _said(self, method: bytes, name: str, body: dict[str, Any]) -> dict[str, Any]:
        if method == b"PUT":
            self._seconds = body
            return {}
        if method == b"GET":
            return {"object": "list", "data": [{"id": "fake", "object": "model"}]}
        await asyncio.sleep(self._seconds.get("chat" if name == "completions" else name, 0.0))
        if name == "embeddings":
            return embeddings_body("fake", [body["input"]] if isinstance(body["input"], str) else body["input"])
        if name == "rerank":
            return rerank_body("fake", body["query"], body["documents"], body.get("top_n") or len(body["documents"]))
        return chat_body("fake", reply(body["messages"][-1]["content"]), 100, 20)


def reply(prompt: str | list[dict[str, str]]) -> str:
    """A plan where one is asked for, else an answer."""
    text = prompt if isinstance(prompt, str) else prompt[0]["text"]
    if "<memories>" in text:
        return _ANSWER
    if asked := QUERY.findall(text):
        facets = zip(_SEARCHES, _searches(asked[-1]), strict=True)
        return decomposition([(facet, query, False) for facet, query in facets])
    if "sub-questions in json markdown" in text:
        items = [{"sub_question": one, "tool_name": "notes"} for one in _searches(_between(text, "<User Question>"))]
        return f"```json\n{json.dumps({'items': items})}\n```"
    if "processes user queries for retrieval" in text:
        return json.dumps({"queries": _searches(text.rsplit('Query: "', 1)[1].partition('"')[0])})
    if "different versions of the given user" in text:
        return "\n".join(_searches(text.rpartition("Original question: ")[2]))
    return _ANSWER


def _between(text: str, mark: str) -> str:
    return text.rpartition(mark)[2].strip().partition("\n")[0]


def _searches(question: str) -> list[str]:
    return [form.format(question.strip()) for form in _SEARCHES.values()]


async def main() -> None:
    server = await asyncio.start_server(_Calls().serve, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
