"""The direction in which a question looks along calls: what something calls, or what calls it."""

from __future__ import annotations

import time

import pytest

from workers.search.stages.edge_keys import asked_direction, has_direction


@pytest.mark.parametrize(
    ("question", "direction"),
    [
        ("what does merge_tree call", "out"),
        ("Which helpers do the workers use?", "out"),
        ("merge_tree 调用了哪些函数", "out"),
        ("what calls merge_tree", "back"),
        ("which function calls Store.open", "back"),
        ("who uses parse_config?", "back"),
        ("all callers of merge_tree", "back"),
        ("谁调用了 merge_tree", "back"),
        ("哪些函数会使用 parse_config", "back"),
        ("how are duplicates folded", None),
        ("how do I call for help", None),
        ("重复的结果怎么合并", None),
    ],
)
def test_given_a_question_when_read_then_its_way_is_told(question: str, direction: str | None) -> None:
    assert asked_direction(question) == direction


def test_given_edges_when_asked_for_one_way_then_only_those_told_so_go_it() -> None:
    assert [has_direction(how, "out") for how in ("call", "link", "mention")] == [True] * 3
    assert [has_direction(how, "back") for how in ("called by", "linked by", "mentioned by")] == [True] * 3
    assert not has_direction("call", "back")
    assert not has_direction("called by", "out")


@pytest.mark.parametrize("text", ["does " * 20000, "which a " * 20000, "谁" * 50000, "do a" * 20000])
def test_given_hostile_text_when_read_then_it_takes_no_time(text: str) -> None:
    begun = time.thread_time()
    asked_direction(text)
    assert time.thread_time() - begun < 0.5
