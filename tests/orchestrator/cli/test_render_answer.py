"""What a terminal shows of steps and of complete lists, in any width and both languages."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from orchestrator.cli.render.answer import draw_answer
from orchestrator.text_lines import json_text
from shared.models import Answer, Summary
from shared.models.answer import Bridge, ReasoningStep
from shared.models.enumeration import ListRow, ListTable
from shared.models.gaps import SearchedGap
from tests.fakes.ramify_client import answer

NASTY = "\x1b[31mred\x1b]0;title\x07 [bold]x[/bold] \u202eabc"


def shown(one: Answer, width: int = 100) -> str:
    file = io.StringIO()
    Console(file=file, width=width, markup=False, highlight=False, emoji=False).print(draw_answer(one))
    return file.getvalue()


def reasoned(*steps: ReasoningStep, kind: str = "extractive") -> Answer:
    plain = answer("j", "Where was the founder born?")
    return plain.model_copy(
        update={
            "aggregator": "reasoning",
            "steps": steps,
            "summary": plain.summary.model_copy(update={"kind": kind}),
        }
    )


def listed(**fields: object) -> Answer:
    rows = tuple(
        ListRow(doc_id=f"d{n}", title=f"Note {n}", path=f"notes/{n}.md", uri=f"ramify://default/notes/{n}.md",
            date="2026-04-02", sentence="Redis keeps order.")
        for n in range(1, 4)
    )  # fmt: skip
    values = {
        "understood": "tag = redis", "coverage": "scanned 412 of 412 documents", "scanned": 412, "planned": 412,
        "matched": 120, "pages": 1, "rows": rows,
    }  # fmt: skip
    table = ListTable(**(values | fields))
    return answer("j", "List all notes tagged redis").model_copy(
        update={"aggregator": "enumeration", "table": table, "results": (), "summary": Summary(text="| # |")}
    )


def test_given_gaps_when_drawn_then_a_line_each_says_what_became_of_it() -> None:
    closed = SearchedGap(signal="chain", what="A", searched=("0.1",), closed=True, text="What “A” leads to: found.")
    still = SearchedGap(signal="name", what="B", text="名称“B”：未找到。")
    text = shown(answer("j", "q").model_copy(update={"gaps": (closed, still)}))
    assert "● What “A” leads to: found." in text
    assert "○ 名称“B”：未找到。" in text
    assert "Gaps" not in shown(answer("j", "q"))


def test_given_steps_when_drawn_then_question_way_evidence_and_gap_are_there() -> None:
    text = shown(
        reasoned(
            ReasoningStep(
                number=1, kind="fact", node_id="0.1", facet="core", question="Who founded it?", found=("Ada", "Bo"),
                 found_by="names", text="Ada founded it. [1]", passages=(1,)),
            ReasoningStep(number=2, kind="fact", node_id="0.2", facet="core", question="Where was Ada born?",
                 planned="Where was #1 born?", after=(1,), gap="it found nothing",
                 bridges=(Bridge(start=1, name="Whitby", end=2), Bridge(name="Leeds", end=3, how="link"))),
        )
    )  # fmt: skip
    assert "Steps" in text
    assert "1. Who founded it?" in text
    assert "Ada founded it. [1]" in text
    assert "names handed on: Ada; Bo" in text
    assert "2. Where was Ada born? · after 1 · planned: Where was #1 born?" in text
    assert "[1] → Whitby → [2]  name" in text
    assert "[?] → Leeds → [3]  link" in text
    assert "gap: it found nothing" in text


@pytest.mark.parametrize("told", [True, False])
def test_given_aspects_then_only_those_that_the_summary_does_not_tell_are_written_out(told: bool) -> None:
    step = ReasoningStep(
        number=1, kind="aspect", node_id="0.1", facet="why", question="Why?", text="Because. [7]", passages=(7,)
    )
    whole = reasoned(step)
    if told:
        summary = whole.summary.model_copy(update={"text": "It is so.\nBecause. [7]"})
        whole = whole.model_copy(update={"summary": summary})
    text = shown(whole)
    aspects = text[text.index("Aspects") :]
    assert ("Because. [7]" in aspects) != told
    assert "[7]" in aspects


def test_given_a_list_when_drawn_then_count_coverage_rows_and_the_way_to_the_others_are_there() -> None:
    text = shown(listed())
    assert "120 documents · tag = redis · scanned 412 of 412 documents" in text
    assert "notes/3.md 2026-04-02" in text
    assert "117 more: `ramify result j --rows` shows all of them" in text
    assert "Nothing was found." not in text
    assert "| # |" not in text


def test_given_a_list_that_was_cut_then_every_reason_is_told() -> None:
    text = shown(listed(partial=True, changed=True, copies=2, dropped=1, coverage="scanned 31 of 50 documents"))
    for said in ("scanned 31 of 50", "not complete", "written while", "2 of them have the same text", "1 value of the"):
        assert said in text


def test_given_asked_for_columns_then_they_stand_beside_the_documents() -> None:
    row = ListRow(doc_id="d", title="T", path="t.md", uri="u", fields={"owner": "Ada"}, copy_of=1)
    text = shown(listed(columns=("owner", "port"), rows=(row,), matched=1))
    assert "owner" in text
    assert "Ada" in text
    assert "as 1" in text


@pytest.mark.parametrize("width", [50, 60, 80, 140])
def test_given_chinese_or_hostile_text_then_no_line_is_wider_than_the_screen_and_no_escape_gets_out(width: int) -> None:
    long = "数据库查询性能主要取决于索引和执行计划的质量。" * 6
    step = ReasoningStep(number=1, kind="hop", node_id="0.0", facet="original", question=long + NASTY, planned=NASTY,
                found=(long, NASTY), text=f"{long}{NASTY} [1]", gap=NASTY,
                bridges=(Bridge(start=1, name=long + NASTY, end=2),))  # fmt: skip
    row = ListRow(doc_id="d", title=long + NASTY, path="语料/" + "a" * 90, uri="u", sentence=long + NASTY,
              fields={NASTY: NASTY})  # fmt: skip
    for one in (reasoned(step), listed(rows=(row,), columns=(NASTY,)), listed(rows=(row,))):
        text = shown(one, width)
        assert max(cell_len(line) for line in text.splitlines()) <= width
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_given_an_answer_as_json_then_steps_and_table_read_back_and_an_older_one_still_does() -> None:
    step = ReasoningStep(number=1, kind="fact", node_id="0.1", facet="core", question="Who?")
    for one in (reasoned(step), listed()):
        assert Answer.model_validate_json(json_text(one)) == one
    old = answer("j", "q").model_dump(mode="json", exclude={"aggregator", "steps", "table", "route", "retrieval"})
    read = Answer.model_validate(old)
    assert (read.aggregator, read.steps, read.table) == ("simple", (), None)
