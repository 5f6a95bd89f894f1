"""Markdown in answers and quotes becomes the few elements that are safe; everything else is text."""

from __future__ import annotations

import time

import pytest

from orchestrator.answer_text import blocks, groups
from orchestrator.server.page.markup import inline, unmarked


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**Redis** keeps *order*, _always_.", "<strong>Redis</strong> keeps <em>order</em>, <em>always</em>."),
        ("**重点**是`XREAD`的**顺序**", "<strong>重点</strong>是<code>XREAD</code>的<strong>顺序</strong>"),
        ("**call `a_b` now**", "<strong>call <code>a_b</code> now</strong>"),
        ("snake_case_name, 2 * 3 * 4, __init__, a*b*c", "snake_case_name, 2 * 3 * 4, __init__, a*b*c"),
        ("`<b>**x**</b>`", "<code>&lt;b&gt;**x**&lt;/b&gt;</code>"),
        (
            "[docs](https://e.org/a?b=1&c=2)",
            '<a href="https://e.org/a?b=1&amp;c=2" rel="noopener noreferrer nofollow">docs</a>',
        ),
        ("[x](javascript:alert(1)) [y](//e.org)", "[x](javascript:alert(1)) [y](//e.org)"),
        ('[x](https://e.org/"onload=1)', "[x](https://e.org/&#34;onload=1)"),
        ("**<script>alert(1)</script>**", "<strong>&lt;script&gt;alert(1)&lt;/script&gt;</strong>"),
        ("**open and *never closed", "**open and *never closed"),
    ],
)
def test_marks_within_a_line_are_elements_and_all_else_is_escaped(text: str, html: str) -> None:
    assert inline(text) == html


def test_texts_are_compared_without_marks() -> None:
    assert unmarked("**A `b`** and [c](https://e.org), 2 * 3") == "A b and c, 2 * 3"


@pytest.mark.parametrize("text", ["**a" * 20_000, "[a](" * 20_000, "`" * 50_001, "*" * 50_000, "_a" * 30_000])
def test_a_text_that_is_made_to_take_long_does_not(text: str) -> None:
    began = time.process_time()
    assert inline(text)
    assert time.process_time() - began < 1


def test_code_tables_and_numbered_lists_are_blocks() -> None:
    text = (
        "Steps:\n1. stop it\n2) start it [1]\n```sh\nrm *a*  # [1]\n\nls\n```\n"
        "| Year | Sum |\n|---|:--:|\n| 2021 | **5** [1] |\nend\n| no | table |\n~~~"
    )
    found = blocks(text, (), frozenset({1}))
    assert [(kind, len(some)) for kind, some in groups(found)] == [
        ("paragraph", 1), ("numbered", 2), ("code", 1), ("row", 2), ("paragraph", 3),
    ]  # fmt: skip
    assert [block.number for block in found if block.kind == "numbered"] == ["1", "2"]
    code = next(block for block in found if block.kind == "code")
    assert code.sentences[0].pieces[0].text == "rm *a*  # [1]\n\nls"
    rows = [[[piece.text for one in cell for piece in one.pieces] for cell in row.cells] for row in found if row.cells]
    assert rows == [[["Year"], ["Sum"]], [["2021"], ["**5** ", "[1]"]]]
