"""Every score of `--explain --json` follows from what is printed: each strategy over the sample notes, recomputed.

The sums are those of docs/strategies.md ("A score by hand"), written down here once more: none of them calls the code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from math import exp, log
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from orchestrator.cli.render.answer import draw_explained
from shared.models import Facet, Filters, LeafResult, LeafStatus, Node, SearchResult
from shared.providers.rerankers import reranker
from shared.settings import Settings, load_settings
from shared.settings.strategies import built_in
from tests.fakes.two_tenants import World
from workers.merge.tree import apply_root_rerank, merge_tree
from workers.search.leaf import LeafQuery, run_rerank_stages, run_search_stages
from workers.search.state import Tools

NOTES = Path(__file__).parents[3] / "examples/notes/en"
QUESTION = "What happened when RabbitMQ lost messages, and which queue replaced it?"
EXACT = 1e-9
Detail = Mapping[str, Any]
CODE = """def retry_message(message):
    return replace_queue(message)


def replace_queue(queue):
    return queue
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folders = ("queues", "incidents")
    files = {
        f"en/{p.relative_to(NOTES)}": p.read_text() for name in folders for p in sorted((NOTES / name).glob("*.md"))
    }
    files["en/tools/queue.py"] = CODE
    files["en/people/result.md"] = "---\nkind: memory\nfacet: result\n---\n# Lost messages\n\nRabbitMQ lost messages.\n"
    settings = load_settings(
        search={"source_boosts": {"en/incidents/": 1.3}}, llm_model="m", llm_base_url="http://127.0.0.1:9/v1"
    )
    made = World(tmp_path_factory.mktemp("world"), settings, [])
    made.ingest("default", files)
    yield made
    made.close()


def searched(world: World, strategy: str, text: str = QUESTION, **more: Any) -> SearchResult:
    """Both halves of a leaf, with a trip through JSON between the pools and behind them."""
    leaf = LeafQuery(
        text=text,
        strategy=strategy,
        filters=Filters(),
        tenant="default",
        wanted=20,
        explain=True,
        facet="result",
        **more,
    )
    with world.asking("default"):
        found = run_search_stages(leaf, world.resources, None, 60)
    found = SearchResult.model_validate_json(found.model_dump_json())
    return run_rerank_stages(leaf, found, rerank_tools(world.settings))


def rerank_tools(settings: Settings) -> Tools:
    return Tools(settings=settings, reranker=reranker(settings), timeout_s=60)


def lexical(d: Detail) -> float:
    return float((2 * d["fused"] + d["words"] + d["lead"] + d["pairs"] + d["title"]) / 6)


def reranked(d: Detail) -> float:
    """The score that a lexical rerank gives."""
    assert d["raw"] == pytest.approx(lexical(d), abs=EXACT)
    return 1 / (1 + exp(9 - 17 * d["raw"]))


def fused(d: Detail, *, alone: bool) -> float:
    if "unboosted" in d:
        assert d["score"] == pytest.approx(d["unboosted"] * (1 + d["title"] + d["truth"]), abs=EXACT)
    if alone:
        return float(d["score"])
    return float(d["weight"] * d["score"] / d["best"] if "best" in d else d["weight"] / (d["k"] + d["rank"]))


def over_edges(d: Detail, s: float) -> float:
    if "symbol" in d:
        return float(2 * d["best"] if d["best"] > 0 else 1)
    fit = 1 - d["share"] + d["share"] * d["relevance"]
    return float(max(s, d["anchor"] / (1 + d["hop"]) * fit / d["places"]))


def over_names(d: Detail, s: float) -> float:
    return float(max(s, d["best"] * d["chain"] * d["share"])) if "chain" in d else s


#: What must be equal within the details of one effect, as (printed, worked out).
CHECKS: dict[str, Callable[[Detail, float], tuple[float, float]]] = {
    "hierarchy": lambda d, _: (d["own"], lexical(d)),
    "hops": lambda d, _: (
        d.get("chain", 0),
        d["parent"] * d["rarity"] * (0.6 * d["titled"] + 0.6 * d["gain"] + 0.8 * d["asks"] + 0.05)
        if "chain" in d
        else 0,
    ),
    "cosine": lambda d, s: (d["scaled"], s / d["best"]),
    "rerank": lambda d, _: (d["score"], reranked(d)),
    "mmr": lambda d, s: (d["value"], d["relevance"] * s / d["best"] - (1 - d["relevance"]) * d["nearest"]),
    "root rerank": lambda d, _: (d["root"], reranked(d)),
}
#: The score behind an effect, of its details and the score s before it.
SUMS: dict[str, Callable[[Detail, float], float]] = {
    "fusion bonus": lambda d, s: s + d["bonus"] * d["share"],
    "hierarchy": lambda d, _: d["weight"] * d["own"],
    "hierarchy directory": lambda d, s: s + d["weight"] * d["score"],
    "neighbours": lambda d, _: d["ratio"] * max(0, d["cosine"]),
    "hops": over_names,
    "edges": over_edges,
    "cosine": lambda d, _: (1 - d["weight"]) * d["scaled"] + d["weight"] * d["cosine"],
    "sources": lambda d, s: s * d["factor"],
    "backlinks": lambda d, s: s * (1 + d["weight"] * log(1 + d["links"])),
    "recency": lambda d, s: s * (1 + d["weight"] * 0.5 ** (d["days"] / d["half_life"])),
    "facet": lambda d, s: s * (1 + d["weight"] * (1 - s)),
    "truth": lambda d, _: d["page"] * d["share"] ** d["place"],
    "rerank": lambda d, _: d["score"],
    "linked": lambda d, _: d["best"] if "symbol" in d else d["anchor"] * d["share"] ** d["place"],
    "chain": lambda d, s: s + d["weight"] * d["chain"],
    "blend": lambda d, s: d["weight"] * d["fused"] + (1 - d["weight"]) * s,
    "mmr": lambda _, s: s,
    "tree merge": lambda d, s: s * d["weight"],
    "root rerank": lambda d, s: d["weight"] * d["root"] + (1 - d["weight"]) * s,
}


def after(stage: str, d: Detail, s: float, *, alone: bool) -> float:
    """The score behind an effect of an arm or a stage."""
    if stage in CHECKS:
        printed, worked_out = CHECKS[stage](d, s)
        assert printed == pytest.approx(worked_out, abs=EXACT)
    if stage in SUMS:
        return SUMS[stage](d, s)
    assert stage.startswith("fusion "), f"no sum of {stage} is documented"
    return s + fused(d, alone=alone)


def recomputed(document: str) -> set[str]:
    """The stages of the effects, each of which was worked out from the JSON text of the hits."""
    seen = set()
    for hit in json.loads(document)["hits"]:
        s = before_rerank = 0.0
        arms = sum(effect["stage"].startswith("fusion ") for effect in hit["explain"])
        for effect in hit["explain"]:
            stage, d = effect["stage"], effect["detail"]
            if stage == "rerank":
                before_rerank = s
            if stage == "blend":
                assert d["fused"] == pytest.approx(before_rerank / d["best"], abs=EXACT)
            fetched = "fetched" in d  # the lowest score of the list, which no single hit shows
            expected = effect["effect"] if fetched else after(stage, d, s, alone=arms == 1 and "k" not in d)
            assert s + effect["effect"] == pytest.approx(expected, abs=EXACT), (stage, d)
            s += effect["effect"]
            seen.add(stage)
        assert s == pytest.approx(hit["score"], abs=EXACT)
    return seen


#: What a strategy's hits must have been through, so that nothing is worked out of nothing.
SEEN = {
    "default": {"fusion bm25", "fusion dense", "sources", "backlinks", "truth", "rerank", "facet"},
    "hybrid": {"fusion bm25", "fusion dense", "rerank"},
    "bm25_only": {"fusion bm25", "rerank"},
    "vec_only": {"fusion dense", "rerank"},
    "deep": {"fusion bm25#1", "fusion dense#2", "fusion bonus", "rerank", "blend"},
    "layered": {"neighbours", "rerank"},
    "keyword": {"fusion trigram", "sources", "rerank"},
    "diverse": {"cosine", "recency", "rerank", "mmr"},
    "rescored": {"fusion bm25", "cosine", "sources", "backlinks", "truth", "rerank"},
    "hierarchical": {"hierarchy", "hierarchy directory", "rerank"},
    "two_pass": {"edges", "rerank", "linked", "truth"},
    "multihop": {"hops", "chain", "truth"},
}


@pytest.mark.parametrize("strategy", sorted(built_in()))
def test_given_any_built_in_strategy_when_explained_then_every_score_follows_from_what_is_printed(
    world: World, strategy: str
) -> None:
    found = searched(world, strategy)
    assert recomputed(found.model_dump_json()) >= SEEN[strategy]
    assert found.reranked_by == "lexical:v2"


def test_given_a_named_symbol_when_explained_then_its_scores_follow_too(world: World) -> None:
    found = searched(world, "two_pass", "what breaks", near_symbol="replace_queue")
    assert recomputed(found.model_dump_json()) >= {"edges", "linked"}
    assert [hit.symbol for hit in found.hits[:2]] == ["en.tools.queue.replace_queue", "en.tools.queue.retry_message"]


def test_given_two_leaves_when_merged_then_the_scores_at_the_root_follow_from_what_is_printed(world: World) -> None:
    nodes = [
        Node(id="0.0", parent_id="0", level=1, facet=Facet.ORIGINAL, query=QUESTION),
        Node(id="0.1", parent_id="0", level=1, facet=Facet.HOW, query="Which queue replaced RabbitMQ?", by="rules"),
    ]
    leaves = []
    for node in nodes:
        found = searched(world, "default", node.query)
        leaf = LeafResult(node_id=node.id, status=LeafStatus.DONE, hits=found.hits[:10], reranker=found.reranked_by)
        leaves.append(LeafResult.model_validate_json(leaf.model_dump_json()))
    pool = merge_tree(leaves, {node.id: node for node in nodes}, world.settings.multi_query, 20)

    ranked = reranker(world.settings).rerank(QUESTION, pool.hits, 60)
    after_root = apply_root_rerank(pool, ranked.hits, ranked.reranker)

    assert recomputed(after_root.model_dump_json()) >= {"root rerank", "tree merge"}
    assert [hit.score for hit in after_root.hits] == sorted((hit.score for hit in after_root.hits), reverse=True)


def test_given_an_explained_hit_when_drawn_then_the_shown_digits_sum_to_the_shown_score(world: World) -> None:
    hits = searched(world, "default").hits[:5]
    screen = Console(file=StringIO(), width=400)
    screen.print(draw_explained(hits))

    shown = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]
    effects = [float(line.split()[0]) for line in shown if line.lstrip()[:1] in {"+", "-"}]
    assert sum(effects) == pytest.approx(sum(hit.score for hit in hits), abs=5e-5)
    heads = [float(line.rsplit("= ", 1)[1]) for line in shown if "= " in line and line[:1].isdigit()]
    assert heads == pytest.approx([hit.score for hit in hits], abs=5e-5)
