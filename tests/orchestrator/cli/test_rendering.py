"""What a terminal is shown: trees that grow, answers, tables; never an escape, never somebody else's markup.

What `--explain` shows of a hit that was reached from another one, and of a stage that has something to say.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from orchestrator.cli.render.answer import cost_line, draw_answer, draw_explained, draw_stages
from orchestrator.cli.render.batches import accounts_line, draw_batch
from orchestrator.cli.render.grouped import draw_found
from orchestrator.cli.render.tables import draw_job, draw_jobs
from orchestrator.cli.render.tree import compact, draw
from orchestrator.cli.text import cited, duration
from orchestrator.growth import Growth, apply, of_answer, replay
from orchestrator.searching import grouped, ranking
from orchestrator.text_lines import json_text, one_line
from shared.hidden import visible
from shared.models import BatchStatus, Cost, Hit, JobEvent, MergedHit, SearchResult, Summary, Via
from shared.models.find import Context, Related
from shared.models.hits import Effect, StageTrace
from shared.models.request import TypedQuery
from tests.fakes.ramify_client import CREATED, FakeRamify, answer, events, hit

NASTY = "\x1b[31mred\x1b]0;title\x07 [bold]x[/bold] [/oops] \x9b2J :smile: \u202eabc"


def shown(renderable, width=80, *, colours=False):
    """What the console prints: plain text, or with colours as to a terminal."""
    file = io.StringIO()
    console = Console(
        file=file, width=width, markup=False, highlight=False, emoji=False, force_terminal=colours, legacy_windows=False
    )
    console.print(renderable)
    return file.getvalue()


def test_given_events_when_applied_then_the_tree_has_grown():
    growth = replay("Redis?", events("Redis?"))
    assert growth.state == "done"
    assert [node.id for node in growth.children()] == ["0.0", "0.1"]
    assert (growth.leaves["0.0"].status, growth.leaves["0.0"].hits) == ("done", 5)
    assert growth.leaves["0.1"].error == "the store is gone"
    assert growth.settled == 2
    assert growth.warnings == ("No LLM is configured.",)
    assert growth.ended_ms - growth.began_ms == 700


def test_given_a_branch_that_comes_back_as_a_leaf_when_applied_then_it_is_one_node():
    branch = '{"id":"0.1","parent_id":"0","level":1,"facet":"core","query":"q","kind":"branch","budget":3}'
    leaf = branch.replace('"branch"', '"leaf"')
    growth = replay(
        "q", [JobEvent(id=f"{i}-0", type="node", data={"node": raw}) for i, raw in enumerate([branch, leaf])]
    )
    assert len(growth.nodes) == 1
    assert growth.leaves["0.1"].status == "pending"


def test_given_a_leaf_that_waits_when_it_is_bound_then_the_tree_shows_its_new_query_and_how_many_names_it_has():
    waits = '{"id":"0.2","parent_id":"0","level":1,"facet":"core","query":"who is #1?","depends_on":["0.1"]}'
    bound = waits.replace("who is #1?", "who is Ada?").replace("}", ',"variants":["who is Ada?","who is Bo?"]}')
    growth = replay("q", [JobEvent(id="1-0", type="node", data={"node": waits})])
    assert growth.leaves["0.2"].status == "waiting"
    assert "who is #1? · waits for 0.1" in shown(draw(growth))
    growth = apply(growth, JobEvent(id="2-0", type="bound", data={"node": bound}))
    assert growth.leaves["0.2"].status == "pending"
    assert "who is Ada? (and 1 other name)" in shown(draw(growth))


def test_given_a_leaf_that_was_added_for_a_gap_when_drawn_then_the_tree_says_for_what():
    added = (
        '{"id":"0.3","parent_id":"0","level":1,"facet":"gap","query":"Ann Marsh born",'
        '"gap":{"signal":"chain","what":"Ann Marsh"}}'
    )
    growth = replay("q", [JobEvent(id="1-0", type="node", data={"node": added})])
    assert "0.3 gap      Ann Marsh born · searched again for Ann Marsh" in shown(draw(growth))


def test_given_an_event_of_another_release_when_applied_then_nothing_breaks():
    before = Growth(question="q", began_ms=1)
    assert apply(before, JobEvent(id="5-0", type="later")) == before
    odd = apply(before, JobEvent(id="5-0", type="node", data={"node": "{}"}))
    assert not odd.nodes
    assert len(odd.warnings) == 1
    assert apply(odd, JobEvent(id="6-0", type="node", data={"node": "{}"})).warnings == odd.warnings


def test_given_ten_children_when_drawn_then_the_tenth_comes_last():
    raw = '{"id":"0.%d","parent_id":"0","level":1,"facet":"core","query":"q%d"}'
    growth = replay("q", [JobEvent(id="1-0", type="node", data={"node": raw % (n, n)}) for n in (10, 2, 9)])
    assert [node.id for node in growth.children()] == ["0.2", "0.9", "0.10"]


def test_given_a_running_job_when_drawn_then_open_leaves_count_up_and_the_failed_one_says_why():
    early = events("Why is Redis slow?")[:4]
    growth = replay("Why is Redis slow?", early)
    text = shown(draw(growth, now_ms=growth.began_ms + 1500))
    assert "searching · 0 of 2 leaves · 1.5 s" in text
    assert "◐ 0.0 original Why is Redis slow? · 1.4 s" in text
    assert "○ 0.1 why" in text
    ended = shown(draw(replay("Why?", events("Why?"))))
    assert "● 0.0 original Why? · 5 hits · 300 ms" in ended
    assert "✗ 0.1 why      Why: Why? · 0 hits · 300 ms · the store is gone" in ended


def test_given_a_small_screen_when_compact_then_it_is_two_lines():
    text = shown(compact(replay("Why?", events("Why?")))).rstrip("\n")
    assert text.splitlines()[1].split() == ["●", "✗"]


def test_given_an_answer_when_drawn_then_every_part_is_there():
    text = shown(draw_answer(answer("j", "Why is Redis slow?", partial=True)))
    for part in (
        "Why is Redis slow?", "done (partial) · 1 of 2 leaves answered", "Streams keep order. [1]", "[1] Note 1",
        "notes/1.md", "2026-04-02", "“streams keep order”", "best: Note 1 › Context  0.5", "the store is gone",
        "Results (1)", "0.0 #1", "Cost: ", "Warning: No LLM is configured.",
    ):  # fmt: skip
        assert part in text, part
    assert "queued 1 ms · summarising 5 ms · total 1.2 s" in text


def test_given_an_answer_without_anything_when_drawn_then_it_says_so():
    empty = answer("j", "q").model_copy(update={"summary": Summary(), "results": (), "leaves": (), "tree": ()})
    text = shown(draw_answer(empty))
    assert "There is no summary." in text
    assert "Nothing was found." in text


@pytest.mark.parametrize("width", [60, 80, 140])
def test_given_chinese_when_drawn_then_no_line_is_wider_than_the_screen(width):
    question = "缓存穿透、击穿和雪崩有什么区别，各怎么处理？" * 3
    given_answer = answer("j", question, text="先看区别。[1]\n" * 3)
    for renderable in (draw_answer(given_answer), draw(of_answer(given_answer)), draw_job(FakeStatus(question), 0.0)):
        text = shown(renderable, width)
        assert max(cell_len(line) for line in text.splitlines()) <= width
        assert "缓存穿透" in text


def FakeStatus(question):  # noqa: N802 - stands for JobStatus
    client = FakeRamify()
    return client.status(client.submit(question))


def test_given_markdown_headings_when_cited_then_their_marks_are_gone():
    assert cited("### In short\ntext [12]").plain == "In short\ntext [12]"


def nasty_answer():
    merged = MergedHit(**hit(1, NASTY, title=NASTY, path=NASTY, heading=NASTY).model_dump(), sources=())
    plain = answer("j", NASTY, text=NASTY)
    return plain.model_copy(update={"results": (merged,), "warnings": (NASTY,), "coverage": NASTY})


def nasty_find():
    way = Via(chunk_id="c0", bridge=NASTY, hop=1, how="link")
    found = SearchResult(hits=(hit(1, NASTY, title=NASTY, path=NASTY, snippet=NASTY, via=way),), mode="hybrid")
    related = (Related(uri=NASTY, title=NASTY, how="links to"),)
    asked = TypedQuery(query=NASTY, intent=NASTY)
    return grouped(
        found, {"c1": Context(abstract=f"{NASTY} too", related=related)}, [asked], [ranking(asked, found.hits)]
    )


def test_given_text_with_escapes_when_drawn_anywhere_then_no_escape_reaches_the_terminal():
    growth = replace(of_answer(nasty_answer()), error=NASTY)
    drawn = [draw_answer(nasty_answer()), draw_found(nasty_find()), draw(growth), compact(growth)]
    for renderable in drawn:
        text = shown(renderable)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
        assert "[bold]x[/bold]" in text.replace("\n", " ")
        assert "[/oops]" in text
        assert ":smile:" in text


def test_given_a_hit_that_another_one_led_to_when_drawn_then_the_way_stands_with_it():
    way = Via(chunk_id="c0", bridge="merge_tree", hop=1, how="called by")

    text = shown(draw_found(grouped(SearchResult(hits=(hit(1, "text", via=way),), mode="two_pass"), {}, [], [])))

    assert "reached (called by): merge_tree" in text


def test_given_colours_when_drawn_then_the_only_escapes_are_ours():
    text = shown(draw_answer(nasty_answer()), 4000, colours=True)
    ours = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert "\x1b" not in ours
    assert "[31mred" in ours


@given(st.text())
def test_given_any_text_when_cleaned_then_it_is_safe_and_cleaning_again_changes_nothing(text):
    safe = visible(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", safe)
    assert visible(safe) == safe
    assert "\n" not in one_line(text)


def test_given_control_characters_when_encoded_as_json_then_they_are_escaped_and_come_back():
    import json

    value = {"text": "\x1b[31m \x9b2J \x7f 中文"}
    line = json_text(value)
    assert not re.search("[\x00-\x1f\x7f-\x9f]", line)
    assert "中文" in line
    assert json.loads(line) == value


@pytest.mark.parametrize(("ms", "text"), [(0, "0 ms"), (999, "999 ms"), (1200, "1.2 s"), (123_000, "2 min 03 s")])
def test_given_milliseconds_then_people_can_read_them(ms, text):
    assert duration(ms) == text


def test_given_costs_then_only_what_was_spent_is_named():
    assert cost_line(Cost(llm_calls=1, llm_tokens_in=10, rerank_calls=2, rerank_documents=40)) == (
        "LLM 1 call (10 tokens in, 0 out), rerank 2 calls (40 documents)"
    )
    assert cost_line(Cost()).startswith("nothing")


def test_given_a_batch_when_drawn_then_the_time_left_follows_from_the_pace():
    batch = BatchStatus(batch_id="b1", lines=10, enqueued=10, finished=4, done=4, open=6, created_at=CREATED)
    text = shown(draw_batch(batch, rate=2.0, elapsed_s=2.0))
    assert "4 of 10" in text
    assert "2.0 jobs/s after 2.0 s, about 3.0 s left" in text


def test_given_a_batch_when_drawn_then_its_accounts_are_sums():
    batch = BatchStatus(
        batch_id="b1", lines=6000, enqueued=200, known=5790, duplicate=4, rejected=3, blank=3, open=20, done=150,
        degraded=25, failed=5, finished=180, known_open=7, reasons={"llm_unavailable": 25}, created_at=CREATED,
    )  # fmt: skip
    text = shown(draw_batch(batch), width=120)
    lines = "6,000 = 200 enqueued + 5,790 known + 4 duplicate + 3 rejected + 3 blank"
    jobs = "200 = 20 open + 150 done + 25 degraded + 5 failed"
    assert lines in text
    assert jobs in text
    assert "7 of the known jobs" in text
    assert "25 llm_unavailable" in text
    assert accounts_line(batch) == f"lines {lines}; jobs {jobs}"


def test_given_a_long_question_when_jobs_are_listed_then_ids_stay_whole_at_80_columns():
    job = FakeStatus("q" * 300).model_copy(update={"job_id": "6" * 21})
    text = shown(draw_jobs([job], CREATED + 30))
    assert "6" * 21 in text
    assert "30.0 s" in text
    assert len(text.splitlines()) == 2


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"state": "done"}, "done"),
        ({"state": "done", "degraded": ("llm_unavailable",)}, "degraded"),
        ({"state": "done", "degraded": ("llm_unavailable",), "partial": True}, "partial"),
        ({"state": "cancelled", "degraded": ("llm_unavailable",)}, "cancelled"),
        ({"state": "searching", "degraded": ("llm_unavailable",)}, "searching"),
        ({"state": "unreadable"}, "unreadable"),
    ],
)
def test_given_a_job_when_jobs_are_listed_then_its_outcome_stands_in_the_column_of_the_state(
    fields: dict[str, object], said: str
):
    text = shown(draw_jobs([FakeStatus("why?").model_copy(update=fields)], CREATED), width=120)
    assert text.splitlines()[1].split()[1] == said


def drawn(what: object) -> str:
    console = Console(width=120, file=io.StringIO())
    with console.capture() as capture:
        console.print(what)
    return capture.get()


def test_given_a_linked_hit_when_explained_then_its_way_is_shown() -> None:
    via = Via(chunk_id="a", bridge="tree.merge[red]", hop=2, how="called by")
    hit = Hit(
        chunk_id="b", doc_id="b", path="b.py", title="b", text="t", score=0.25, via=via,
        explain=(Effect(stage="edges", effect=0.25, detail={"hop": 2.0}),),
    )  # fmt: skip

    assert "called by tree.merge[red], hop 2" in drawn(draw_explained([hit]))
    assert "via" not in drawn(draw_explained([hit.model_copy(update={"via": None})]))


def test_given_a_stage_with_a_note_when_drawn_then_the_note_stands_beside_it() -> None:
    traces = [
        StageTrace(stage="edges", ms=1, hits=2, note="ambiguous names not followed: 3"),
        StageTrace(stage="truth", ms=1, hits=2, skipped="no page has compiled truth"),
    ]

    shown = drawn(draw_stages(traces))

    assert "ambiguous names not followed: 3" in shown
    assert "no page has compiled truth" in shown
