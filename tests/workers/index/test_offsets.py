"""Offsets of chunks in their document's text: the characters there are those of the chunk, and none of it is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import StoreError
from shared.models import RawDocument
from shared.settings.sections import ChunkingSettings
from shared.store.texts import BETWEEN, packed, text_of
from tests.support.offsets import assert_kept
from workers.index.chunking import chunk_document
from workers.index.documents import Document, Markup
from workers.index.offsets import between
from workers.index.readers import read_documents

_ROOT = Path(__file__).parents[3]
_SMALL = ChunkingSettings(target_chars=200, max_chars=400)
_LONG = "The pump of hall 4 was replaced. It took two hours! 泵在四号厅。更换用了两个小时；费用已批。 "
_BLOCKS = (
    "# **Pumps** and [valves](http://x/y)",
    "## 责任\n",
    "Of pumps\n========",
    "---",
    "",
    "\n\n",
    "  indented by two",
    "A line.\nAnother line, with `code`.",
    _LONG * 6,
    "- one\n- two\n\n  deeper\n- three",
    "> said\n> twice",
    "| a | b |\n| --- | --- |\n" + "| pump | 44 |\n" * 40,
    "- in a list\n\n  ```py\n" + "  x = 1\n" * 90 + "  ```",
    "```python\n" + "print('pump')\n" * 120 + "```",
    "~~~\nunclosed\n",
    "    indented code\n\n    more",
    "<!-- timeline -->",
    "2026-03-01: replaced",
    ".. _label:\n\nTitle\n=====",
    "code::\n\n    x = 1",
    ".. note:: odd",
    "trailing blanks   \n\n\n",
    "[ref]: http://x",
    "Cause: a leak\n\nAction: replaced\n\nResult: dry",
    "x" * 700,
    "\u3000全角空格",
    "# ",
    "#### `deep` *one*",
    "def f(a):\n    return a\n\n\nclass C:\n    x = 1\n\n    def m(self):\n"
    + "        self.x += 1\n" * 60
    + "\n    y = 2",
)


def _document(text: str, markup: Markup) -> Document:
    fields = {"doc_id": "6f1c6a0e-0d53-5c0b-9a5f-2b7f5f0f9a11", "path": "a/b.py", "title": "b", "source": "/a"}
    return Document(text=text, markup=markup, **fields)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(_BLOCKS), min_size=1, max_size=9), st.sampled_from(Markup), st.sampled_from(["\n", "\n\n"])
)
def test_given_any_text_when_cut_then_each_line_of_a_chunk_stands_at_its_offsets(
    blocks: list[str], markup: Markup, gap: str
) -> None:
    document = _document(gap.join(blocks), markup)
    if chunks := chunk_document(document, _SMALL):
        assert_kept(document, chunks)


@pytest.mark.parametrize(
    "path",
    [
        "examples/notes/en/queues/streams-vs-rabbitmq.md", "examples/notes/zh/search/search-service-overview.md",
        "examples/notes/zh/yulu.jsonl", "examples/notes/en/databases/lock-cheatsheet.txt", "workers/index/chunking.py",
    ],
)  # fmt: skip
def test_given_a_file_when_read_and_cut_then_its_text_is_kept(path: str) -> None:
    file = _ROOT / path
    raw = RawDocument(source="/s", path=path, identity=path, suffix=file.suffix, content=file.read_bytes())
    for document in read_documents(raw, 10_000_000):
        assert isinstance(document, Document)
        chunks = chunk_document(document, ChunkingSettings())
        assert sum(not chunk.spans for chunk in chunks) > 0.7 * len(chunks)
        assert_kept(document, chunks)


def test_given_a_table_in_parts_when_a_row_is_sought_then_its_offsets_are_its_own_and_the_heads_are_the_first() -> None:
    rows = "".join(f"| pump {number} | hall {number} |\n" for number in range(60))
    document = _document(f"Intro.\n\n| name | where |\n| --- | --- |\n{rows}", Markup.MARKDOWN)
    last = chunk_document(document, _SMALL)[-1]
    first = last.text.index("| pump 59 | hall 59 |")
    assert last.text.startswith("| name | where |")
    assert last.in_document(0, 16) == ((8, 24),)
    (place,) = last.in_document(first, first + 21)
    assert document.text[slice(*place)] == "| pump 59 | hall 59 |"


def test_given_a_text_with_a_part_missing_when_put_together_then_it_is_refused() -> None:
    document = _document("# One\n\nfirst\n\n# Two\n\nsecond", Markup.MARKDOWN)
    chunks = chunk_document(document, _SMALL)
    rests = [{BETWEEN: packed(rest)} for rest in between(document.text, chunks)]
    assert text_of(chunks, rests) == document.text
    with pytest.raises(StoreError, match="missing"):
        text_of(chunks[1:], rests[1:])
    with pytest.raises(StoreError, match="older release"):
        text_of([chunks[0].model_copy(update={"start": None})], rests)


def test_given_much_between_chunks_when_packed_then_it_is_compressed_and_reads_back() -> None:
    document = _document("one\n\n" + " \n" * 5000 + "two " * 100, Markup.TEXT)
    chunks = chunk_document(document, _SMALL)
    rests = [packed(rest) for rest in between(document.text, chunks)]
    assert any(isinstance(rest, str) for rest in rests)
    assert len(json.dumps(rests)) < 500
    assert text_of(chunks, [{BETWEEN: rest} for rest in rests]) == document.text
