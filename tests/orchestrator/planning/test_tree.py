"""Growing the tree: ids, levels, the hard cap, duplicates, dependencies, and branches that turn back into leaves.

The leaf budget: never more leaves than allowed, and the split is a matter of position alone.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.planning.tree import as_leaf, children_of, first_level, split
from shared.language.text import question_key
from shared.models import Decomposition, Facet, Node, NodeKind, SubQuery
from shared.settings.sections import DecompositionSettings as Limits

QUESTION = "How do we build a search service?"


def sub(query, *, refine=False, depends_on=(), facet=Facet.HOW):
    return SubQuery(dimension=facet, query=query, needs_refinement=refine, depends_on=depends_on)


def reply(*subs, warnings=()):
    return Decomposition(subqueries=subs, by="llm", warnings=warnings)


def branch(budget=4, level=1):
    return Node(
        id="0.2",
        parent_id="0",
        level=level,
        facet=Facet.HOW,
        query="How is it built?",
        kind=NodeKind.BRANCH,
        budget=budget,
    )


def test_given_a_reply_when_the_first_level_grows_then_the_original_question_is_a_leaf_of_its_own():
    grown = first_level(QUESTION, reply(sub("Which engine?"), sub("Which index?", refine=True)), Limits())
    assert [(n.id, n.parent_id, n.level, n.kind.value, n.budget) for n in grown.nodes] == [
        ("0.0", "0", 1, "leaf", 1),
        ("0.1", "0", 1, "leaf", 1),
        ("0.2", "0", 1, "branch", 10),
    ]
    assert (grown.nodes[0].facet, grown.nodes[0].query) == (Facet.ORIGINAL, QUESTION)
    assert grown.warnings == ()


def test_given_no_subqueries_when_the_first_level_grows_then_the_original_question_remains():
    grown = first_level(QUESTION, reply(warnings=("The LLM was silent.",)), Limits())
    assert [node.id for node in grown.nodes] == ["0.0"]
    assert grown.warnings == ("The LLM was silent.",)


def test_given_room_for_one_leaf_when_the_first_level_grows_then_only_the_original_is_there_and_the_rest_is_named():
    grown = first_level(QUESTION, reply(sub("Which engine?")), Limits(max_total_leaves=1))
    assert [node.id for node in grown.nodes] == ["0.0"]
    assert "Which engine?" in grown.warnings[0]


def test_given_too_many_children_when_it_grows_then_the_last_are_dropped_by_name():
    many = reply(*(sub(f"Question number {n}?") for n in range(7)))
    grown = first_level(QUESTION, many, Limits(max_children=5))
    assert [node.id for node in grown.nodes] == ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]
    assert len(grown.warnings) == 1
    assert "Question number 5?" in grown.warnings[0]
    assert "Question number 6?" in grown.warnings[0]
    assert "Question number 4?" not in grown.warnings[0]


def test_given_repeats_in_other_spelling_when_it_grows_then_they_are_left_out_silently():
    same = reply(
        sub("how do we build a Search-Service"), sub("Which engine?"), sub("ＷＨＩＣＨ  engine？"), sub("Why?")
    )
    grown = first_level(QUESTION, same, Limits())
    assert [(n.id, n.query) for n in grown.nodes[1:]] == [("0.1", "Which engine?"), ("0.2", "Why?")]
    assert grown.warnings == ()


@pytest.mark.parametrize(
    ("one", "other"), [("What is C++?", "What is C#?"), ("v1.2", "v12"), ("R&D", "RD"), ("C", "C++")]
)
def test_given_names_told_apart_by_signs_when_folded_then_they_stay_different(one, other):
    assert question_key(one) != question_key(other)


def test_given_the_deepest_level_when_a_child_asks_for_refinement_then_it_is_a_leaf():
    grown = children_of(branch(level=2), reply(sub("One thing?", refine=True), sub("Another?")), Limits(), QUESTION)
    assert [(n.id, n.level, n.kind.value) for n in grown.nodes] == [("0.2.1", 3, "leaf"), ("0.2.2", 3, "leaf")]


def test_given_no_leaf_to_spare_when_a_child_asks_for_refinement_then_it_is_a_leaf():
    grown = children_of(branch(budget=2), reply(sub("One thing?", refine=True), sub("Another?")), Limits(), QUESTION)
    assert [node.kind for node in grown.nodes] == [NodeKind.LEAF, NodeKind.LEAF]


def test_given_a_share_of_exactly_two_leaves_when_it_grows_then_the_child_is_a_branch():
    limits = Limits(max_total_leaves=4)
    grown = first_level(QUESTION, reply(sub("Which engine?", refine=True), sub("Which index?")), limits)
    assert [(n.id, n.kind.value, n.budget) for n in grown.nodes[1:]] == [("0.1", "branch", 2), ("0.2", "leaf", 1)]


@pytest.mark.parametrize(
    "subs", [(), (sub("One thing?"),), (sub("One thing?"), sub("one thing")), (sub(QUESTION), sub("X?"))]
)
def test_given_fewer_than_two_useful_children_when_a_branch_grows_then_it_is_searched_itself(subs):
    grown = children_of(branch(), reply(*subs, warnings=("The LLM failed.",)), Limits(), QUESTION)
    assert grown.nodes == (as_leaf(branch()),)
    assert (grown.nodes[0].id, grown.nodes[0].kind, grown.nodes[0].budget) == ("0.2", NodeKind.LEAF, 1)
    assert grown.warnings[0] == "The LLM failed."
    assert "How is it built?" in grown.warnings[-1]


def test_given_dependencies_when_it_grows_then_they_become_ids_of_earlier_siblings():
    steps = reply(sub("Who leads it?"), sub("When was #1 born?", depends_on=(1,)))
    grown = first_level(QUESTION, steps, Limits())
    assert grown.nodes[2].depends_on == ("0.1",)
    assert grown.warnings == ()


def test_given_a_dropped_sibling_when_it_grows_then_numbers_in_the_text_follow_and_a_lost_one_is_named():
    steps = reply(
        sub(QUESTION),
        sub("Who leads it?"),
        sub("Who leads it"),
        sub("Where is #2, not #3, of C#1 near #1?", depends_on=(2, 1)),
    )
    grown = first_level(QUESTION, steps, Limits())
    assert grown.nodes[2].query == "Where is #1, not #1, of C#1 near?"
    assert grown.nodes[2].depends_on == ("0.1",)
    assert len(grown.warnings) == 1
    assert "number 1" in grown.warnings[0]


def test_given_a_dependency_on_a_later_sibling_when_it_grows_then_it_is_dropped_with_a_warning():
    grown = first_level(QUESTION, reply(sub("Where is it?", depends_on=(2,)), sub("Who leads it?")), Limits())
    assert grown.nodes[1].depends_on == ()
    assert "it runs without" in grown.warnings[0]


def test_given_a_subquestion_that_waits_for_itself_when_it_grows_then_it_runs_without():
    grown = first_level(QUESTION, reply(sub("Who leads it?"), sub("Where is #2?", depends_on=(2,))), Limits())
    assert (grown.nodes[2].query, grown.nodes[2].depends_on) == ("Where is?", ())
    assert len(grown.warnings) == 1
    assert "number 2" in grown.warnings[0]


def test_given_its_own_number_in_a_text_when_it_grows_then_it_waits_for_nobody():
    grown = first_level(QUESTION, reply(sub("What is #1?"), sub("Which index?")), Limits())
    assert [(n.query, n.depends_on, n.needed_by) for n in grown.nodes[1:]] == [
        ("What is #1?", (), ()),
        ("Which index?", (), ()),
    ]
    assert grown.warnings == ()


def test_given_numbers_said_and_numbers_in_the_text_when_it_grows_then_it_waits_for_both():
    steps = reply(sub("Who leads it?"), sub("Where is it?"), sub("When was #2 built?", depends_on=(1,)))
    assert first_level(QUESTION, steps, Limits()).nodes[3].depends_on == ("0.1", "0.2")


def answer(query: str) -> Decomposition:
    """What a model would say of `query`, always the same for the same words."""
    dice = random.Random(query)
    names = [dice.choice(["alpha", "beta", f"{query[-12:]} {n}"]) for n in range(dice.randint(0, 7))]
    return reply(
        *(sub(name, refine=dice.random() < 0.6, depends_on=(1,) if n > 1 else ()) for n, name in enumerate(names))
    )


def grow(question: str, limits: Limits, order: random.Random) -> dict[str, Node]:
    """The whole tree; branches are refined in the order that their replies happen to arrive in."""
    tree = {node.id: node for node in first_level(question, answer(question), limits).nodes}
    waiting = [node for node in tree.values() if node.kind is NodeKind.BRANCH]
    while waiting:
        node = waiting.pop(order.randrange(len(waiting)))
        grown = children_of(node, answer(node.query), limits, question).nodes
        tree |= {child.id: child for child in grown}
        waiting += [child for child in grown if child.kind is NodeKind.BRANCH]
    return tree


@settings(max_examples=150, deadline=None)
@given(
    st.text("abcdef", min_size=1, max_size=8), st.integers(1, 20), st.integers(1, 7), st.integers(1, 4), st.integers()
)
def test_given_any_replies_when_the_tree_is_grown_then_the_cap_holds_and_their_order_does_not_matter(
    question, leaves, children, level, seed
):
    limits = Limits(max_total_leaves=leaves, max_children=children, max_level=level)
    tree = grow(question, limits, random.Random(seed))
    assert tree == grow(question, limits, random.Random(seed + 1))
    parents = {node.parent_id for node in tree.values()}
    ends = [node for node in tree.values() if node.kind is NodeKind.LEAF]
    assert 1 <= len(ends) <= leaves
    assert all(node.id in parents for node in tree.values() if node.kind is NodeKind.BRANCH)
    assert not any(node.id in parents for node in ends)
    assert all(node.level <= level and node.id.count(".") == node.level for node in tree.values())
    assert all(one in tree for node in tree.values() for one in node.depends_on)


def test_given_dependencies_when_it_grows_then_both_sides_know_and_neither_is_refined():
    steps = reply(
        sub("Who leads it?", refine=True),
        sub("When was #1 born?", refine=True, depends_on=(1,)),
        sub("How is it run?", refine=True),
    )
    nodes = first_level(QUESTION, steps, Limits()).nodes
    assert [(node.id, node.kind.value, node.needed_by) for node in nodes[1:]] == [
        ("0.1", "leaf", ("0.2",)),
        ("0.2", "leaf", ()),
        ("0.3", "branch", ()),
    ]


def test_given_a_number_in_a_text_when_it_grows_then_it_says_what_to_wait_for_unless_the_question_speaks_of_it():
    steps = reply(sub("Who leads it?"), sub("When was #1 born?"), sub("What is #9?"))
    assert [node.depends_on for node in first_level(QUESTION, steps, Limits()).nodes[1:]] == [(), ("0.1",), ()]
    asked = first_level("Who filed issue #1 and when?", steps, Limits())
    assert [node.depends_on for node in asked.nodes[1:]] == [(), (), ()]


@pytest.mark.parametrize(
    ("budget", "wants", "shares"),
    [
        (11, [False] * 5, [1, 1, 1, 1, 1]),
        (11, [True, False, True, False, False], [4, 1, 4, 1, 1]),
        (10, [True, False, True, False, True], [3, 1, 3, 1, 2]),
        (3, [True, True, True, True], [1, 1, 1, 0]),
        (0, [True, False], [0, 0]),
        (5, [], []),
        (4, [True], [4]),
    ],
)
def test_given_wishes_when_split_then_each_gets_one_and_the_rest_goes_to_those_that_refine(budget, wants, shares):
    assert split(budget, wants) == shares


@given(st.integers(-3, 64), st.lists(st.booleans(), max_size=12))
def test_given_any_wishes_when_split_then_the_budget_holds_and_the_first_come_first(budget, wants):
    shares = split(budget, wants)
    assert len(shares) == len(wants)
    assert sum(shares) <= max(0, budget)
    assert sorted((share > 0 for share in shares), reverse=True) == [share > 0 for share in shares]
    refined = [share for share, want in zip(shares, wants, strict=True) if want]
    assert refined == sorted(refined, reverse=True)
    assert not refined or max(refined) - min(refined) <= 1 or min(refined) == 0


def test_given_a_cap_when_the_root_is_budgeted_then_the_original_question_has_its_leaf():
    found = Decomposition(subqueries=tuple(SubQuery(dimension="core", query=f"q{n}") for n in range(20)), by="rules")
    for cap in (12, 3, 1):
        limits = Limits(max_total_leaves=cap, max_children=10)
        nodes = first_level("the question", found, limits).nodes
        assert (nodes[0].id, len(nodes)) == ("0.0", min(cap, 11))
