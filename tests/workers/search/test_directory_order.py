"""The order of opening directories, when it ends, and where a strategy may have its hierarchy. Pure."""

from __future__ import annotations

import pytest

from shared.models import Hit
from shared.settings import stages as s
from shared.settings.strategies import Strategy, checked
from workers.search.stages.hierarchy import DirectoryOrder, DirectoryPlace, Inside


def node(path: str) -> Hit:
    return Hit(chunk_id=path, doc_id=path, path=path, title=path, text=path, score=0.0)


def opened_by(order: DirectoryOrder, owns: dict[str, float]) -> list[list[str]]:
    """Open everything; every directory gives one chunk of its own name with the score named."""
    rounds: list[list[str]] = []
    while places := order.open_next():
        rounds.append([place.node.path for place in places])
        order.take([Inside(place, (), [(node(f"{place.node.path}.md"), owns[place.node.path])]) for place in places])
    return rounds


def test_given_directories_when_opened_then_the_best_come_first_beam_at_a_time() -> None:
    order = DirectoryOrder(s.HierarchyStage(beam=2, threshold=0.2))
    for path, score in (("c", 0.5), ("a", 0.9), ("b", 0.5)):
        order.start(DirectoryPlace(node(path), score, score))
    assert opened_by(order, dict.fromkeys("abc", 0.5)) == [["a", "b"], ["c"]], "ties by path"
    assert order.stopped == "no directory is left that scores above 0.2"


def test_given_the_same_best_for_three_rounds_when_opened_then_it_stops() -> None:
    order = DirectoryOrder(s.HierarchyStage(beam=1, top_k=1, patience=3))
    for number in range(9):
        order.start(DirectoryPlace(node(f"{number}"), 0.9 - number / 100, 0.0))
    rounds = opened_by(order, {"0": 1.0, **{f"{number}": 0.2 for number in range(1, 9)}})
    assert len(rounds) == 4, "one that finds the best, three that change nothing"
    assert order.stopped == "the best 1 stayed the same for 3 rounds"


def test_given_a_directory_twice_when_opened_then_once_and_at_its_best_score() -> None:
    order = DirectoryOrder(s.HierarchyStage(beam=1))
    order.start(DirectoryPlace(node("a"), 0.3, 0.3))
    order.start(DirectoryPlace(node("a"), 0.8, 0.3))
    assert opened_by(order, {"a": 0.6}) == [["a"]]
    assert order.reached["a.md"].score == pytest.approx(0.7)  # half of 0.6, half of 0.8


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ((s.LexicalStage(), s.FusionStage(), s.HierarchyStage()), "hierarchy searches by itself: leave out lexical"),
        ((s.HierarchyStage(), s.ExpansionStage()), "hierarchy searches by itself: leave out expansion"),
        ((s.LimitStage(), s.HierarchyStage()), "hierarchy must stand first, and once"),
        ((s.HierarchyStage(), s.HierarchyStage()), "hierarchy must stand first, and once"),
    ],
)
def test_given_a_hierarchy_out_of_place_when_checked_then_it_is_refused(stages: Strategy, said: str) -> None:
    with pytest.raises(ValueError, match=f"strategy 'mine': {said}"):
        checked("mine", stages)
