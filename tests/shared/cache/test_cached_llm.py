"""Identical calls of the LLM are made once for all jobs of a tenant, over a real Redis and real HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
import redis

from shared.cache import Cache
from shared.cached_llm import CachedLLM, cached_llm
from shared.errors import RamifyError, ReplyError, TransientError
from shared.models import Cost, Lane
from shared.providers.lanes import in_lane
from shared.providers.llm.client import ChatClient, LLMReply, spent
from shared.providers.llm.dialogue import Dialogue
from shared.providers.metering import Account, BudgetError, Meter, PaidUse, Refusal, metered
from shared.settings import Settings, load_settings
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Fault, Hang, Reply, Slow, Step
from tests.support.waiting import until

JOBS = 12
Make = Callable[..., CachedLLM]


def fine(text: str) -> str:
    """What the tests take for a reply that can be used."""
    if "fine" not in text:
        raise ReplyError(f"{text} is not fine")
    return text


def complete(llm: CachedLLM, prompt: str = "Split this.", **options: Any) -> LLMReply:
    return llm.complete(prompt, **{"timeout_s": 20.0, "check": fine, **options})


@pytest.fixture
def make(server: FakeOpenAI, client: redis.Redis) -> Iterator[Make]:
    """LLMs as those of several workers: each with a cache and a client of its own."""
    with ExitStack() as stack:

        def build(tenant: str = "acme", kind: str = "summary", **options: Any) -> CachedLLM:
            base: dict[str, Any] = {"llm_base_url": server.url, "llm_model": "m", "llm_attempts": 1}
            settings: Settings = load_settings(**{**base, **options})
            llm = stack.enter_context(ChatClient(settings))
            return CachedLLM(llm, Cache(client, settings), settings, tenant, kind)

        yield build


def at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result() for future in [threads.submit(call) for call in calls]]


def entries(client: redis.Redis) -> list[bytes]:
    return client.keys("ramify:cache:*{*")


def test_given_twelve_identical_calls_of_four_workers_then_one_is_made_and_one_job_pays(
    server: FakeOpenAI, make: Make
) -> None:
    server.handle("chat", lambda _: Slow(0.5, Reply("fine")))
    workers = [make() for _ in range(4)]

    replies = at_once([lambda llm=llm: complete(llm) for llm in workers * 3])

    assert len(server.requests()) == 1
    assert {reply.text for reply in replies} == {"fine"}
    costs = [reply.cost for reply in replies if reply.cost]
    assert len(costs) == 1
    assert costs[0].llm_calls == 1
    assert costs[0].llm_tokens_in
    assert not complete(make()).cost, "and it is kept"


def test_given_a_reply_that_ends_in_the_middle_then_who_gets_it_from_another_job_is_told(
    server: FakeOpenAI, make: Make
) -> None:
    half = {"choices": [{"message": {"content": "fine, but"}, "finish_reason": "length"}]}
    server.handle("chat", lambda _: Reply(body=half))
    assert [complete(make()).cut, complete(make()).cut] == [True, True]
    assert len(server.requests()) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"tenant": "other"}, {"kind": "decomposition"}, {"llm_model": "m2"}, {"llm_max_tokens": 77},
    ],
)  # fmt: skip
def test_given_another_tenant_model_or_purpose_then_a_call_of_its_own_is_made(
    server: FakeOpenAI, make: Make, other: dict[str, Any]
) -> None:
    server.handle("chat", lambda _: "fine")
    assert complete(make()).calls == 1
    assert complete(make(**other)).calls == 1
    assert complete(make(**other)).calls == 0


def test_given_another_prompt_or_length_then_a_call_of_its_own_is_made(server: FakeOpenAI, make: Make) -> None:
    server.handle("chat", lambda _: "fine")
    llm = make()
    asked = [complete(llm), complete(llm, "Split that."), complete(llm, max_tokens=7), complete(llm, "Split this. ")]
    assert [reply.calls for reply in asked] == [1, 1, 1, 1]


@pytest.mark.parametrize("options", [{"cache": {"enabled": False}}, {}])
def test_given_no_cache_or_no_check_then_each_call_is_made(
    server: FakeOpenAI, make: Make, options: dict[str, Any], client: redis.Redis
) -> None:
    server.handle("chat", lambda _: "fine")
    llm = make(**options)
    check = fine if options else None
    assert [reply.calls for reply in at_once([lambda: complete(llm, check=check)] * 3)] == [1, 1, 1]
    assert entries(client) == []
    assert cached_llm(llm.llm, None, llm.settings, "acme", "summary") is llm.llm
    assert cached_llm(None, llm.cache, llm.settings, "acme", "summary") is None


@pytest.mark.parametrize("bad", [Reply("poor"), Fault(400), Fault(500)])
def test_given_a_reply_of_no_use_or_a_failure_then_nobody_else_gets_it(
    server: FakeOpenAI, make: Make, client: redis.Redis, bad: Step
) -> None:
    server.script("chat", Slow(0.3, bad))
    server.handle("chat", lambda _: "fine")
    llm = make()
    failed: list[RamifyError] = []

    def ask() -> LLMReply | None:
        try:
            return complete(llm)
        except RamifyError as error:
            failed.append(error)
            return None

    replies = at_once([ask] * 4)

    assert len(failed) == 1
    assert spent(failed[0]).calls == 1, "who made the call pays for it"
    assert [reply.text for reply in replies if reply] == ["fine"] * 3
    assert len(server.requests()) == 2
    assert len(entries(client)) == 1


class Empty(Account):
    """A budget that is used up."""

    of, counts_money = "", False

    def reserve(self, hold: str, use: PaidUse) -> Refusal | None:
        return Refusal("max_calls", 1, 0)

    def settle(self, hold: str, use: PaidUse) -> None:
        raise AssertionError("nothing was reserved")


def test_given_a_job_whose_budget_refuses_the_call_then_others_make_it_and_it_may_have_theirs(
    server: FakeOpenAI, make: Make, client: redis.Redis
) -> None:
    server.handle("chat", lambda _: "fine")
    llm, poor = make(), Meter([Empty()], load_settings().prices)
    with metered(poor), pytest.raises(BudgetError):
        complete(llm)
    assert entries(client) == []
    assert complete(llm).calls == 1
    with metered(poor):
        assert complete(llm).cost == Cost(), "it costs nothing"


def test_given_a_call_that_hangs_then_who_waits_for_it_asks_within_its_own_time(server: FakeOpenAI, make: Make) -> None:
    server.script("chat", Hang(30))
    server.handle("chat", lambda _: "fine")
    llm = make()

    def hang() -> None:
        with pytest.raises(TransientError):
            complete(llm, timeout_s=8.0)

    hanging = threading.Thread(target=hang)
    hanging.start()
    until(lambda: len(server.requests()) == 1)

    began = time.monotonic()
    reply = complete(make(), timeout_s=4.0)

    assert reply.calls == 1
    assert 1.9 <= time.monotonic() - began < 4.0, "half of its time, then its own call"
    hanging.join()


def test_given_a_batch_call_under_way_then_an_interactive_one_does_not_wait_for_it_and_both_share_what_is_kept(
    server: FakeOpenAI, make: Make, client: redis.Redis
) -> None:
    server.script("chat", Slow(3, Reply("fine, by the batch")))
    server.handle("chat", lambda _: "fine, at once")

    def in_batch() -> LLMReply:
        with in_lane(Lane.BATCH):
            return complete(make())

    with ThreadPoolExecutor(2) as threads:
        leads = threads.submit(in_batch)
        until(lambda: len(server.requests()) == 1)
        follows = threads.submit(in_batch)
        assert complete(make()).text == "fine, at once"
        assert not leads.done()
        assert leads.result().calls == 1
        assert follows.result().calls == 0
    assert len(entries(client)) == 1
    assert complete(make()).calls == 0


def test_given_a_first_reply_of_no_use_then_the_second_ask_is_shared_too(server: FakeOpenAI, make: Make) -> None:
    server.handle("chat", lambda body: "fine" if "again" in body["messages"][0]["content"] else "poor")

    def ask(llm: CachedLLM) -> tuple[str | None, int]:
        dialogue = Dialogue(llm, fine, 20.0, wanted="split", instead="Rules did it.")
        return dialogue.reply("first", lambda fault: f"again: {fault}"), dialogue.cost.llm_calls

    results = at_once([lambda llm=llm: ask(llm) for llm in [make(), make()] * 3])

    assert {text for text, _ in results} == {"fine"}
    assert server.prompts().count("first") == 6, "what cannot be used is not shared"
    assert len(server.prompts()) == 7
    assert sum(calls for _, calls in results) == 7
