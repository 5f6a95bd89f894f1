"""A helper that hangs costs its own share of the time, never the job: every leaf is answered before the deadline."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.client import Ramify
from shared.models import Answer
from shared.models.degraded import Degradation
from tests.acceptance.conftest import NOTES, SHARED
from tests.fakes.answers import marks
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Drip, Hang, Reply, Step

DEADLINE_S = 10.0
QUESTION = "How do queues keep their order, and what does a broker cost?"
ASPECTS = [
    {"query": f"what about {name} in a queue?"} for name in ("order", "cost", "memory", "speed", "locks", "size")
]
CHAIN = [{"query": "Which tool keeps streams?"}, {"query": "What does #1 cost?", "depends_on": [1]}]
ROUTE = "<route><type>complex_reasoning</type><hops>aspects</hops><intent>general</intent></route>"


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory, fake: FakeOpenAI) -> Ramify:
    """Every call may take longer than a job here has, the LLM is asked wherever it can be, and nothing is cached."""
    models = {
        "llm_base_url": fake.url,
        "llm_model": "fake",
        "embedding": {"provider": "endpoint", "base_url": fake.url, "model": "fake", "dim": 64},
        "rerank": {"provider": "chat"},
        "routing": {"unsure_below": 1.0},
        "cache": {"enabled": False},
        # What many jobs in a row have met must not be the next one's: only calls of the same job are refused.
        "providers": {"breaker": {"failures": 1000}},
    }
    return SHARED.stack(tmp_path_factory.mktemp("patient"), [NOTES / "en" / "queues"], **models)


def good(body: dict[str, Any]) -> Step | str:
    """What a sensible LLM says to a prompt."""
    prompt = body["messages"][-1]["content"]
    return marks(body) if "<scores>" in prompt else ROUTE if "<route>" in prompt else Reply()


def fault(fake: FakeOpenAI, endpoint: str, holds: str, step: Step) -> None:
    """Requests of this endpoint whose text holds `holds` get `step`; others are answered."""
    other = {"chat": good}.get(endpoint, lambda _: Reply())
    fake.handle("chat", good)
    fake.handle(endpoint, lambda body: step if holds in str(body) else other(body))


def asked(client: Ramify, **options: object) -> Answer:
    """The answer with all of its leaves, which was there before the deadline."""
    job_id = client.submit(QUESTION, deadline_s=DEADLINE_S, **options)
    status = client.wait(job_id, 3 * DEADLINE_S)
    assert status.state == "done", status.error
    assert status.finished_at is not None
    assert status.finished_at - status.created_at < DEADLINE_S
    answer = client.result(job_id)
    assert answer.coverage == f"{len(answer.leaves)} of {len(answer.leaves)} leaves answered"
    assert not answer.partial
    assert answer.results
    assert status.degraded == answer.degraded
    return answer


@pytest.mark.parametrize(
    ("where", "options", "reason"),
    [
        (("embeddings", ""), {"subqueries": ASPECTS}, Degradation.EMBEDDING_UNAVAILABLE),
        (("chat", "<route>"), {}, Degradation.LLM_UNAVAILABLE),
        (("chat", "<decomposition>"), {}, Degradation.LLM_UNAVAILABLE),
        (("chat", "<rewrites>"), {"subqueries": ASPECTS, "mode": "deep"}, Degradation.LLM_UNAVAILABLE),
        (("chat", "<scores>"), {"subqueries": ASPECTS}, Degradation.RERANK_UNAVAILABLE),
        (("chat", "<passages>"), {"subqueries": CHAIN}, Degradation.LLM_UNAVAILABLE),
        (("chat", "<memories>"), {"summary": True, "subqueries": ASPECTS[:2]}, Degradation.LLM_UNAVAILABLE),
    ],
    ids=["embedding", "routing", "decomposition", "rewriting", "rerank", "binding", "summary"],
)
def test_given_a_helper_that_hangs_when_asked_then_all_leaves_answer_without_it(
    patient: Ramify, fake: FakeOpenAI, where: tuple[str, str], options: dict[str, Any], reason: Degradation
) -> None:
    fault(fake, *where, Hang(60))
    degraded = set(asked(patient, **options).degraded)
    if where[1] == "<passages>":  # the next rerank may ask the same LLM with less time than it has just let pass
        degraded.discard(Degradation.RERANK_UNAVAILABLE)
    assert degraded == {reason}


@pytest.mark.parametrize("step", [Hang(60), Drip(0.2)], ids=["hang", "drip"])
def test_given_an_llm_of_which_nothing_comes_when_it_is_asked_for_everything_then_the_answer_is_there(
    patient: Ramify, fake: FakeOpenAI, step: Step
) -> None:
    fault(fake, "chat", "", step)
    answer = asked(patient, mode="deep", summary=True)
    assert answer.summary.kind == "extractive"
    assert set(answer.degraded) <= {
        Degradation.LLM_UNAVAILABLE,
        Degradation.RERANK_UNAVAILABLE,
        Degradation.OUT_OF_TIME,
    }


def test_given_servers_that_answer_when_asked_for_everything_then_nothing_is_missing(
    patient: Ramify, fake: FakeOpenAI
) -> None:
    fault(fake, "chat", "", Reply())
    fake.handle("chat", good)
    assert asked(patient, summary=True).degraded == ()


def test_given_a_rerank_server_that_hangs_when_asked_then_the_fused_order_stands(
    with_models: Ramify, fake: FakeOpenAI
) -> None:
    fake.handle("rerank", lambda _: Hang(60))
    assert asked(with_models, subqueries=ASPECTS).degraded == (Degradation.RERANK_UNAVAILABLE,)
