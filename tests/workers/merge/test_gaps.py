"""Which gaps are seen, what is searched for them, where that stands in the pool, and what the answer says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from shared.models import Facet, Hit, JobRequest, LeafResult, LeafStatus, MergedHit, Node, Source
from shared.models.gaps import Gap, GapSignal
from shared.models.plan import BOUND_BY_NAMES, BOUND_BY_NOTHING
from shared.models.request import TypedQuery
from shared.settings.sections import MultiQuerySettings
from shared.settings.verifying import GapSettings
from workers.merge.found_again import GAP
from workers.merge.gaps import SearchedTree, open_gaps, round_of, told_gaps, unsaid
from workers.merge.tree import apply_root_rerank, merge_tree, only_original_leaf

HOPS = "Where was the director of The Quiet Harbour born?"
ZH_HOPS = "《静港》的导演出生在哪里？"
DIRECTOR = "The Quiet Harbour is a film. Its director Ann Marsh was praised for it."
ZH_DIRECTOR = "《静港》是一部电影，导演是《安玛传》的作者。"


def merged(text: str, title: str = "", chain: float = 0.0, name: str = "c") -> MergedHit:
    return MergedHit(
        chunk_id=name, doc_id=name, path=name, title=title, text=text, score=0.5,
        parts={"chain": chain} if chain else {}, sources=(Source(node_id="0.0", facet="original", rank=1, score=0.5),),
    )  # fmt: skip


def node(node_id: str, facet: Facet = Facet.CORE, query: str = "q", **more: object) -> Node:
    return Node.model_validate({"id": node_id, "parent_id": "0", "level": 1, "facet": facet, "query": query, **more})


def leaf(node_id: str, hits: Sequence[Hit] = (), verdict: str | None = None) -> LeafResult:
    return LeafResult(node_id=node_id, status=LeafStatus.DONE, hits=tuple(hits), verdict=verdict)


def tree(question: str, hits: Sequence[MergedHit], *planned: tuple[Node, LeafResult], **options: float) -> SearchedTree:
    own = node("0.0", Facet.ORIGINAL, question)
    nodes = {one.id: one for one in (own, *(each for each, _ in planned))}
    leaves = {one.node_id: one for one in (leaf("0.0", hits), *(each for _, each in planned))}
    return SearchedTree(question, nodes, leaves, hits, GapSettings.model_validate(options))


def seen(found: SearchedTree) -> list[tuple[str, str, str]]:
    return [(one.gap.signal.value, one.gap.what, one.query) for one in open_gaps(found)]


@pytest.mark.parametrize(
    ("question", "passage", "what", "query"),
    [
        (HOPS, merged(DIRECTOR, "The Quiet Harbour"), "Ann Marsh", "Ann Marsh born"),
        (ZH_HOPS, merged(ZH_DIRECTOR, "静港"), "安玛传", "安玛传 出生在"),
    ],
)
def test_given_a_bridge_without_a_second_page_then_its_name_is_searched_with_what_is_not_said(
    question: str, passage: MergedHit, what: str, query: str
) -> None:
    assert ("chain", what, query) in seen(tree(question, [passage]))


def test_given_orders_in_a_passage_then_the_words_that_begin_them_are_no_names() -> None:
    orders = merged(f"{DIRECTOR}\n\n1. Call early.\n2. Keep it shut.", "The Quiet Harbour")
    named = {what for signal, what, _ in seen(tree(HOPS, [orders])) if signal == "chain"}
    assert named == {"Ann Marsh"}


def test_given_a_second_page_that_a_name_led_to_then_the_chain_is_closed() -> None:
    pages = [merged(DIRECTOR, "The Quiet Harbour"), merged("Ann Marsh was born in Hull.", "Ann Marsh", 0.4, "d")]
    assert seen(tree(HOPS, pages)) == []
    assert seen(tree(HOPS, pages, min_chain=0.5))


@pytest.mark.parametrize(
    ("question", "passage", "gaps"),
    [
        ("Which port does the exporter listen on?", "The exporter listens on port 9100.", False),
        ("Which port does the exporter listen on?", "Stars are made in clouds of gas by Vega.", True),
        ("退货期限是多少天？", "退货期限是七天。", False),
    ],
)
def test_given_a_lookup_then_only_one_without_an_answer_is_searched_again_and_only_where_that_is_set(
    question: str, passage: str, gaps: bool
) -> None:
    hits = [merged(passage, "Vega")]
    assert bool(seen(tree(question, hits, lookups_below=0.5))) is gaps
    assert not seen(tree(question, hits))


@pytest.mark.parametrize(
    ("question", "part", "query"),
    [
        ("Compare the costs and the risks of Kestrel.", "What are the risks?", "Kestrel risks"),
        ("比较《红隼》的成本和风险。", "有哪些风险？", "红隼 风险"),
    ],
)
def test_given_a_subquestion_without_a_relevant_passage_then_its_words_are_searched_with_the_names(
    question: str, part: str, query: str
) -> None:
    planned = node("0.1", Facet.NOTE, part)
    for empty in (leaf("0.1"), leaf("0.1", [merged("of the moon")], "nothing relevant")):
        assert ("facet", part, query) in seen(tree(question, [merged("Kestrel 红隼 costs 12.")], (planned, empty)))
    found = leaf("0.1", [merged("The risks are two.")])
    assert "facet" not in {one[0] for one in seen(tree(question, [merged("Kestrel 红隼 costs.")], (planned, found)))}


def test_given_a_step_that_got_nothing_then_it_is_searched_and_no_chain_is_guessed_beside_a_plan() -> None:
    steps = [
        node("0.1", query="Who is the director?"),
        node("0.2", query="Where was born?", depends_on=("0.1",), bound_by=BOUND_BY_NOTHING),
    ]
    hits = [merged(DIRECTOR, "The Quiet Harbour")]
    found = seen(tree(HOPS, hits, *((one, leaf(one.id, hits)) for one in steps)))
    assert found == [("step", "Where was born?", "Quiet Harbour Where was born?")]
    bound = steps[1].model_copy(update={"bound_by": BOUND_BY_NAMES})
    assert seen(tree(HOPS, hits, (steps[0], leaf("0.1", hits)), (bound, leaf("0.2", hits)))) == []


@pytest.mark.parametrize(
    ("question", "passage", "what", "kind"),
    [
        ("When was the director of Quiet Harbour born?", "Quiet Harbour and its director.", "Ann", "a date"),
        ("《静港》的导演是什么时候出生的？", "《静港》的导演很有名。", "", "日期"),
    ],
)
def test_given_no_passage_with_what_could_be_the_answer_then_that_is_a_gap(
    question: str, passage: str, what: str, kind: str
) -> None:
    assert kind in {said for signal, said, _ in seen(tree(question, [merged(passage)])) if signal == "answer"}
    dated = merged(f"{passage} 1951-03-02 / 1951年3月2日", name="d")
    assert "answer" not in {signal for signal, _, _ in seen(tree(question, [dated]))}


def test_given_a_name_that_stands_in_no_passage_then_it_is_searched_alone() -> None:
    question = "Why did Kestrel and Northwind choose the same queue?"
    plan = node("0.1", query="Why did Kestrel?"), leaf("0.1", [merged("x")])
    assert ("name", "Northwind", "Northwind") in seen(tree(question, [merged("Kestrel chose a queue.")], plan))
    both = merged("Kestrel and Northwind chose a queue.")
    assert "name" not in {signal for signal, _, _ in seen(tree(question, [both], plan))}


def test_given_a_list_or_nothing_relevant_then_nothing_is_searched_again() -> None:
    hits = [merged(DIRECTOR, "The Quiet Harbour")]
    shard = node("0.1", shard={"number": 1, "of": 1})
    assert seen(tree(HOPS, hits, (shard, leaf("0.1", hits)))) == []
    nothing = tree(HOPS, hits)
    refused = SearchedTree(HOPS, nothing.nodes, {"0.0": leaf("0.0", hits, "nothing relevant")}, hits, nothing.options)
    assert seen(refused) == []
    assert seen(tree(HOPS, [])) == []


@pytest.mark.parametrize(
    "own",
    [
        {"subqueries": ["a?"]}, {"typed": (TypedQuery(query="a"),)}, {"near_symbol": "f"}, {"depth": 1},
        {"decompose": False}, {"top_n": 5},
    ],
)  # fmt: skip
def test_given_a_request_that_says_what_is_searched_then_nothing_is_added(own: dict[str, object]) -> None:
    assert GapSettings().allow(JobRequest(question=HOPS))
    assert not GapSettings().allow(JobRequest.model_validate({"question": HOPS, **own}))
    assert not GapSettings(enabled=False).allow(JobRequest(question=HOPS))


def test_the_round_takes_the_likeliest_once_within_its_room_and_ids_that_are_free() -> None:
    names = "Its director Ann Marsh met Bob Hale, Cid Nash, Dan Pike, Eve Rand and Fay Snow."
    found = tree(HOPS, [merged(f"The Quiet Harbour is a film. {names}", "The Quiet Harbour")])
    added = round_of(found, 12)
    assert [one.id for one in added] == ["0.1", "0.2", "0.3", "0.4"]
    assert {one.facet for one in added} == {Facet.GAP}
    gains = [one.gap.gain for one in added if one.gap]
    assert gains == sorted(gains, reverse=True)
    assert len(round_of(found, 1)) == 1
    assert round_of(found, 0) == ()
    assert round_of(tree(HOPS, found.hits, min_gain=1.0), 12) == ()
    again = tree(HOPS, found.hits, *((one, leaf(one.id)) for one in added))
    assert round_of(again, 12) == (), "one round a job"


def hit(name: str, score: float = 0.9, title: str = "") -> Hit:
    return Hit(chunk_id=name, doc_id=name, path=name, title=title, text=f"all that {name} says alone", score=score)


def test_what_only_the_round_found_stands_at_the_end_of_the_first_ten_before_and_after_the_root_rerank() -> None:
    gap = Gap(signal=GapSignal.CHAIN, what="Ann Marsh", gain=0.5)
    nodes = {"0.0": node("0.0", Facet.ORIGINAL), "0.1": node("0.1", Facet.GAP, gap=gap)}
    own = leaf("0.0", [hit(f"h{n:02}", 0.9 - n / 100) for n in range(14)])
    more = leaf("0.1", [hit("h03"), hit("new", 0.8), hit("h12", 0.7), hit("newer", 0.6)])
    weak = hit("weak", 0.2).model_copy(update={"parts": {"rerank": 0.2}})
    more = more.model_copy(update={"hits": (*more.hits, weak)})

    pool = merge_tree([own, more], nodes, MultiQuerySettings(), 15)

    order = [one.chunk_id for one in pool.hits]
    assert order[:10] == [*(f"h{n:02}" for n in range(7)), "new", "h12", "newer"]
    assert order[10:] == ["h07", "h08", "h09", "h10", "h11"], "what says little of its gap takes no place"
    assert [source.node_id for source in pool.hits[3].sources] == ["0.0", "0.1"]
    assert only_original_leaf(pool), "its own order is final"
    reranked = apply_root_rerank(pool, [Hit(**{f: getattr(one, f) for f in Hit.model_fields}) for one in pool.hits])
    assert [one.chunk_id for one in reranked.hits][7:10] == ["new", "h12", "newer"]
    assert all(GAP not in one.parts for one in merge_tree([own], nodes, MultiQuerySettings(), 15).hits)


@pytest.mark.parametrize(
    ("question", "closed", "still"),
    [
        (HOPS, "What “Ann Marsh” leads to: searched again, and found.", "What “Ann Marsh” leads to: searched again,"),
        (ZH_HOPS, "由“Ann Marsh”引出的内容：已再次检索，并已找到。", "由“Ann Marsh”引出的内容：已再次检索，仍"),
    ],
)
def test_the_answer_says_which_gaps_were_closed_and_which_stayed_open(question: str, closed: str, still: str) -> None:
    gap = Gap(signal=GapSignal.CHAIN, what="Ann Marsh", gain=0.5)
    added = node("0.1", Facet.GAP, gap=gap)

    def told(text: str, score: float) -> tuple[bool, str, tuple[str, ...]]:
        source = Source(node_id="0.1", facet="gap", rank=1, score=score)
        found = merged(text, name="d").model_copy(update={"sources": (source,)})
        hits = [merged(DIRECTOR, "The Quiet Harbour 静港"), found]
        (one,) = told_gaps(tree(question, hits, (added, leaf("0.1", [found]))))
        return one.closed, one.text, one.searched

    assert told("Ann Marsh was born in Hull.", 0.8) == (True, closed, ("0.1",))
    for text, score in (("Bob Hale was born in Hull.", 0.8), ("Ann Marsh was born in Hull.", 0.2)):
        is_closed, said, searched = told(text, score)
        assert (is_closed, searched) == (False, ("0.1",))
        assert said.startswith(still)


def test_unsaid_words_keep_their_spelling_and_order() -> None:
    assert unsaid("Where was Nike's director born?", frozenset(["director"])) == "Nike's born"
    assert unsaid("导演的出生日期", frozenset(["导演"])) == "出生日期"
