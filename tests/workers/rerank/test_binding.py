"""Binding: the answer or the names of a leaf, written into the subquestions that waited for it."""

from __future__ import annotations

from functools import partial

import pytest

from shared.errors import TransientError
from shared.models import Cost, Facet, Hit, LeafResult, LeafStatus, Node
from shared.settings import load_settings
from tests.fakes.scripted_llm import ScriptedLLM
from workers.rerank.binding import Parent, bind, candidate_names, unbound
from workers.search.state import Tools

FILM = ("Titanic (film)", "Titanic is a film by James Cameron. It stars Kate Winslet.")
SHIP = ("Sinking", "The ship left Southampton for New York.")


def hit(title, text, score=1.0):
    return Hit(chunk_id=title, doc_id=title, path=title, title=title, text=text, score=score)


def leaf(node_id, query, depends_on=()):
    return Node(id=node_id, parent_id="0", level=1, facet=Facet.CORE, query=query, depends_on=depends_on)


def parent(*passages, node_id="0.1", query="Who directed Titanic?", status=LeafStatus.DONE):
    result = LeafResult(node_id=node_id, status=status, hits=tuple(hit(*passage) for passage in passages))
    return Parent(leaf(node_id, query), result)


Llm = partial(ScriptedLLM, tokens_in=30, tokens_out=3)


def bound(node, *parents, llm=None, **binding):
    return bind(node, parents, "default", Tools(settings=load_settings(binding=binding), llm=llm))


WIFE = leaf("0.2", "Who is the wife of #1?", ("0.1",))


def test_given_no_llm_when_bound_then_each_name_gives_a_variant_the_likeliest_first():
    node = bound(WIFE, parent(FILM, SHIP), names=3).node
    assert node.variants == (
        "Who is the wife of James Cameron?",
        "Who is the wife of Kate Winslet?",
        "Who is the wife of Sinking?",
    )
    assert (node.query, node.asked, node.bound_by) == (node.variants[0], WIFE.query, "names")


def test_given_an_answer_that_stands_in_the_passages_when_bound_then_it_alone_is_written_in():
    llm = Llm("<answer>james  CAMERON</answer>")
    found = bound(WIFE, parent(FILM), llm=llm)
    assert (found.node.query, found.node.variants, found.node.bound_by) == (
        "Who is the wife of james CAMERON?",
        (),
        "answer",
    )
    assert (found.cost, found.warnings) == (Cost(llm_calls=1, llm_tokens_in=30, llm_tokens_out=3), ())
    assert "Who directed Titanic?" in llm.prompts[0]


@pytest.mark.parametrize(
    ("reply", "warned"),
    [
        ("<unknown/>", ""),
        ("<answer>Steven Spielberg</answer>", "stands in none of the passages"),
        ("<answer></answer>", "has 0 characters"),
        ("I cannot say.", "holds no <answer>"),
        (TransientError("it does not answer"), "it does not answer"),
    ],
)
def test_given_no_usable_answer_when_bound_then_names_stand_in_and_a_fault_is_a_warning(reply, warned):
    found = bound(WIFE, parent(FILM), llm=Llm(reply))
    assert (found.node.bound_by, found.node.query) == ("names", "Who is the wife of James Cameron?")
    assert [warned in warning for warning in found.warnings] == ([True] if warned else [])
    assert found.cost.llm_calls == (0 if isinstance(reply, Exception) else 1)


def test_given_reading_is_off_when_bound_then_the_llm_is_not_asked():
    llm = Llm()
    assert bound(WIFE, parent(FILM), llm=llm, read=False).node.bound_by == "names"
    assert llm.prompts == []


@pytest.mark.parametrize(
    ("waited_for", "why"),
    [
        (parent(status=LeafStatus.FAILED), "it failed"),
        (Parent(leaf("0.1", "q"), None), "it failed"),
        (parent(), "it found nothing"),
        (parent(("", "nothing has a name here")), "no name stands in what it found"),
    ],
)
def test_given_a_parent_without_result_when_bound_then_its_place_is_empty_with_a_warning(waited_for, why):
    found = bound(WIFE, waited_for)
    assert (found.node.query, found.node.variants, found.node.bound_by) == ("Who is the wife of?", (), "nothing")
    assert why in found.warnings[0]


def test_given_a_query_that_names_no_number_when_bound_then_the_name_is_put_before_it():
    node = bound(leaf("0.2", "谁是他的妻子？", ("0.1",)), parent(("詹姆斯·卡梅隆", "导演。")), names=1).node
    assert node.query == "詹姆斯·卡梅隆: 谁是他的妻子？"


def test_given_two_parents_when_bound_then_pairs_come_by_the_sum_of_their_places_and_stay_few():
    node = leaf("0.3", "Did #1 meet #2?", ("0.1", "0.2"))
    passages = [parent((f"{c}a", f"x {c}b saw {c}c"), node_id=n, query="q") for c, n in (("A", "0.1"), ("B", "0.2"))]
    assert bound(node, *passages, names=4).node.variants == (
        "Did Aa meet Ba?",
        "Did Aa meet Bb?",
        "Did Ab meet Ba?",
        "Did Aa meet Bc?",
    )


def test_given_sixty_parents_of_many_names_when_bound_then_not_all_products_are_made():
    ids = [f"0.{n}" for n in range(1, 61)]
    text = " and ".join(f"Xavier{n}" for n in range(20))
    many = [parent(("T", text), node_id=node_id, query="q") for node_id in ids]
    node = leaf("0.61", " ".join(f"#{n}" for n in range(1, 61)), tuple(ids))
    assert len(bound(node, *many, names=20).node.variants) == 20


def test_given_a_reference_inside_a_found_name_when_bound_then_it_stays_text():
    node = leaf("0.3", "#1 or #2?", ("0.1", "0.2"))
    found = bound(
        node, parent(("Track #2 Alpha", ""), query="q"), parent(("Beta", ""), node_id="0.2", query="q"), names=1
    )
    assert found.node.query == "Track #2 Alpha or Beta?"


def test_given_a_binding_that_broke_when_unbound_then_the_leaf_runs_without_and_says_so():
    found = unbound(WIFE, "internal error")
    assert (found.node.query, found.node.bound_by) == ("Who is the wife of?", "nothing")
    assert "internal error" in found.warnings[0]


def test_given_names_that_the_question_holds_when_picked_then_they_are_left_out_as_whole_words():
    hits = [hit("Art", "Art met Bartholomew and Titanic.")]
    assert candidate_names("who is in Titanic with Bartholomew's", hits, 9) == ("Art",)


def test_given_chinese_passages_when_picked_then_titles_marked_and_dotted_names_are_found():
    hits = [hit("活着", "《活着》由余华所著。改编者是弗朗西斯·福特·科波拉，另有《许三观卖血记》。")]
    names = candidate_names("《活着》的改编者是谁", hits, 9)
    assert "活着" not in names
    assert "许三观卖血记" in names
    assert any("弗朗西斯·福特·科波拉" in name for name in names)
