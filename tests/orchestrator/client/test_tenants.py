"""Every way to ask, as two tenants whose corpora look alike: what one is told is what it would be told alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis
from pydantic import ValidationError
from qdrant_client import models

from orchestrator.planning.lists.planner import list_nodes, shards
from orchestrator.planning.lists.reading import read_question
from shared.cache import Cache
from shared.errors import InputError
from shared.models import Filters, SearchResult
from shared.models.enumeration import Scan, Values
from shared.models.find import Anchor, FindRequest, RelatedRequest
from shared.providers.rerankers import reranker
from shared.settings import Settings, load_settings
from tests.fakes.listing import TODAY
from tests.fakes.lookalikes import MARKS, files
from tests.fakes.two_tenants import World
from workers.enumerate.scan import ValueCache, counted, scan_shard
from workers.search.leaf import LeafQuery, run_rerank_stages, run_search_stages
from workers.search.related import contexts
from workers.search.state import Tools

STRATEGIES = sorted(load_settings().strategies)
QUESTIONS = (
    "How does Redis persistence fail and who owns it?",
    "缓存雪崩是怎么发生的？",
    "What else is affected by the page that Redis persistence names?",
)
_VOLATILE = {"timings_ms", "ms", "index_version"}


@pytest.fixture(scope="module")
def shared_settings(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Settings:
    return load_settings(redis={"url": redis_url}, data_dir=tmp_path_factory.mktemp("tenants"))


@pytest.fixture(scope="module")
def both(shared_settings: Settings) -> Iterator[World]:
    """Both tenants in one collection, the one with more files second."""
    world = World(shared_settings.data_dir / "both", shared_settings, ["alpha", "beta"])
    yield world
    world.close()


@pytest.fixture(scope="module")
def alone(shared_settings: Settings) -> Iterator[dict[str, World]]:
    """Each tenant in a collection of its own."""
    worlds = {name: World(shared_settings.data_dir / name, shared_settings, [name]) for name in MARKS}
    yield worlds
    for world in worlds.values():
        world.close()


def told(found: Any) -> Any:
    """What is told, without what differs from one time to the next."""
    value = found.model_dump(mode="json", warnings=False) if hasattr(found, "model_dump") else found
    if isinstance(value, dict):
        return {name: told(item) for name, item in value.items() if name not in _VOLATILE}
    return [told(item) for item in value] if isinstance(value, list | tuple) else value


def differences(here: Any, there: Any, at: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two values differ by more than the last digits of an engine's sums."""
    if isinstance(here, dict) and isinstance(there, dict) and here.keys() == there.keys():
        for name in here:
            yield from differences(here[name], there[name], f"{at}.{name}")
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for number, pair in enumerate(zip(here, there, strict=True)):
            yield from differences(*pair, f"{at}[{number}]")
    elif isinstance(here, float) and isinstance(there, float):
        if here != pytest.approx(there, rel=1e-5, abs=1e-6):
            yield at, here, there
    elif here != there:
        yield at, here, there


def ask(world: World, tenant: str, text: str, strategy: str, cache: Cache | None = None, **more: Any) -> SearchResult:
    given = {"filters": Filters(), "wanted": 30, "explain": True, **more}
    with world.asking(tenant):
        asked = LeafQuery.model_validate({"text": text, "strategy": strategy, "tenant": tenant, **given})
        first = run_search_stages(asked, world.resources, cache, 20.0)
        tools = Tools(settings=world.settings, reranker=reranker(world.settings), cache=cache, timeout_s=20.0)
        return run_rerank_stages(asked, first, tools)


def assert_own(world: World, tenant: str, found: Any) -> str:
    """Nothing in it is of the other tenant, by mark or by id; its text."""
    text = json.dumps(told(found), ensure_ascii=False)
    for name in ("only_a_alphamark", "only_b_betamark"):  # a warning says the question's own word again
        text = text.replace(f"No definition is called {name} here", "")
    other = next(name for name in MARKS if name != tenant)
    for mark in (MARKS[other], f"{other}mark", MARKS[other][:2]):
        assert mark not in text
    with world.asking(other):
        strangers = {name for name, _ in world.resources.store(other).read(None, ("doc_id",))}
    assert not [name for name in strangers if name in text]
    return text


def walked(world: World, tenant: str, strategy: str) -> list[SearchResult]:
    """Every question, under several filters, from a symbol and in several wordings."""
    narrow = Filters.model_validate({"tags": ["incident", "事故"], "paths": ["team/"], "after": "2026-01-01"})
    found = [ask(world, tenant, text, strategy) for text in QUESTIONS]
    found.append(ask(world, tenant, QUESTIONS[0], strategy, filters=narrow))
    found.append(ask(world, tenant, QUESTIONS[0], strategy, variants=("Redis persistence", "缓存雪崩 Ada", "Plan")))
    if strategy in {"two_pass", "multihop", "hierarchical", "default"}:
        symbols = ("total", "shop.cart.total", "only_a_alphamark", "only_b_betamark", "nothing.like_this")
        found += [ask(world, tenant, "what calls the total", strategy, near_symbol=name, depth=2) for name in symbols]
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_given_two_tenants_when_asked_by_any_strategy_then_each_is_told_what_it_is_told_alone(
    both: World, alone: dict[str, World], strategy: str
) -> None:
    for tenant in MARKS:
        found = walked(both, tenant, strategy)
        text = "".join(assert_own(both, tenant, one) for one in found)
        for mark in MARKS.values():  # all that a question by the other's name finds is the tenant's own, whatever it is
            assert_own(both, tenant, ask(both, tenant, mark, strategy).hits)
        assert MARKS[tenant] in text, "the tenant's own texts are found"
        assert sum(len(one.hits) for one in found) > 20
        expected = walked(alone[tenant], tenant, strategy)
        assert list(differences(told(found), told(expected))) == []
    assert both.spy.calls["query"] > 0


def test_given_what_was_asked_when_counted_then_every_way_into_the_store_was_seen_by_the_spy(both: World) -> None:
    ask(both, "alpha", QUESTIONS[0], "two_pass", near_symbol="total")
    with both.asking("alpha"):
        store = both.resources.store("alpha")
        store.count_values("tags", models.Filter(), 5)
    wanted = {"query", "idf", "scroll", "read", "count", "lookup", "count_values", "upsert", "set_payloads", "delete"}
    assert wanted <= set(both.spy.calls)
    with pytest.raises(AssertionError, match="asks for others"), both.asking("beta"):
        store.count(None)


def test_given_two_tenants_when_the_store_is_looked_at_then_no_id_is_shared_and_edges_stay_inside(both: World) -> None:
    chunks = {}
    for tenant in MARKS:
        with both.asking(tenant):
            fields = ("doc_id", "path", "text", "backlinks", "mentions", "namespace")
            chunks[tenant] = dict(both.resources.store(tenant).read(None, fields))
    for field in ("doc_id", None):
        ids = [{chunk[field] if field else name for name, chunk in own.items()} for own in chunks.values()]
        assert not ids[0] & ids[1]
    for tenant, own in chunks.items():
        assert {chunk["path"] for chunk in own.values()} >= set(files(tenant)) - {"team/lines.jsonl"}
        assert_own(both, tenant, list(own.values()))
        abstracts = [chunk["text"] for chunk in own.values() if chunk["namespace"].endswith(":dirs")]
        assert any(MARKS[tenant] in text for text in abstracts)


def test_given_the_same_links_when_one_tenant_ingests_anew_then_the_others_counts_stay(
    shared_settings: Settings, tmp_path: Path
) -> None:
    world = World(tmp_path, shared_settings, ["alpha", "beta"])
    with world.asking("beta"):
        before = dict(
            world.resources.store("beta").read(None, ("path", "backlinks", "mentions", "pending", "document_hash"))
        )

    gone = {path: text for path, text in files("alpha").items() if "redis" not in path and "zh" not in path}
    outcomes = world.ingest("alpha", gone)

    assert outcomes.count("removed") == 2
    with world.asking("beta"):
        fields = ("path", "backlinks", "mentions", "pending", "document_hash")
        assert dict(world.resources.store("beta").read(None, fields)) == before
        assert set(world.ingest("beta", files("beta"))) == {"unchanged"}
    with world.asking("alpha"):
        assert world.ingest("alpha", {}).count("removed") == len(gone) + 3, "a JSON Lines file has several documents"
        assert world.resources.store("alpha").count(None) == 0
    assert ask(world, "alpha", QUESTIONS[0], "default").hits == ()
    assert ask(world, "beta", QUESTIONS[0], "default").hits
    world.close()


def test_given_related_contexts_when_asked_with_another_tenants_anchors_then_nothing_of_it_is_named(
    both: World, alone: dict[str, World]
) -> None:
    names = set(Anchor.model_fields)
    hits = {tenant: ask(both, tenant, QUESTIONS[0], "default").hits for tenant in MARKS}
    anchors = {tenant: [Anchor(**hit.model_dump(include=names)) for hit in found] for tenant, found in hits.items()}
    for tenant in MARKS:
        with both.asking(tenant):
            own = contexts(anchors[tenant], Filters(), 5, both.resources.store(tenant))
        with alone[tenant].asking(tenant):
            assert contexts(anchors[tenant], Filters(), 5, alone[tenant].resources.store(tenant)) == own
        assert any(context.related for context in own.values())
        assert any(context.abstract for context in own.values())
        assert_own(both, tenant, [told(context) for context in own.values()])
    with both.asking("alpha"):
        stolen = contexts(anchors["beta"], Filters(), 5, both.resources.store("alpha"))
    assert_own(both, "alpha", [told(context) for context in stolen.values()])


LISTS = (
    "List all incidents",
    "列出所有事故",
    "How many documents are tagged redis?",
    "List all decisions without 缓存",
)


def listed(world: World, tenant: str, known: ValueCache, question: str) -> tuple[Values, Scan | None, Values, Any]:
    with world.asking(tenant):
        store = world.resources.store(tenant)
        values = known.of(store, Filters())
        reading = read_question(question, Filters(), values, TODAY)
        if reading.scan is None:
            return values, None, Values(), []
        count = counted(store, reading.scan)
        parts = shards(count.documents, 3, 8)
        tree = list_nodes(question, reading.scan.understood, parts)
        found = [scan_shard(store, reading.scan, node.shard, excerpts=5) for node in tree if node.shard is not None]
        rows = [[told(row) for row in one.rows] for one in found]
        return values, reading.scan, count, (rows, [one.scanned for one in found], [one.excerpts for one in found])


@pytest.mark.parametrize("question", LISTS)
def test_given_a_list_when_asked_for_then_rows_counts_and_known_values_are_the_tenants_own(
    both: World, alone: dict[str, World], question: str
) -> None:
    known = ValueCache(50)
    for tenant in (*MARKS, *MARKS):
        values, scan, count, rows = listed(both, tenant, known, question)
        expected = listed(alone[tenant], tenant, ValueCache(50), question)
        assert told(values) == told(expected[0])
        assert (told(scan), told(count), told(rows)) == (told(expected[1]), told(expected[2]), told(expected[3]))
        assert_own(both, tenant, [told(values), told(scan), rows])
        assert f"tag-{MARKS[tenant]}" in values.tags
        assert f"team/{MARKS[tenant]}/" in values.folders


def test_given_one_cache_when_both_ask_the_same_then_neither_is_served_what_the_other_was_told(
    shared_settings: Settings, tmp_path: Path, redis_url: str
) -> None:
    client = redis.Redis.from_url(redis_url)
    client.flushall()
    cache = Cache(client, shared_settings)
    world = World(tmp_path, shared_settings, ["alpha", "beta"], cache)
    for strategy in STRATEGIES:
        first = {tenant: ask(world, tenant, QUESTIONS[1], strategy, cache) for tenant in MARKS}
        queries = world.spy.calls["query"]
        for tenant in reversed(MARKS):
            again = ask(world, tenant, QUESTIONS[1], strategy, cache)
            assert [hit.chunk_id for hit in again.hits] == [hit.chunk_id for hit in first[tenant].hits]
            assert_own(world, tenant, again)
        assert world.spy.calls["query"] == queries, "the second time came from the cache"
    client.close()
    world.close()


FORGED = (
    {"tenant": "beta*"}, {"tenant": ""}, {"tenant": "alpha,beta"}, {"tenant": "alpha\nbeta"}, {"tenant": None},
    {"tenant": ["alpha", "beta"]}, {"tenant": {"any": ["alpha", "beta"]}}, {"filters": {"tenant": "beta"}},
    {"filters": {"namespace": "default", "tenant": "beta"}},
)  # fmt: skip


@pytest.mark.parametrize("forged", FORGED)
def test_given_a_forged_request_when_read_then_it_is_refused(both: World, forged: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FindRequest.model_validate({"query": "q", "tenant": "alpha", **forged})
    with pytest.raises(ValidationError):
        RelatedRequest.model_validate({"tenant": "alpha", **forged})
    given = {"text": "q", "strategy": "default", "filters": {}, "tenant": "alpha", "wanted": 5, **forged}
    with pytest.raises((InputError, ValidationError)), both.asking("alpha"):
        run_search_stages(LeafQuery.model_validate(given), both.resources, None, 5.0)


REACHING: Sequence[dict[str, Any]] = (
    {"filters": {"namespace": "beta"}},
    {"filters": {"paths": ["team/乙记betamark/", "", "team/"]}},
    {"filters": {"tags": ["tag-乙记betamark"]}},
    {"filters": {"kinds": ["memory", "directory", "resource"]}},
    {"filters": {"paths": ["../", "/", "%"]}},
    {"near_symbol": "only_b_betamark"},
    {"near_symbol": "shop.cart.only_b_betamark", "depth": 2},
    {"variants": ("乙记betamark", "Plan 乙记betamark", "tenant:beta")},
    {"text": "tenant=beta 乙记betamark"},
    {"text": 'title:"Plan 乙记betamark" [[Plan 乙记betamark]]'},
)


@pytest.mark.parametrize("strategy", ["default", "two_pass", "hierarchical", "multihop", "keyword"])
@pytest.mark.parametrize("reaching", REACHING)
def test_given_a_request_that_reaches_across_when_searched_then_it_finds_only_its_own(
    both: World, strategy: str, reaching: dict[str, Any]
) -> None:
    if "filters" in reaching:
        reaching = {**reaching, "filters": Filters.model_validate(reaching["filters"])}
    options = {"text": "redis 缓存", **reaching}
    found = ask(both, "alpha", options.pop("text"), strategy, **options)
    assert {both.spy.whose([hit.chunk_id]).get(hit.chunk_id) for hit in found.hits} <= {"alpha"}
    text = json.dumps([told(hit) for hit in found.hits], ensure_ascii=False)
    assert "betamark" not in text
    assert "乙记" not in text
    said = " ".join(found.warnings)
    assert "did you mean shop.cart.only_b" not in said
