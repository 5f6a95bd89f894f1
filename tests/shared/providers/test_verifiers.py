"""The verifiers: what they ask, what they make of replies, and that none is believed which is not well formed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from shared.errors import RamifyError, ReplyError
from shared.providers.llm.client import ChatClient
from shared.providers.rerankers import fastembed_cross
from shared.providers.verifiers import Verified, Verifier, verifier
from shared.settings import Settings
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Fault, Hang, Reply

PAIRS = [("The relay was built by Ada.", "Ada built the relay."), ("Tom <b>sold</b> it.", "Ada kept it.")]


class Entailing:
    """Stands in for a cross-encoder: a logit over 0 where the passage is about Ada and the relay."""

    def rerank_pairs(self, pairs: list[tuple[str, str]], batch_size: int) -> Iterator[float]:
        return (4.0 if "relay" in passage and "relay" in claim else -4.0 for claim, passage in pairs)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    monkeypatch.setattr(fastembed_cross, "load_cross_encoder", lambda *_: Entailing())
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def build(server: FakeOpenAI) -> Iterator[Callable[[str], Verifier]]:
    made: list[Verifier | ChatClient] = []

    def make(provider: str) -> Verifier:
        given = {"provider": provider, "model": "m", "base_url": server.url}
        settings = Settings(verifier=given, llm_model="m", llm_base_url=server.url, llm_attempts=1)
        client = ChatClient(settings)
        found = verifier(settings, client)
        assert found is not None
        made.extend((found, client))
        return found

    yield make
    for one in made:
        one.close()


def entailed(*scores: float) -> Reply:
    rows = [[{"label": "ENTAILMENT", "score": one}, {"label": "NEUTRAL", "score": 1 - one}] for one in scores]
    return Reply(body=rows)  # type: ignore[arg-type] - as the servers of this shape reply


def scripted(server: FakeOpenAI, provider: str) -> None:
    rerank = [Reply(body={"results": [{"index": 0, "relevance_score": score}]}) for score in (0.9, 0.1)]
    server.script("rerank", *rerank if provider == "endpoint" else ())
    server.script("predict", *[entailed(0.9, 0.1)] if provider == "nli" else ())
    said = '<verdicts><v id="1">supported</v><v id="2">unsupported</v></verdicts>'
    server.script("chat", *[said] if provider == "chat" else ())


@pytest.mark.parametrize("provider", ["endpoint", "nli", "fastembed", "chat"])
def test_given_pairs_then_each_is_told_and_the_cost_is_known(
    build: Callable[[str], Verifier], server: FakeOpenAI, provider: str
) -> None:
    scripted(server, provider)
    found = Verified()
    build(provider).verify(PAIRS, 10, found)
    assert found.says == {PAIRS[0]: True, PAIRS[1]: False}
    assert found.cost.llm_calls + found.cost.rerank_calls == (2 if provider in {"endpoint", "fastembed"} else 1)


def test_given_markup_in_a_claim_then_it_stays_data_in_the_prompt(
    build: Callable[[str], Verifier], server: FakeOpenAI
) -> None:
    scripted(server, "chat")
    build("chat").verify(PAIRS, 10, Verified())
    (prompt,) = server.prompts()
    assert "<claim>Tom &lt;b&gt;sold&lt;/b&gt; it.</claim><passage>Ada kept it.</passage>" in prompt


@pytest.mark.parametrize(
    ("provider", "endpoint", "reply"),
    [
        ("endpoint", "rerank", Reply(body={"results": [{"index": 3, "relevance_score": 1}]})),
        ("nli", "predict", entailed(0.9)),
        ("nli", "predict", entailed(0.9, 7.0)),
        ("nli", "predict", Reply(body={"error": "no"})),
        ("chat", "chat", "Both are supported."),
        ("chat", "chat", '<verdicts><v id="1">supported</v><v id="1">supported</v></verdicts>'),
        ("chat", "chat", '<verdicts><v id="9">supported</v></verdicts>'),
        ("chat", "chat", '<verdicts><v id="1">maybe</v></verdicts>'),
    ],
)
def test_given_a_reply_of_another_shape_then_nothing_of_it_is_believed(
    build: Callable[[str], Verifier], server: FakeOpenAI, provider: str, endpoint: str, reply: Reply | str
) -> None:
    server.script(endpoint, reply)
    found = Verified()
    with pytest.raises(ReplyError):
        build(provider).verify(PAIRS, 10, found)
    assert found.says == {}


@pytest.mark.parametrize("provider", ["endpoint", "nli", "chat"])
@pytest.mark.parametrize("fault", [Fault(503), Fault(400), Hang()])
def test_given_a_server_that_fails_then_that_is_raised_in_time(
    build: Callable[[str], Verifier], server: FakeOpenAI, provider: str, fault: Fault | Hang
) -> None:
    name = {"endpoint": "rerank", "nli": "predict", "chat": "chat"}[provider]
    server.script(name, fault, fault)
    with pytest.raises(RamifyError):
        build(provider).verify(PAIRS, 0.4, Verified())


def test_given_no_verifier_or_no_llm_then_there_is_none() -> None:
    assert verifier(Settings()) is None
    assert verifier(Settings(verifier={"provider": "chat"})) is None
