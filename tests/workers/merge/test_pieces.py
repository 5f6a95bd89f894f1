"""What can be quoted of a passage, as what it is: rows, items, definitions, code, and what each stands below."""

from __future__ import annotations

import pytest

from shared.language.text import terms
from shared.models import Hit
from workers.display import plain_line
from workers.merge.pieces import QuotableSentence, quotable_sentences


def of(text: str) -> list[QuotableSentence]:
    return quotable_sentences([Hit(chunk_id="c", doc_id="d", path="p", title="t", text=text, score=1.0)])


def shown(text: str) -> list[str]:
    return [one.text for one in of(text)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("| Code | Meaning |\n| --- | --- |\n| H1 | gone &amp; lost |", ["H1 – Meaning: gone & lost"]),
        ("|---|---|\n| raw | kept for 30 days |\n", ["raw – kept for 30 days"]),
        ("====  =======\nName  Kept for\n====  =======\nraw/  30 days\n====  =======", ["raw/ – Kept for: 30 days"]),
        ("+-----+-----------+\n| Code| Meaning   |\n+=====+===========+\n| P11 | no schema |\n+-----+-----------+",
         ["P11 – Meaning: no schema"]),
        ("Tombstone\n: A marker of deletion.", ["Tombstone: A marker of deletion."]),
        ("``batch``\n    Events in a batch. Default: 5000.", ["batch: Events in a batch. Default: 5000."]),
        (".. option:: --dry-run\n\n   Write nothing at all.", ["--dry-run: Write nothing at all."]),
        (":Owner: Ravi Menon", ["Owner: Ravi Menon"]),
        ("Is it safe?\n\nYes. Every batch has a key.", ["Yes. Every batch has a key."]),
        ("可以跑吗？\n\n不可以。全量备份会占满带宽。", ["不可以。全量备份会占满带宽。"]),
        ("```sh\n$ tool cache purge\n# all of it\ntool.call(\n```", ["`tool cache purge`"]),
        ("::\n\n    rows = store[__name__]", ["`rows = store[__name__]`"]),
    ],
)  # fmt: skip
def test_given_a_format_then_its_parts_are_shown_as_what_they_are(text: str, pieces: list[str]) -> None:
    assert shown(text) == pieces
    for one in of(text):
        assert one.quote in text


def test_given_what_stands_above_then_a_piece_knows_it() -> None:
    text = "## Drills\n\nDrills of a vault:\n\n- passed in 2 hours\n\n| Day | Result |\n|---|---|\n| Monday | missed |"
    item, row = of(text)
    assert {*terms("drill vault")} <= item.lead
    assert {*terms("drill result")} <= row.lead
    assert row.subject == frozenset(terms("Monday"))
    assert (item.place, row.place) == (1, 2)


def test_given_ordered_lists_then_the_items_of_each_share_a_number() -> None:
    text = "1. Stop the relay.\n2. Copy the disk.\n\nOr else wait here.\n\n1. Ask the owner.\n2. Go home early."
    assert [one.series for one in of(text)] == [1, 1, 0, 2, 2]


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("20&nbsp;% &mdash; a &lt;b&gt; &#27;", "20 % — a &lt;b&gt;"),
        ("see {ref}`Hash mode <hash>` and [docs][d].", "see Hash mode and docs."),
        (".. versionchanged:: 2.5\n   Offsets move.", "versionchanged: 2.5 Offsets move."),
        ("we used it wrongly.**", "we used it wrongly."),
        ("`M&uuml;ller`", "M&uuml;ller"),
    ],
)
def test_given_markup_of_a_format_then_text_is_shown(written: str, line: str) -> None:
    assert plain_line(written) == line


def test_given_a_list_of_questions_and_answers_then_an_answer_stands_below_its_question_alone() -> None:
    text = (
        "13. How do I build the pump library?\n\n    Run the plain build.\n\n"
        "14. How do I install a shared pump on Unix?\n\n    make install\n\n    Many systems have one already.\n\n"
        "15. I found a fault.\n\n    Please tell us about it.\n"
    )
    found = {one.text: one.lead for one in of(text)}
    assert {"install", "shar", "unix"} <= found["make install"] & found["Many systems have one already."]
    assert "install" not in found["Run the plain build."] | found["Please tell us about it."]


def test_given_links_then_a_label_in_a_sentence_counts_and_none_is_cut_in_two() -> None:
    listed = "* Supports [69 languages](https://x.example/list.md)\n* [Feature toggles](#feature-toggles)\n"
    image = '\n<img alt="How it works" src="https://x.example/a.png" width="450" />\n'
    padding = "all of " * 14
    long = f"Please read an article about {padding}this in [The {'A' * 99}](https://x.example/p)."
    found = shown(f"{listed}{image}\n{long}\n")
    assert found[0] == "Supports 69 languages"
    assert all(any(map(str.isalnum, text)) and "](" not in text for text in found)


def test_given_fields_line_by_line_then_each_is_a_piece() -> None:
    assert shown("负责人：林若溪\n状态：已批准") == ["负责人：林若溪", "状态：已批准"]
    assert shown("Owner: Priya Raman\nStatus: in review") == ["Owner: Priya Raman", "Status: in review"]


def test_given_a_ruler_of_tildes_then_what_stands_below_it_is_no_code() -> None:
    ruler = "~" * 26
    assert shown(f"Valgrind is a tool.\n\n{ruler}\n\nsee the manual of it") == [
        "Valgrind is a tool.",
        "see the manual of it",
    ]
