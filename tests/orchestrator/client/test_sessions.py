"""Conversations in a real Redis."""

import pytest

from orchestrator.planning.intent import intent_by_rules
from orchestrator.sessions import KeptSession
from shared.errors import InputError
from shared.models import Hit
from shared.models.find import SessionResult
from shared.models.request import ChatMessage


def test_given_messages_when_kept_then_they_come_back_in_order_with_the_summary(client, settings):
    kept = KeptSession(client, settings, "chat")
    kept.append("user", "穿透是什么？")
    kept.append("assistant", "A miss for a key that does not exist.")
    kept.summarise("about caches")
    held = KeptSession(client, settings, "chat").load()
    assert held.messages[0] == ChatMessage(role="user", content="穿透是什么？")
    assert (len(held.messages), held.summary) == (2, "about caches")
    assert not KeptSession(client, settings, "chat", tenant="other").load()


def test_given_more_than_a_hundred_when_kept_then_the_oldest_go_and_the_keys_expire(client, settings):
    kept = KeptSession(client, settings, "chat", "t")
    kept.summarise("s")
    for number in range(105):
        kept.append("user", str(number))
    held = kept.load()
    assert (len(held.messages), held.messages[0].content) == (100, "5")
    for key in ("ramify:session:{t:chat}", "ramify:session:{t:chat}:summary"):
        assert 0 < client.ttl(key) <= settings.jobs.ttl_s


def test_given_results_when_remembered_then_a_follow_up_counts_in_them(client, settings):
    kept = KeptSession(client, settings, "chat")
    hits = [Hit(chunk_id=f"c{n}", doc_id="d", path="p.md", title=f"Page {n}", text="t", score=1 / n) for n in (1, 2, 3)]
    found = SessionResult(question="q", retrieval=True, mode="default", hits=hits)
    kept.remember("How is Redis persisted?", found)
    assert intent_by_rules("tell me more about the second", kept.load()).standalone.startswith("Page 2")
    kept.remember("thanks", found.model_copy(update={"hits": ()}))
    assert [message.role for message in kept.load().messages] == ["user", "assistant", "user"]


def test_given_a_session_when_dropped_then_nothing_is_left(client, settings):
    kept = KeptSession(client, settings, "chat")
    kept.append("user", "x")
    assert kept.drop()
    assert not kept.drop()
    assert client.keys("ramify:session:*") == []


@pytest.mark.parametrize(("role", "content"), [("robot", "x"), ("user", "x" * 8001)])
def test_given_a_message_that_cannot_be_taken_when_added_then_nothing_is_kept(client, settings, role, content):
    kept = KeptSession(client, settings, "chat")
    with pytest.raises(InputError):
        kept.append(role, content)
    assert not kept.load()


@pytest.mark.parametrize("name", ["", "a b", "a}b", "x" * 65, "../a\n"])
def test_given_a_bad_id_when_opened_then_it_is_refused(client, settings, name):
    with pytest.raises(InputError, match="session id"):
        KeptSession(client, settings, name)
    with pytest.raises(InputError, match="tenant"):
        KeptSession(client, settings, "chat", name)
