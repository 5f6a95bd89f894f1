"""Chat completions, asked by OpenAI's own client over HTTP; the work of the pools is played by a thread."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import openai
import pytest
import redis
import uvicorn
from fastapi.testclient import TestClient

from orchestrator.client import Ramify
from orchestrator.operations.chat_reply import pieces
from orchestrator.server.app import make_app
from shared.jobs import JobStore
from shared.models import Answer, Citation, Cost, Summary
from shared.models.request import Session, SessionIntent, TypedQuery
from shared.settings import Settings
from tests.fakes.walked_jobs import WalkedJob, answer
from tests.support.waiting import until

TEXT = "Retries need an idempotency key [1]. 队列会重复投递 [2][1]. An array[9] is no source."
CITED = tuple(
    Citation(number=number, chunk_id=str(number), path=f"notes/{name}", title=title, place=place)
    for number, name, title, place in (
        (1, "idempotency keys.md", "Idempotency\nkeys", ""),
        (2, "队列.pdf", "队列", "p. 3"),
    )
)
SPENT = Cost(llm_calls=2, llm_tokens_in=120, llm_tokens_out=30)


class Pools:
    """Ends every job that is submitted, after `after_s`; None: never."""

    def __init__(self, ramify: Ramify, store: JobStore) -> None:
        self._ramify, self._store = ramify, store
        self.after_s: float | None = 0.0
        self.summary = Summary(text=TEXT, kind="llm", citations=CITED)
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.02):
            for job in self._ramify.jobs(state="queued") if self.after_s is not None else ():
                self.over.wait(self.after_s)
                walked = WalkedJob(self._store, job.job_id).to("summarising")
                fields = {"summary": self.summary, "cost": SPENT, "question": job.question, "partial": True}
                self._store.finish(walked.job, Answer(**answer(walked.job).model_copy(update=fields).model_dump()))


@pytest.fixture
def pools(ramify: Ramify, store: JobStore) -> Iterator[Pools]:
    pools = Pools(ramify, store)
    thread = threading.Thread(target=pools.run)
    thread.start()
    yield pools
    pools.over.set()
    thread.join()


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(make_app(settings), log_config=None, timeout_graceful_shutdown=1, ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        until(lambda: server.started, 10, "the server listens")
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        server.should_exit = True
        thread.join()


@pytest.fixture
def chat(client: redis.Redis, settings: Settings) -> Iterator[openai.OpenAI]:
    with served(settings) as url, openai.OpenAI(base_url=url, api_key="none", max_retries=0) as chat:
        yield chat


def ask(chat: openai.OpenAI, *texts: str, **more: object):
    roles = ["user", "assistant"] * len(texts)
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    return chat.chat.completions.create(**{"model": "ramify", "messages": messages, **more})


def check_annotations(text: str, annotations: list[dict]) -> None:
    found = [one["url_citation"] for one in annotations]
    assert [text[one["start_index"] : one["end_index"]] for one in found] == ["[1]", "[2]", "[1]"]
    assert {one["type"] for one in annotations} == {"url_citation"}
    assert [one["title"] for one in found] == ["Idempotency\nkeys", "队列", "Idempotency\nkeys"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/jobs/\w+/sources/1", found[0]["url"])


def test_an_answer_comes_with_its_sources_and_what_it_cost(chat: openai.OpenAI, pools: Pools):
    found = ask(chat, "Why do retries need keys?")
    message = found.choices[0].message
    assert message.content.startswith(TEXT)
    sources = "\n\nSources:\n- [1] Idempotency keys — notes/idempotency keys.md\n- [2] 队列 — notes/队列.pdf, p. 3"
    assert message.content == TEXT + sources
    check_annotations(message.content, [one.model_dump() for one in message.annotations])
    assert (found.usage.prompt_tokens, found.usage.completion_tokens, found.usage.total_tokens) == (120, 30, 150)
    assert (found.choices[0].finish_reason, found.object, found.model) == ("stop", "chat.completion", "ramify")
    assert found.ramify["partial"]
    assert found.id == f"chatcmpl-{found.ramify['job_id']}"


def test_a_chinese_question_has_chinese_words_around_its_answer(chat: openai.OpenAI, pools: Pools):
    assert "\n\n来源:\n- [1] " in ask(chat, "为什么重试需要幂等键？").choices[0].message.content.replace("：", ":")
    assert "不需要查资料" in ask(chat, "谢谢！").choices[0].message.content


def test_a_stream_gives_the_same_in_pieces(chat: openai.OpenAI, pools: Pools):
    whole = ask(chat, "Why do retries need keys?")
    pools.after_s = 0.3
    chunks = list(ask(chat, "Why do retries need keys?", stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    (annotated,) = (chunk for chunk in chunks if chunk.choices and hasattr(chunk.choices[0].delta, "annotations"))
    check_annotations(text, annotated.choices[0].delta.annotations)
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-2:] == [None, "stop"]
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 150)
    assert len({chunk.id for chunk in chunks}) == 1


def test_progress_is_told_in_comments(chat: openai.OpenAI, pools: Pools):
    pools.after_s = 0.2
    body = {"model": "ramify", "stream": True, "messages": [{"role": "user", "content": "why?"}]}
    with chat._client.stream("POST", "chat/completions", json=body) as raw:
        lines = list(raw.iter_lines())
    assert ": queued" in lines
    assert any(line.startswith(": ") and "done" in line for line in lines)
    assert lines[-3:] == ["", "data: [DONE]", ""] or lines[-2:] == ["data: [DONE]", ""]


def test_the_async_client_does_both(chat: openai.OpenAI, pools: Pools):
    async def main() -> tuple[str, str]:
        messages = [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}]
        async with openai.AsyncOpenAI(base_url=chat.base_url, api_key="none", max_retries=0) as client:
            whole = await client.chat.completions.create(model="ramify", messages=messages)
            stream = await client.chat.completions.create(model="ramify", messages=messages, stream=True)
            parts = [chunk.choices[0].delta.content or "" async for chunk in stream]
        return whole.choices[0].message.content, "".join(parts)

    whole, streamed = asyncio.run(main())
    assert whole == streamed


def test_a_model_is_a_lane_or_a_strategy(chat: openai.OpenAI, pools: Pools, ramify: Ramify):
    names = [model.id for model in chat.models.list()]
    assert names[:2] == ["ramify", "ramify-batch"]
    assert "ramify/deep" in names
    assert chat.models.retrieve("ramify/deep").id == "ramify/deep"
    batch = ask(chat, "why?", model="ramify-batch", extra_body={"ramify": {"deadline_s": 77, "top_n": 3}})
    deep = ask(chat, "how?", model="ramify/deep")
    assert ramify.status(batch.ramify["job_id"]).lane == "batch"
    assert ramify.status(batch.ramify["job_id"]).deadline_s == 77
    job = ramify._jobs.job(deep.ramify["job_id"])
    assert job
    assert (job.request.strategy, job.request.lane) == ("deep", "interactive")


def test_what_was_said_before_is_read(chat: openai.OpenAI, pools: Pools, monkeypatch: pytest.MonkeyPatch):
    read = []

    def follow_up(_: Ramify, question: str, session: Session) -> SessionIntent:
        read.append((question, [one.content for one in session.messages]))
        queries = (TypedQuery(query=question),) if "second" in question else ()
        cost = Cost(llm_tokens_in=7)
        return SessionIntent(queries=queries, standalone="How do leases end?", reason="Nothing.", cost=cost)

    monkeypatch.setattr(Ramify, "read_question", follow_up)
    said = "They end [2].\n\nSources:\n- [2] Locks — notes/locks.md\n- [5] Leases — notes/l.md, p. 3"
    found = ask(chat, "Locks?", said, "And the second one?")
    assert read == [("And the second one?", ["Locks?", "They end [2].\n\nSources:\n1. Locks\n1. Leases"])]
    assert (found.ramify["question"], found.usage.prompt_tokens) == ("How do leases end?", 127)
    none = ask(chat, "Locks?", "x", "Something else")
    assert (none.choices[0].message.content, none.ramify["job_id"], none.usage.prompt_tokens) == ("Nothing.", None, 7)


IMAGE = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


REFUSED = (
    ({"model": "gpt-4"}, openai.NotFoundError, "model", "/v1/models"),
    ({"model": "ramify/none"}, openai.NotFoundError, "model", "/v1/models"),
    ({"messages": []}, openai.BadRequestError, "messages", "at least one"),
    ({"messages": [{"role": "user", "content": " "}]}, openai.BadRequestError, "messages[0].content", "empty"),
    ({"messages": [{"role": "assistant", "content": "x"}]}, openai.BadRequestError, "messages[0].role", "user's"),
    ({"messages": [{"role": "nobody", "content": "x"}]}, openai.BadRequestError, None, "role"),
    ({"messages": [{"role": "user", "content": IMAGE}]}, openai.BadRequestError, None, "only text"),
    ({"messages": [{"role": "user", "content": "x" * 5000}]}, openai.BadRequestError, None, "4000"),
    ({"n": 2}, openai.BadRequestError, "n", "one answer"),
    ({"tools": [TOOL], "tool_choice": "required"}, openai.BadRequestError, "tool_choice", "no tools"),
    ({"tools": [TOOL]}, openai.BadRequestError, "tools", "no tools"),
    ({"stop": ["."]}, openai.BadRequestError, "stop", "not cut"),
    ({"temperature": 5}, openai.BadRequestError, "temperature", "2"),
    ({"max_tokens": 0}, openai.BadRequestError, "max_tokens", "1"),
    ({"response_format": {"type": "json_object"}}, openai.BadRequestError, "response_format.type", "text"),
    ({"extra_body": {"ramify": {"tenant": "other"}}}, openai.BadRequestError, "ramify.tenant", "no field"),
    ({"extra_body": {"ramify": {"top_n": 0}}}, openai.BadRequestError, "top_n", "greater"),
)


def test_what_cannot_be_answered_is_said_in_the_form_of_openai(chat: openai.OpenAI, ramify: Ramify):
    for number, (more, kind, param, said) in enumerate(REFUSED):
        with pytest.raises(kind) as refused:
            ask(chat, "why?", **more, stream=number % 2 == 0)
        assert said in refused.value.message
        assert refused.value.type == "invalid_request_error"
        assert param in {None, refused.value.param}
    assert not ramify.jobs()


def test_tools_that_need_not_be_used_are_not(chat: openai.OpenAI, pools: Pools):
    assert (
        ask(chat, "why?", tools=[TOOL], tool_choice="none", temperature=0, max_tokens=5).choices[0].message.tool_calls
        is None
    )


def test_a_question_that_ends_without_an_answer_is_an_error(chat: openai.OpenAI, pools: Pools, ramify: Ramify):
    pools.after_s = None

    def cancel_next() -> None:
        until(lambda: ramify.jobs(state="queued"), 10, "the job is there")
        ramify.cancel(ramify.jobs(state="queued")[0].job_id)

    for stream in (False, True):
        thread = threading.Thread(target=cancel_next)
        thread.start()
        with pytest.raises(openai.APIError, match="cancelled"):
            list(ask(chat, "why?", stream=stream))
        thread.join()
    assert len(ramify.jobs()) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_a_job_is_cancelled_when_its_client_goes_away(
    chat: openai.OpenAI, pools: Pools, ramify: Ramify, *, stream: bool
):
    pools.after_s = None
    body = {"model": "ramify", "stream": stream, "messages": [{"role": "user", "content": "why?"}]}
    with socket.create_connection((chat.base_url.host, chat.base_url.port or 80)) as raw:
        payload = json.dumps(body)
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        raw.sendall(f"{head}Content-Length: {len(payload)}\r\n\r\n{payload}".encode())
        until(lambda: ramify.jobs(state="queued"), 10, "the job is there")
        time.sleep(0.1)
    until(lambda: ramify.jobs(state="cancelled"), 10, "the job is cancelled")


def test_pieces_are_all_of_the_text():
    for text in (
        TEXT,
        "缓存一致性的问题在于失效的时机[12]。" * 40,
        "",
        "\n\n",
        "x" * 3000,
        "[" * 300 + "[1]",
        "a  b\n" * 50,
    ):
        assert "".join(pieces(text)) == text
        assert all(len(piece) < 1000 for piece in pieces(text))


@pytest.mark.parametrize("content", [r'"\ud800"', r'[{"type": "text", "text": "a \udfff"}]'])
def test_half_a_surrogate_pair_is_refused_in_openais_form(http: TestClient, content: str):
    body = f'{{"model": "ramify", "messages": [{{"role": "user", "content": {content}}}]}}'
    refused = http.post("/v1/chat/completions", content=body, headers={"content-type": "application/json"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "messages[0].content")
