"""Which sentences answer a question: by kind, by relation, over a hop, in the question's language."""

from __future__ import annotations

import pytest

from shared.models import Facet, MergedHit, MergedPool, Node, NodeKind, Source
from workers.display import plain_line
from workers.merge.extract import extract

NODES = {
    "0": Node(id="0", level=0, facet=Facet.CORE, query="q", kind=NodeKind.BRANCH),
    "0.0": Node(id="0.0", level=1, facet=Facet.ORIGINAL, query="q"),
}


def hit(number: int, title: str, text: str, score: float = 0.5) -> MergedHit:
    source = Source(node_id="0.0", facet="original", rank=number, score=score)
    return MergedHit(
        chunk_id=f"c{number}", doc_id=f"d{number}", path=f"{number}.md", title=title, text=text, score=score,
        sources=(source,),
    )  # fmt: skip


def lines(question: str, *hits: MergedHit) -> list[str]:
    return extract(question, MergedPool(hits=hits, reranked_by="lexical:v1"), NODES).text.split("\n")


ADA = (
    "Ada Lum leads the relay team. The relay team has 14 members. Ada Lum joined the relay team in March 2019 in Oslo."
)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("When did Ada Lum join?", "Ada Lum joined the relay team in March 2019 in Oslo. [1]"),
        ("How many members does the relay team have?", "The relay team has 14 members. [1]"),
        ("Who leads the relay team?", "Ada Lum leads the relay team. [1]"),
    ],
)
def test_given_a_kind_of_answer_then_the_sentence_that_holds_one_comes_first(question: str, first: str) -> None:
    assert lines(question, hit(1, "Relay", ADA))[0] == first


@pytest.mark.parametrize(
    ("question", "text", "first"),
    [
        ("灰雉的体长是多少？", "灰雉是一种鸟类。灰雉在山地。平均91厘米，体长近火鸡。", "平均91厘米，体长近火鸡。 [1]"),
        ("灰雉有什么著作？", "灰雉，字维之，生卒年不详。著有《高阳集》。", "著有《高阳集》。 [1]"),
    ],
)
def test_given_a_sentence_without_its_subject_then_that_of_its_title_counts(
    question: str, text: str, first: str
) -> None:
    assert first in lines(question, hit(1, "灰雉", text))[:2]


def test_given_a_page_that_the_named_page_leads_to_then_its_sentence_is_quoted_with_its_title() -> None:
    found = lines(
        "What is the place of birth of the director of film Blue Lion?",
        hit(1, "Blue Lion", "Blue Lion is a 1952 film directed by Werner Jakobs. Its sets were painted."),
        hit(2, "Place of birth", "The place of birth is where a person was born. It stands in many documents."),
        hit(3, "Werner Jakobs", "Werner Jakobs (1909-1999) was a director. He made comedies. He was born in Berlin."),
    )
    assert "Werner Jakobs: He was born in Berlin. [3]" in found[:3]


def test_given_two_pages_that_are_compared_then_both_are_quoted() -> None:
    found = lines(
        "Which film came out earlier, Blue Lion or Red Fox?",
        hit(1, "Blue Lion", "Blue Lion is a film of 1952. The film ran for a year. The film won a prize."),
        hit(2, "Film", "A film is what a camera makes. In Paris films were shown early."),
        hit(3, "Red Fox", "Red Fox is a film of 1949. Its director was ill."),
    )
    assert {"Blue Lion is a film of 1952. [1]", "Red Fox is a film of 1949. [3]"} <= set(found[:2])


def test_given_both_languages_then_the_questions_own_is_quoted_first() -> None:
    chinese = hit(
        1, "Relay restart 重启", "relay restart 要先停 queue，再重启 relay，最后检查日志是否正常。", score=0.9
    )
    english = hit(2, "Relay", "Stop the queue before the relay is started again.", score=0.6)
    assert lines("How do I restart the relay?", chinese, english)[0].endswith("[2]")


def test_given_a_hit_far_below_the_best_then_it_is_not_quoted() -> None:
    near, far = (
        hit(1, "Relay", "The relay restarts at night.", 0.9),
        hit(2, "Cafe", "The relay of cups restarts.", 0.01),
    )
    assert lines("When does the relay restart?", near, far) == ["The relay restarts at night. [1]"]


def test_given_scores_below_zero_then_the_best_hit_is_quoted() -> None:
    assert lines("When does the relay restart?", hit(1, "Relay", "The relay restarts at night.", -2.0)) == [
        "The relay restarts at night. [1]"
    ]


def test_given_a_long_sentence_then_the_part_that_answers_is_quoted_as_it_stands() -> None:
    lead = ", ".join(f"the north tower of site {number} was painted grey" for number in range(6))
    text = f"In spring {lead}, and the relay was moved to Oslo in May 2021."
    summary = extract("When was the relay moved to Oslo?", MergedPool(hits=(hit(1, "Log", text),)), NODES)
    first = summary.text.split("\n")[0]
    assert first.startswith("… ")
    assert "the relay was moved to Oslo in May 2021." in first
    assert summary.citations[0].quote in text
    assert len(summary.citations[0].quote) <= 200


def test_given_many_sentences_then_the_text_stays_short() -> None:
    facts = ("noon in the harbour office", "dusk for the northern library", "six by a guard of the palace gate",
             "one after each market holiday", "ten unless the theatre plays", "four under the school roof",
             "eight beside an old quarry", "three with help of a museum clerk")  # fmt: skip
    text = " ".join(f"The relay restarts at {fact}." for fact in facts)
    assert 250 < len("\n".join(lines("When does the relay restart?", hit(1, "Relay", text)))) < 500


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("See :ref:`Time limits <worker-limits>` and :setting:`acks_late`.", "See Time limits and acks_late."),
        ("`Celery <https://example.org>`_ and :func:`~app.task` run.", "Celery and app.task run."),
        ("``__repr__`` calls `rows[0]` of __all__.", "`__repr__` calls `rows[0]` of __all__."),
        ("__locals[__name] and __really bold__", "__locals[__name] and really bold"),
        ("**bold** and f(**kwargs)", "bold and f(**kwargs)"),
        ("a `List<str>` [2]", "a `List<str>` (2)"),
    ],
)
def test_given_markup_and_code_then_text_is_shown_and_code_stays(written: str, shown: str) -> None:
    assert plain_line(written) == shown


GATE = """# Gate

Errors of the gate:

| Code | Meaning |
| --- | --- |
| G1 | the key is wrong |
| G2 | see G1, the key is old |

Drills:

- 2025-09-16: failed after 4 h 10 min
- 2026-03-24: passed after 1 h 35 min

**Drain**: removing a host from service. The gate drains hosts at night.

To restore a host by hand:

1. Open the console.
2. Run `gate up NAME`.
3. Watch the panel.

Websockets are not allowed on free accounts. The gate costs 90 € a month and handles 20 requests.
"""


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What does error G1 mean?", "G1 – Meaning: the key is wrong [1]"),
        ("When was the last drill of the gate and how long did it take?", "2026-03-24: passed after 1 h 35 min [1]"),
        ("What is a drain?", "Drain: removing a host from service. The gate drains hosts at night. [1]"),
        ("Are websockets allowed on free accounts of the gate?", "Websockets are not allowed on free accounts. [1]"),
        ("How much does the gate cost a month?", "The gate costs 90 € a month and handles 20 requests. [1]"),
    ],
)
def test_given_a_question_of_a_manual_then_its_answer_stands_first(question: str, first: str) -> None:
    assert lines(question, hit(1, "Gate", GATE))[0] == first


def test_given_a_question_for_a_way_then_the_steps_stand_whole_and_in_order() -> None:
    found = lines("How do I restore a host by hand?", hit(1, "Gate", GATE))
    assert found[:3] == ["1. Open the console. [1]", "2. Run gate up NAME. [1]", "3. Watch the panel. [1]"]


def test_given_steps_that_end_in_a_colon_then_they_stand_with_their_code() -> None:
    text = "1. Close it.\n2. Restart the service:\n\n   ```\n   systemctl restart gate\n   ```\n\n3. Open it again."
    found = lines("How do I restart the gate by hand?", hit(1, "Gate", text))
    assert found[:2] == ["1. Close it. [1]", "2. Restart the service: [1]"]
    assert found[2:4] == ["`systemctl restart gate` [1]", "3. Open it again. [1]"]


def test_given_chinese_then_the_same() -> None:
    text = (
        "## 错误码\n\n| 错误码 | 含义 |\n| --- | --- |\n| T1 | 签名不对 |\n| T2 | 超过配额 |\n\n## 恢复\n\n"
        "手工恢复节点的步骤：\n\n1. 登录跳板机。\n2. 执行恢复命令。\n\n"
        "## 备份\n\n备份每月花费 860 元。墓碑是删除标记，保留 72 小时。"
    )
    page = hit(1, "网关手册", text)
    assert lines("T2 是什么意思？", page)[0] == "T2 – 含义: 超过配额 [1]"
    assert lines("怎么手工恢复节点？", page)[:2] == ["1. 登录跳板机。 [1]", "2. 执行恢复命令。 [1]"]
    assert lines("备份每月花多少钱？", page)[0] == "备份每月花费 860 元。 [1]"
    assert lines("什么是墓碑？", page)[0] == "墓碑是删除标记，保留 72 小时。 [1]"


def test_given_a_best_hit_that_shares_a_word_by_chance_then_nothing_is_quoted() -> None:
    found = lines("What is the capital of Oslo county?", hit(1, "Names", "A capital begins a name.", 0.03))
    assert found == ["Nothing on this was found in the corpus."]


def test_given_several_pages_then_a_second_sentence_of_one_waits_for_the_others() -> None:
    found = lines(
        "Which relay runs in Oslo?",
        hit(1, "North", "The relay Fjell runs in Oslo. The relay Berg runs at night in Oslo.", 0.9),
        hit(2, "South", "The relay Vann runs near Oslo by day.", 0.8),
    )
    assert [line[-3:] for line in found[:2]] == ["[1]", "[2]"]


def test_given_a_defining_sentence_in_a_hit_far_below_then_it_is_quoted() -> None:
    found = lines(
        "What does drain mean?",
        hit(1, "Letters", "A queue that drains slowly means that messages wait for long.", 0.9),
        hit(2, "Glossary", "**Drain**: removing a host from service.", 0.06),
    )
    assert "Drain: removing a host from service. [2]" in found
