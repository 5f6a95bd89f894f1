"""Blocks and sentences of Markdown and reStructuredText: what is what, and every span a slice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.language.sentences import BlockKind, blocks
from shared.language.text import days_in

RST = """Pipeline
~~~~~~~~

:Owner: Ravi Menon
:Version: 2.7

.. _layout:

.. note::

   The cleaner drops old events.

.. warning:: Never set ``strict``.

Install it::

    pip install pipeline

    pipeline run

Then use it.

.. code-block:: python
   :linenos:

   run(__file__)

.. toctree::
   hidden

=====  =====
Name   Kept
=====  =====
raw    30 days
=====  =====

+-----+---------+
| P11 | refused |
+-----+---------+

Done.
"""


def kinds(text: str) -> list[tuple[str, str]]:
    return [(block.kind.value, text[block.start : block.end]) for block in blocks(text)]


def test_given_restructured_text_then_each_block_is_what_it_is() -> None:
    assert kinds(RST) == [
        ("heading", "Pipeline"),
        ("prose", ":Owner: Ravi Menon"),
        ("prose", ":Version: 2.7"),
        ("prose", "The cleaner drops old events."),
        ("prose", "Never set ``strict``."),
        ("prose", "Install it::"),
        ("fence", "pip install pipeline\n\n    pipeline run"),
        ("prose", "Then use it."),
        ("fence", "run(__file__)"),
        ("table", "=====  =====\nName   Kept\n=====  =====\nraw    30 days\n=====  ====="),
        ("table", "+-----+---------+\n| P11 | refused |\n+-----+---------+"),
        ("prose", "Done."),
    ]


def test_given_markdown_then_fences_and_items_stay_apart() -> None:
    text = "Title\n===\n\n1. one\n2. two\n\n```sh\n.. note:: no\n```\n```\nmore\n```\n...and so on"
    assert kinds(text) == [
        ("heading", "Title"),
        ("prose", "one"),
        ("prose", "two"),
        ("fence", "```sh\n.. note:: no\n```"),
        ("fence", "```\nmore\n```"),
        ("prose", "...and so on"),
    ]


LINES = st.sampled_from([
    "= =", "== ==", "::", "a::", "  b", ".. note:: x", ".. code::", "   :o: 1", "~~~", "```", "|a|", "", "+--+", "1. c",
    "# d", "word", ":f: g",
])  # fmt: skip


@given(st.lists(LINES, max_size=25))
def test_property_blocks_are_ordered_and_no_line_of_a_paragraph_is_twice(lines: list[str]) -> None:
    text, end = "\n".join(lines), 0
    for block in blocks(text):
        assert end <= block.start < block.end <= len(text)
        assert block.kind in BlockKind
        end = block.end


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2026-04-21 passed", [(2026, 4, 21)]),
        ("on 20 May 2026 and in March 2025", [(2026, 5, 20), (2025, 3, 0)]),
        ("2026年5月8日", [(2026, 5, 8)]),
        ("version 3.11.2026, 12026-04-21", []),
    ],
)
def test_given_days_with_their_year_then_they_are_read(text: str, days: list[tuple[int, int, int]]) -> None:
    assert days_in(text) == days
