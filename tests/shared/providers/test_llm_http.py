"""The chat client and the JSON client over real HTTP, with each fault that a server can show."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import stamina
from pydantic import SecretStr
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from shared.errors import PermanentError, RamifyError, ReplyError, SettingsError, TransientError
from shared.providers.gates import Gate
from shared.providers.http import JsonClient
from shared.providers.llm.client import ChatClient, spent
from shared.providers.llm.prompts import Memory, decompose_again_prompt, decompose_prompt, summarise_prompt
from shared.providers.llm.replies import parse_decomposition, summary_text
from shared.settings import Settings
from shared.settings.services import ProviderSettings
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import CutOff, Drip, Fault, Hang, Malformed, Reply, Slow, Step

KEY = "sk-secret-0123456789"
PROMPT = "the private words of the prompt"


@pytest.fixture
def no_waits() -> Iterator[None]:
    stamina.set_testing(True, attempts=10, cap=True)
    yield
    stamina.set_testing(False)


@pytest.fixture
def waits() -> Iterator[list[float]]:
    """The seconds that were really waited between tries."""
    waited: list[float] = []

    def note(details: RetryDetails) -> None:
        waited.append(details.wait_for)

    set_on_retry_hooks([note])
    yield waited
    set_on_retry_hooks(None)


def chat(server: FakeOpenAI, **changes: object) -> ChatClient:
    values = {"llm_model": "fake", "llm_base_url": server.url, "llm_api_key": KEY} | changes
    return ChatClient(Settings(**values))


def ask(server: FakeOpenAI, timeout_s: float = 5.0, **changes: object):
    with chat(server, **changes) as client:
        return client.complete(PROMPT, timeout_s=timeout_s)


def failed(server: FakeOpenAI, kind: type[RamifyError], timeout_s: float = 5.0, **changes: object) -> RamifyError:
    with pytest.raises(kind) as caught:
        ask(server, timeout_s, **changes)
    for secret in (KEY, PROMPT, "private words"):
        assert secret not in str(caught.value)
        assert secret not in repr(caught.value)
    return caught.value


def test_given_a_good_server_then_text_tokens_and_calls_come_back(server: FakeOpenAI):
    server.script("chat", Reply("hello 你好", tokens_in=12, tokens_out=3))

    reply = ask(server, llm_max_tokens=77)

    assert (reply.text, reply.tokens_in, reply.tokens_out, reply.calls) == ("hello 你好", 12, 3, 1)
    (request,) = server.requests()
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["messages"] == [{"role": "user", "content": PROMPT}]
    assert (request.body["model"], request.body["max_tokens"]) == ("fake", 77)


def test_given_no_key_then_no_authorization_is_sent(server: FakeOpenAI):
    ask(server, llm_api_key="")

    assert "authorization" not in server.requests()[0].headers


def test_given_many_threads_then_each_gets_its_own_answer_over_few_connections(server: FakeOpenAI):
    server.handle("chat", lambda body: f"you said {body['messages'][0]['content']}")

    with chat(server) as client, ThreadPoolExecutor(4) as threads:
        texts = list(threads.map(lambda n: client.complete(str(n), timeout_s=10).text, range(40)))

    assert texts == [f"you said {n}" for n in range(40)]
    assert server.connections <= 4


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize(
    "fault", [Fault(s) for s in (408, 409, 425, 429, 500, 502, 503, 529)] + [CutOff(), CutOff(0), Hang(0)]
)
def test_given_a_passing_fault_then_it_is_tried_again_and_calls_are_counted(server: FakeOpenAI, fault: Step):
    server.script("chat", fault, fault, Reply("fine"))

    reply = ask(server)

    assert (reply.text, reply.calls) == ("fine", 3)


@pytest.mark.usefixtures("no_waits")
def test_given_a_lasting_500_then_it_is_transient_after_all_attempts_and_its_calls_are_told(server: FakeOpenAI):
    server.handle("chat", lambda _: Fault(500, message=f"you sent {PROMPT} with {KEY}"))

    error = failed(server, TransientError, llm_attempts=4)

    assert "LLM server at 127.0.0.1:" in str(error)
    assert "answered 500" in str(error)
    assert len(server.requests()) == spent(error).calls == 4


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_given_retry_after_that_fits_then_no_less_is_waited(server: FakeOpenAI, waits: list[float], form: str):
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    server.script("chat", Fault(429, retry_after=1 if form == "seconds" else date), Reply("fine"))

    assert ask(server, timeout_s=30).text == "fine"
    assert len(waits) == 1
    assert waits[0] >= (1 if form == "seconds" else 0.2)  # an HTTP date has whole seconds


@pytest.mark.parametrize("status", [429, 503])
def test_given_retry_after_beyond_the_time_left_then_it_fails_at_once_and_passes_it_on(server: FakeOpenAI, status: int):
    server.script("chat", Fault(status, retry_after=120))

    error = failed(server, TransientError)

    assert isinstance(error, TransientError)
    assert error.retry_after == 120
    assert len(server.requests()) == 1


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("value", ["soon", "-5", "nan", "1e9", "", "Thu, 99 Foo 2026", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_given_a_retry_after_that_says_nothing_then_the_usual_wait_holds(server: FakeOpenAI, value: str):
    server.script("chat", Fault(429, retry_after=value), Reply("fine"))

    assert ask(server).calls == 2


@pytest.mark.parametrize(
    ("status", "what_to_check"),
    [
        (400, "model name"), (401, "API key"), (403, "API key"), (404, "base URL"), (413, "too long"),
        (422, "model name"), (301, "base URL"),
    ],
)  # fmt: skip
def test_given_a_refusal_then_it_is_permanent_and_says_what_to_check(
    server: FakeOpenAI, status: int, what_to_check: str
):
    server.script("chat", Fault(status, code="some_code", message=f"bad key {KEY} or prompt {PROMPT}"))

    error = failed(server, PermanentError)

    assert f"answered {status} (some_code): " in str(error)
    assert what_to_check in str(error)
    assert server.url.split("/")[2] in str(error)
    assert len(server.requests()) == spent(error).calls == 1


def test_given_no_credit_left_then_429_is_permanent(server: FakeOpenAI):
    server.script("chat", Fault(429, retry_after=1, code="insufficient_quota"))

    assert "no credit left" in str(failed(server, PermanentError))


def test_given_a_model_that_refuses_options_then_they_are_left_out_for_good(server: FakeOpenAI):
    def picky(body):
        for name in ("temperature", "max_tokens"):
            if name in body:
                return Fault(400, code="unsupported_parameter", param=name)
        return f"most {body['max_completion_tokens']}"

    server.handle("chat", picky)

    with chat(server) as client:
        first, second = (client.complete(PROMPT, timeout_s=5, max_tokens=50) for _ in range(2))

    assert (first.text, first.calls) == ("most 50", 3)
    assert second.calls == 1


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize(
    "slow",
    [
        Hang(60),
        Slow(60, Reply("late")),
        Drip(pause_s=0.05),
        Drip(pause_s=0.05, headers=True),
        Drip(pause_s=0.15, size=8, headers=True),
    ],
)
def test_given_a_server_that_takes_too_long_then_the_whole_call_ends_in_time(server: FakeOpenAI, slow: Step):
    server.handle("chat", lambda _: slow)
    began = time.monotonic()

    error = failed(server, TransientError, timeout_s=0.5)

    assert "did not answer in the time that was left" in str(error)
    assert spent(error).calls >= 1
    assert time.monotonic() - began < 5  # each of these servers takes far longer


@pytest.mark.parametrize(
    ("first", "second"), [(CutOff(10), CutOff(20)), (Hang(60), Hang(60))], ids=["broken off", "hanging"]
)
def test_given_the_same_fault_twice_then_its_sentence_is_the_same_and_a_job_says_it_once(
    server: FakeOpenAI, first: Step, second: Step
):
    server.script("chat", first, second)
    sentences = {str(failed(server, TransientError, llm_attempts=1, timeout_s=timeout)) for timeout in (0.8, 0.9)}
    assert len(sentences) == 1


@pytest.mark.usefixtures("no_waits")
def test_given_one_try_that_hangs_then_llm_timeout_ends_it_and_the_next_succeeds(server: FakeOpenAI):
    server.script("chat", Hang(60), Reply("fine"))

    assert ask(server, timeout_s=30, llm_timeout_s=0.3).calls == 2


@pytest.mark.parametrize("seconds", [0.0, -3.0])
def test_given_no_time_left_then_nothing_is_sent(server: FakeOpenAI, seconds: float):
    error = failed(server, TransientError, timeout_s=seconds)

    assert "no time is left" in str(error)
    assert spent(error).calls == len(server.requests()) == 0


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        (Malformed(), "is no JSON"),
        (Malformed(b""), "is no JSON"),
        (Malformed(b"<html>login</html>"), "is no JSON"),
        (Malformed(b'{"a": NaN}'), "is no JSON"),
        (Malformed(b"[" * 200_000), "is no JSON"),
        (Malformed(b"\xff\xfe\xfa"), "is no JSON"),
        (Malformed(b"[1]"), "no object"),
        (Malformed(b'{"x": "' + b"a" * 5_000_000 + b'"}'), "more than 4,000,000 bytes"),
        (Reply(body={}), "no choices"),
        (Reply(body={"choices": []}), "no choices"),
        (Reply(body={"choices": "x"}), "no choices"),
        (Reply(body={"choices": [{"message": None}]}), "no choices"),
        (Reply(body={"choices": [{"message": {"content": None}}]}), "no text"),
        (Reply(body={"choices": [{"message": {"content": " \n"}, "finish_reason": "length"}]}), "was used up"),
        (Reply(body={"choices": [{"message": {"content": ""}, "finish_reason": ["odd"]}]}), "no text"),
    ],
)  # fmt: skip
def test_given_an_unusable_reply_then_it_is_a_reply_error_after_one_call(server: FakeOpenAI, step: Step, fault: str):
    server.script("chat", step)

    error = failed(server, ReplyError)

    assert fault in str(error)
    assert len(server.requests()) == spent(error).calls == 1


def test_given_an_empty_text_then_its_tokens_still_count(server: FakeOpenAI):
    server.script("chat", Reply("", tokens_in=40, tokens_out=2000))

    cost = spent(failed(server, ReplyError))

    assert (cost.tokens_in, cost.tokens_out, cost.calls) == (40, 2000, 1)


@pytest.mark.parametrize(
    "usage", [None, {}, "x", {"prompt_tokens": None, "completion_tokens": -1}, {"prompt_tokens": True}]
)
def test_given_missing_or_nonsense_usage_then_tokens_are_zero(server: FakeOpenAI, usage: object):
    server.script("chat", Reply(body={"choices": [{"message": {"content": "hi"}}], "usage": usage}))

    reply = ask(server)

    assert (reply.text, reply.tokens_in, reply.tokens_out) == ("hi", 0, 0)


def test_given_content_in_parts_and_half_a_surrogate_pair_then_the_text_can_be_encoded(server: FakeOpenAI):
    parts = [{"type": "text", "text": "a\ud800"}, {"type": "image"}, {"type": "text", "text": "b"}]
    server.script("chat", Reply(body={"choices": [{"message": {"content": parts}}]}))

    assert ask(server).text == "a?b"


def test_given_a_prompt_that_is_no_valid_unicode_then_it_is_sent_all_the_same(server: FakeOpenAI):
    with chat(server) as client:
        client.complete("half \ud800 pair", timeout_s=5)

    assert server.prompts() == ["half ? pair"]


def test_given_nothing_that_listens_then_it_is_transient_and_names_the_host():
    with FakeOpenAI() as closed:
        pass

    error = failed(closed, TransientError, timeout_s=0.4)

    assert f"LLM server at {closed.url.split('/')[2]} cannot be reached" in str(error)


def test_given_a_closed_idle_connection_then_the_next_call_opens_another(server: FakeOpenAI):
    with chat(server) as client:
        client.complete(PROMPT, timeout_s=5)
        server._server.drop_connections()

        assert client.complete(PROMPT, timeout_s=5).text
    assert server.connections == 2


def test_given_a_proxy_in_the_environment_then_calls_go_through_it_unless_the_host_is_exempt(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
    base = "http://llm.invalid/v1"  # never resolves; the fake answers 404 to a proxy's absolute path

    assert "llm.invalid answered 404" in str(failed(server, PermanentError, llm_base_url=base))

    monkeypatch.setenv("no_proxy", "llm.invalid")
    assert "cannot be reached" in str(failed(server, TransientError, llm_base_url=base, llm_attempts=1))


@pytest.mark.parametrize(
    ("missing", "name"), [({"llm_model": ""}, "llm_model"), ({"llm_base_url": None}, "llm_base_url")]
)
def test_given_half_the_settings_then_the_missing_one_is_named(server: FakeOpenAI, missing: dict, name: str):
    with pytest.raises(SettingsError, match=name):
        chat(server, **missing)


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_given_a_key_that_no_header_can_hold_then_it_is_refused_unseen(server: FakeOpenAI, key: str):
    with pytest.raises(SettingsError, match="API key of the LLM server") as caught:
        chat(server, llm_api_key=key)

    assert key not in str(caught.value)


def test_given_a_key_with_a_newline_at_its_end_then_it_is_trimmed(server: FakeOpenAI):
    ask(server, llm_api_key=f"{KEY}\n")

    assert server.requests()[0].headers["authorization"] == f"Bearer {KEY}"


def test_given_credentials_and_a_query_in_the_url_then_both_are_used_and_no_log_shows_the_password(
    server: FakeOpenAI, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    base = server.url.replace("://", "://me:pass-word@") + "?api-version=1"

    with JsonClient(base, SecretStr(""), Gate("rerank", base, ProviderSettings()), attempts=1) as client:
        body = {"model": "m", "query": "slow query", "documents": ["other", "a slow query"]}
        reply = client.post("/rerank", body, timeout_s=5)

    assert [result["index"] for result in reply.body["results"]] == [1, 0]
    assert reply.calls == 1
    assert server.requests("rerank")[0].headers["authorization"].startswith("Basic ")
    assert "pass-word" not in caplog.text


def test_given_a_log_at_debug_then_neither_key_nor_prompt_is_in_it(
    server: FakeOpenAI, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    server.script("chat", Fault(500), Reply("fine"))

    ask(server)

    assert "stamina" in caplog.text
    assert KEY not in caplog.text
    assert PROMPT not in caplog.text


@pytest.mark.usefixtures("no_waits")
def test_given_another_server_then_sentences_name_it_and_an_error_tells_its_calls(server: FakeOpenAI):
    server.handle("embeddings", lambda _: Fault(503))

    with (
        JsonClient(server.url, SecretStr(""), Gate("embedding", server.url, ProviderSettings()), attempts=2) as client,
        pytest.raises(TransientError, match=r"^embedding server at") as caught,
    ):
        client.post("/embeddings", {"model": "m", "input": ["a"]}, timeout_s=5)

    assert caught.value.calls == 2
    assert spent(ValueError()).calls == 0


def test_given_the_fakes_own_embeddings_then_shared_words_are_closer(server: FakeOpenAI):
    texts = ["slow database query", "the database query is slow", "cats like fish"]
    with JsonClient(server.url, SecretStr(""), Gate("embedding", server.url, ProviderSettings()), attempts=1) as client:
        data = client.post("/embeddings", {"model": "m", "input": texts}, timeout_s=5).body["data"]

    vectors = [entry["embedding"] for entry in data]
    near, far = (sum(a * b for a, b in zip(vectors[0], other, strict=True)) for other in vectors[1:])
    assert near > 0.5 > far


@pytest.mark.parametrize(
    "question", ["How do we make our database queries much faster?", "如何优化我们的数据库查询性能？"]
)
def test_given_the_whole_dialogue_then_decomposition_second_ask_and_summary_work(server: FakeOpenAI, question: str):
    server.script("chat", "<decomposition><subquery>")
    with chat(server) as client:
        first = client.complete(decompose_prompt(question), timeout_s=5)
        with pytest.raises(ReplyError, match="cut off") as fault:
            parse_decomposition(first.text)
        second = client.complete(decompose_again_prompt(question, str(fault.value)), timeout_s=5)
        memory = Memory(number=1, facet="core", path="db.md", text="Use an index. It helps.")
        answer = client.complete(summarise_prompt(question, [memory], []), timeout_s=5)

    assert [s.dimension.value for s in parse_decomposition(second.text)] == ["core", "why", "how", "note"]
    assert summary_text(answer.text) == "Use an index [1]."
    assert second.tokens_in > 0


def test_given_a_fake_with_a_key_then_another_key_gets_401():
    with FakeOpenAI(api_key="right") as server:
        assert "answered 401 (invalid_api_key)" in str(failed(server, PermanentError))
        assert ask(server, llm_api_key="right").text


@pytest.mark.parametrize(("reason", "cut"), [("length", True), ("stop", False), (["odd"], False), (None, False)])
def test_given_a_text_that_used_up_its_tokens_then_the_reply_says_that_it_is_cut(
    server: FakeOpenAI, reason: object, cut: bool
):
    server.script("chat", Reply(body={"choices": [{"message": {"content": "half a"}, "finish_reason": reason}]}))
    assert ask(server).cut is cut
