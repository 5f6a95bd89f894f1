"""Nothing that was paid for is left out of a cost, also where the reply was of no use."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from shared.cache import CacheResult, CacheStatus
from shared.errors import RamifyError
from shared.models import Cost, Filters, SearchResult
from shared.providers.encoders.endpoint import EndpointEncoder
from shared.providers.fallbacks import Fallbacks, fell_back, noting
from shared.providers.llm.client import ChatClient
from shared.providers.metering import BudgetError, Meter, PaidUse, Refusal, metered, token_range
from shared.settings import load_settings
from shared.settings.services import Prices
from shared.settings.stages import ExpansionStage
from shared.store.base import BuiltWith, CollectionInfo
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Fault, Malformed, Reply
from workers.search import leaf
from workers.search.leaf import LeafQuery, run_search_stages
from workers.search.stages.expansion import expand
from workers.search.state import Query, SearchState, Tools


def test_given_rewrites_that_cannot_be_read_when_expanded_then_their_cost_counts(server: FakeOpenAI) -> None:
    server.script("chat", Reply("no rewrites at all", tokens_in=20, tokens_out=5))
    settings = load_settings(llm_base_url=server.url, llm_model="fake")
    with ChatClient(settings) as llm:
        query = Query("how does the queue keep order", Filters(), 10)
        state = expand(SearchState(query), ExpansionStage(stage="expansion"), Tools(settings=settings, llm=llm))
    assert state.cost == Cost(llm_calls=1, llm_tokens_in=20, llm_tokens_out=5)
    assert "was not rewritten" in state.warnings[0]


@pytest.mark.parametrize(
    ("second", "calls"), [(Fault(400), 2), (Malformed(b'{"data": [], "usage": {"total_tokens": 3}}'), 2)]
)
def test_given_a_batch_that_fails_when_embedded_then_the_batches_before_it_count(
    server: FakeOpenAI, second: Fault | Malformed, calls: int
) -> None:
    server.script("embeddings", Reply(), second)
    endpoint = {"provider": "endpoint", "base_url": server.url, "model": "fake", "dim": 64, "batch_size": 1}
    encoder = EndpointEncoder(load_settings(embedding=endpoint), attempts=1)
    with pytest.raises(RamifyError) as caught:
        encoder.embed_queries(["two words", "three more words"])
    encoder._client.close()
    read = 3 if isinstance(second, Malformed) else 0
    assert (caught.value.calls, caught.value.tokens) == (calls, 2 + read)


class _Stingy:
    """An account that gives no leave."""

    of, counts_money = "", False

    def reserve(self, hold: str, use: PaidUse) -> Refusal | None:
        return Refusal("max_calls", 0, 0)

    def settle(self, hold: str, use: PaidUse) -> None:
        raise AssertionError("nothing was reserved")


class _Keeping:
    """A cache that remembers what it was given to keep."""

    def __init__(self) -> None:
        self.held: list[SearchResult] = []

    def get_or_compute(self, kind, parts, model, compute, *, keep, **_):
        value = compute()
        if keep(value):
            self.held.append(value)
        return value, CacheResult(status=CacheStatus.COMPUTED)


def test_given_a_leaf_made_without_what_a_budget_refused_when_searched_then_it_is_not_kept_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another job with the money for it would be served the poorer leaf."""
    poorer = SearchResult(mode="deep", warnings=("not rewritten",), index_version=1)
    cache, settings = _Keeping(), load_settings()
    meter = Meter([_Stingy()], Prices())
    info = CollectionInfo(built_with=BuiltWith(sparse="s", avg_len=1.0), points=1, index_version=1)
    resources = SimpleNamespace(
        settings=settings, tools=lambda _: (info, Tools(settings=settings, llm=SimpleNamespace()))
    )
    ask = LeafQuery(text="q", strategy="deep", filters=Filters(), tenant="a", wanted=5)

    def refused(*_: object, **__: object) -> SearchResult:
        with pytest.raises(BudgetError, match="budget max_calls = 0 allows none") as refusal:
            meter.reserve(PaidUse(1))
        fell_back("llm", refusal.value)
        return poorer

    with metered(meter), noting(Fallbacks()):
        monkeypatch.setattr(leaf, "search", refused)
        found = run_search_stages(ask, resources, cache, 1)
        assert (found, cache.held) == (poorer, [])
        monkeypatch.setattr(leaf, "search", lambda *_, **__: poorer)
        found = run_search_stages(ask, resources, cache, 1)
    assert cache.held == [poorer], "what nobody refused is kept, also later in the same step"


@pytest.mark.parametrize(
    "text",
    [
        "Which queue keeps the order of its messages, and why?",
        "为什么消息队列能够保持顺序",
        "a b c d e f",
        "",
        "混合 mixed 文本",
    ],
)
def test_given_a_text_when_its_tokens_are_estimated_then_words_and_characters_lie_between(text: str) -> None:
    low, high = token_range(text)
    cjk = sum(not char.isascii() for char in text)
    assert low <= len([word for word in text.split() if word.isascii()]) + cjk <= high
