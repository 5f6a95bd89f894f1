"""Shares of the time that is left: of HTTP calls over a real server, and their sums over calls in turn."""

from __future__ import annotations

import time

import pytest

from shared.errors import DeadlineError, TransientError
from shared.models import Hit
from shared.providers.http_deadline import time_left
from shared.providers.llm.client import ChatClient
from shared.providers.rerankers import reranker
from shared.providers.time_shares import LEAST_S, SHARES, seconds_for, share_of
from shared.settings import load_settings
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Drip, Hang, Step


@pytest.mark.parametrize("call", SHARES)
def test_given_any_call_when_it_takes_its_share_then_something_is_left(call: str) -> None:
    assert LEAST_S <= seconds_for(call, 10.0) < 10.0
    assert seconds_for(call, 100.0) == pytest.approx(SHARES[call] * 100)
    assert seconds_for(call, LEAST_S) == LEAST_S
    assert seconds_for(call, LEAST_S / 2) == 0.0
    with pytest.raises(DeadlineError), share_of(call, LEAST_S / 2):
        raise AssertionError("not begun")


def test_given_a_share_in_a_share_when_entered_then_the_earlier_end_holds() -> None:
    with share_of("embedding", 4.0), share_of("summary", 100.0):
        assert time_left() <= 1.0


@pytest.mark.parametrize("step", [Hang(30), Drip(0.1, headers=True)], ids=["hang", "drip"])
def test_given_a_server_that_hangs_when_asked_in_a_share_then_the_call_ends_with_it(
    server: FakeOpenAI, step: Step
) -> None:
    server.handle("chat", lambda _: step)
    begun = time.monotonic()
    settings = load_settings(llm_base_url=server.url, llm_model="fake")
    with ChatClient(settings) as llm, share_of("rewriting", 2.0), pytest.raises(TransientError):
        llm.complete("q", timeout_s=20)
    assert time.monotonic() - begun < 10.0


def test_given_a_chat_reranker_when_the_llm_hangs_then_a_try_has_no_more_than_the_reranks_timeout(
    server: FakeOpenAI,
) -> None:
    server.handle("chat", lambda _: Hang(30))
    rerank = {"provider": "chat", "timeout_s": 0.2}
    settings = load_settings(llm_base_url=server.url, llm_model="fake", llm_attempts=1, rerank=rerank)
    begun, built = time.monotonic(), reranker(settings)
    hits = (Hit(chunk_id="a", doc_id="a", path="a", title="a", text="a", score=1.0),)
    ranked = built.rerank("q", hits, 20)
    built.close()
    assert ranked.warnings
    assert time.monotonic() - begun < 5.0
