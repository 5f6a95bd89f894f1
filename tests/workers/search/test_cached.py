"""Reranks by a model are kept for all who ask the same, without the chunks; those by rules are not kept."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import pytest
import redis

from shared.cache import Cache
from shared.models import Hit
from shared.providers.rerankers.base import Reranked, rescored
from shared.settings import Settings, load_settings
from workers.search.cached import reranked_once
from workers.search.state import Tools

HITS = [
    Hit(chunk_id=f"c{n}", doc_id="d", path=f"{n}.md", title=f"T{n}", text=f"text {n} " * 50, score=1 / (n + 1),
        parts={"bm25": 1 / (n + 1), "fused": 0.5})
    for n in range(5)
]  # fmt: skip


class Model:
    """Scores by the number in the id, highest first, and counts its calls."""

    name = "endpoint:m"

    def __init__(self) -> None:
        self.calls = 0

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:
        self.calls += 1
        ranked = rescored(hits, [int(hit.chunk_id[1:]) / 10 for hit in hits], [float(hit.chunk_id[1:]) for hit in hits])
        return Reranked(hits=ranked, reranker=self.name, calls=2, documents=len(hits), warnings=("slow",))

    def close(self) -> None: ...


@pytest.fixture
def settings() -> Settings:
    return load_settings(rerank={"provider": "endpoint", "base_url": "http://127.0.0.1:1", "model": "m"})


def tools(settings: Settings, client: redis.Redis, model: Model) -> Tools:
    given: Any = model
    return Tools(settings=settings, reranker=given, cache=Cache(client, settings))


def test_given_a_rerank_by_a_model_when_asked_again_then_it_is_the_same_and_free_and_its_entry_holds_no_text(
    client: redis.Redis, settings: Settings
) -> None:
    model = Model()
    first, again = (reranked_once(tools(settings, client, model), "t", "q", HITS, 5) for _ in range(2))
    assert [hit.chunk_id for hit in first.hits] == ["c4", "c3", "c2", "c1", "c0"]
    assert first == model.rerank("q", HITS, 5)
    assert again == first.model_copy(update={"calls": 0, "documents": 0})
    assert model.calls == 2, "once through the cache, once beside it"
    (entry,) = client.keys("ramify:cache:rerank:*}")
    assert b"text 1" not in zlib.decompress(client.get(entry))


@pytest.mark.parametrize(
    "other",
    [{"tenant": "u"}, {"question": "r"}, {"hits": HITS[:4]}, {"hits": [HITS[0].model_copy(update={"text": ""})]}],
)
def test_given_a_rerank_when_anything_that_it_depends_on_differs_then_the_model_is_asked(
    client: redis.Redis, settings: Settings, other: dict[str, Any]
) -> None:
    model, asked = Model(), {"tenant": "t", "question": "q", "hits": HITS}
    for ask in (asked, asked | other):
        reranked_once(tools(settings, client, model), **ask, timeout_s=5)
    assert model.calls == 2


def test_given_a_reranker_without_a_model_when_asked_then_nothing_is_kept(client: redis.Redis) -> None:
    model = Model()
    for _ in range(2):
        reranked_once(tools(load_settings(), client, model), "t", "q", HITS, 5)
    assert (model.calls, client.keys("ramify:cache:*")) == (2, [])
