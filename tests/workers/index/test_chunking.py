"""Chunks follow headings, keep fences whole and lose nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.models import Chunk
from shared.models.hits import PagePart
from shared.settings.sections import ChunkingSettings
from workers.index.blocks import width
from workers.index.chunking import chunk_document
from workers.index.documents import Document, Markup, document_id
from workers.index.metadata import facet_of

SMALL = ChunkingSettings(target_chars=200, max_chars=400)


def document(text: str, markup: Markup = Markup.MARKDOWN, title: str = "Doc") -> Document:
    return Document(
        doc_id=document_id("/a.md", "default", "default"),
        path="a.md",
        title=title,
        text=text,
        markup=markup,
        source="/",
    )


def chunks_of(text: str, sizes: ChunkingSettings = SMALL, markup: Markup = Markup.MARKDOWN) -> list[Chunk]:
    return chunk_document(document(text, markup), sizes)


def solid(text: str) -> str:
    return "".join(text.split())


def is_subsequence(part: str, whole: str) -> bool:
    rest = iter(whole)
    return all(c in rest for c in part)


def open_fence(text: str) -> str | None:
    """The marker of a fence that `text` leaves open, looking through list and quote prefixes."""
    marker = None
    for line in text.split("\n"):
        found = re.match(r"[>\s]*(?:(?:[-*+]|\d+\.)\s+)*(`{3,}|~{3,})(.*)", line)
        if not found:
            continue
        if marker is None:
            marker = found[1]
        elif found[1][0] == marker[0] and len(found[1]) >= len(marker) and not found[2].strip():
            marker = None
    return marker


def test_given_headings_when_chunked_then_each_section_has_its_path() -> None:
    text = "intro\n\n# A\n\na\n\n## B\n\nb\n\n### C\n\nc\n\n## D\n\nd\n\nE\n=\n\ne"
    assert [(c.heading, c.text) for c in chunks_of(text)] == [
        ("", "intro"), ("A", "a"), ("A > B", "b"), ("A > B > C", "c"), ("A > D", "d"), ("E", "e"),
    ]  # fmt: skip


def test_given_a_first_heading_that_is_the_title_when_chunked_then_the_path_leaves_it_out() -> None:
    assert [c.heading for c in chunks_of("# Doc\n\na\n\n## **B** `x` [l](http://h)\n\nb")] == ["", "B x l"]


def test_given_bare_headings_when_chunked_then_only_those_without_content_below_become_text() -> None:
    assert [c.text for c in chunks_of("# A\n\n## B\n\nb\n\n## C\n\n## D\n")] == ["b", "C", "D"]
    assert [c.text for c in chunks_of("One line\nand two\n===")] == ["One line\nand two"]


def test_given_a_hash_in_a_fence_when_chunked_then_it_is_no_heading() -> None:
    (chunk,) = chunks_of("text\n\n```sh\n# not a heading\nls\n```\n")
    assert chunk.heading == ""
    assert "# not a heading" in chunk.text


def test_given_a_fence_wider_than_a_chunk_when_chunked_then_it_stays_whole_and_alone() -> None:
    fence = "```python\n" + "\n".join(f"line_{n} = {n}" for n in range(60)) + "\n```"
    assert SMALL.max_chars < width(fence) < 4 * SMALL.max_chars
    texts = [c.text for c in chunks_of(f"before\n\n{fence}\n\nafter\n")]
    assert texts == ["before", fence, "after"]


def test_given_a_fence_beyond_the_hard_limit_when_chunked_then_every_part_is_fenced_again() -> None:
    lines = [f"line_{n} = {n}" for n in range(300)]
    texts = [c.text for c in chunks_of("~~~py\n" + "\n".join(lines) + "\n~~~\n")]
    assert len(texts) > 4
    assert all(text.startswith("~~~py\n") and text.endswith("\n~~~") for text in texts)
    assert [line for text in texts for line in text.split("\n")[1:-1]] == lines


def test_given_an_unclosed_fence_when_chunked_then_it_is_closed() -> None:
    (chunk,) = chunks_of("a\n\n```\ncode\n")
    assert chunk.text == "a\n\n```\ncode\n```"


def test_given_a_long_list_with_code_when_chunked_then_cuts_fall_between_items() -> None:
    item = "- item {n} says something of a certain length\n\n  ```sh\n  run {n}\n\n  stop {n}\n  ```\n"
    texts = [c.text for c in chunks_of("".join(item.format(n=n) for n in range(12)))]
    assert len(texts) > 2
    assert all(open_fence(text) is None for text in texts)
    assert all(re.match(r"- item|\s*```sh", text) for text in texts)


def test_given_a_long_table_when_chunked_then_every_part_has_the_head() -> None:
    head = "| name | value |\n|---|---|"
    rows = [f"| row {n} | {n} |" for n in range(60)]
    texts = [c.text for c in chunks_of("\n".join([head, *rows]))]
    assert len(texts) > 1
    assert all(text.startswith(head) for text in texts)
    assert [line for text in texts for line in text.split("\n")[2:]] == rows


def test_given_a_long_table_in_a_list_when_chunked_then_it_is_cut_as_a_table() -> None:
    rows = [f"  | row {n} | {n} |" for n in range(60)]
    texts = [c.text for c in chunks_of("\n".join(["- item", "", "  | name | value |", "  |---|---|", *rows]))]
    assert len(texts) > 2
    assert all("| name | value |" in text for text in texts)
    assert [line for text in texts for line in text.split("\n") if "row" in line] == rows


def test_given_long_chinese_text_when_chunked_then_it_is_cut_after_sentences() -> None:
    sentence = "查询优化先量再改，不要凭感觉加索引。“先看执行计划！”他说；"
    chunks = chunks_of(sentence * 30)
    assert len(chunks) > 2
    assert all(width(c.text) <= SMALL.max_chars for c in chunks)
    assert all(c.text[-1] in "。；”" for c in chunks)
    assert "".join(c.text for c in chunks) == sentence * 30


def test_given_long_english_text_when_chunked_then_it_is_cut_after_sentences_not_in_version_numbers() -> None:
    chunks = chunks_of("Version 1.2.3 of the tool came out. It was (at last.) fast! Was it? " * 20)
    assert len(chunks) > 2
    assert all(c.text[-1] in ".!?)" for c in chunks)
    assert all(c.text.split()[0] in {"Version", "It", "Was", "fast!"} for c in chunks)


def test_given_one_endless_word_when_chunked_then_no_chunk_is_wider_than_the_maximum() -> None:
    for text in ("x" * 5000, "字" * 5000, "```\n" + "y" * 5000 + "\n```"):
        chunks = chunks_of(text)
        assert all(width(c.text) <= SMALL.max_chars + 8 for c in chunks)
        assert solid(text) == solid("".join(c.text for c in chunks)) or "```" in text


def test_given_a_tiny_last_paragraph_when_chunked_then_it_joins_its_section_but_no_other() -> None:
    texts = [c.text for c in chunks_of("w" * 190 + "\n\ntail\n\n# Next\n\nn")]
    assert texts == ["w" * 190 + "\n\ntail", "n"]


@pytest.mark.parametrize(
    ("widths", "chunks"),
    [
        ((98, 98), 1),
        ((98, 99), 2),
        ((47, 300), 1),
        ((48, 300), 2),
        ((40, 356), 1),
        ((40, 357), 2),
        ((300, 47), 1),
        ((300, 48), 2),
        ((349, 47), 1),
        ((350, 47), 2),
        ((300, 300, 47), 2),
        ((47, 300, 47), 1),
    ],
)
def test_paragraphs_join_up_to_the_target_and_tiny_ones_up_to_the_maximum(widths: tuple[int, ...], chunks: int) -> None:
    """Target 200, maximum 400, tiny below 50; the two line ends before each paragraph count."""
    assert len(chunks_of("\n\n".join("w" * wide for wide in widths))) == chunks


def test_given_a_link_in_a_heading_when_its_section_is_cut_then_it_counts_for_the_first_chunk_alone() -> None:
    first, second = chunks_of(f"# See [[The Outbox]]\n\n{'w' * 300}\n\n{'v' * 300}")
    assert (first.refs, second.refs) == (("title:the outbox",), ())


def test_given_code_beside_text_in_a_chunk_when_chunked_then_its_part_is_text() -> None:
    mixed, alone = chunks_of("Run it:\n\n```\nls\n```\n\n# Next\n\n```\nls\n```\n")
    assert (mixed.part, alone.part) == (PagePart.TEXT, PagePart.CODE)


def test_given_plain_text_when_chunked_then_markup_in_it_means_nothing() -> None:
    (chunk,) = chunks_of("# a\n\n- b\n\n```\n", markup=Markup.TEXT)
    assert (chunk.heading, chunk.text) == ("", "# a\n\n- b\n\n```")


def test_given_the_same_document_when_chunked_again_then_ids_are_the_same_and_follow_the_text() -> None:
    first, again, changed = (chunks_of(f"# A\n\na\n\n# B\n\n{b}") for b in ("b", "b", "c"))
    assert [c.chunk_id for c in first] == [c.chunk_id for c in again]
    assert [x.chunk_id == y.chunk_id for x, y in zip(first, changed, strict=True)] == [True, False]
    assert [c.ordinal for c in first] == [0, 1]


@pytest.mark.parametrize(
    ("heading", "facet"),
    [
        ("Context", "context"), ("境（Context）", "context"), ("一、背景", "context"), ("1. Background", "context"),
        ("欲", "intent"), ("目的", "intent"), ("🎯 Intent:", "intent"), ("行(Action)", "action"), ("做法", "action"),
        ("Result: 18 % faster", "result"), ("果", "result"), ("效果", "result"), ("五、悟（Insight）", "insight"),
        ("Lessons learned", "insight"), ("经验教训", "insight"), ("行业", None), ("Context-aware search", None),
        ("十", None), ("", None),
    ],
)  # fmt: skip
def test_given_a_heading_when_read_as_facet_then_only_the_five_are_known(heading: str, facet: str | None) -> None:
    assert facet_of(["Top", heading]) == facet


def test_given_memory_sections_when_chunked_then_the_chunks_carry_their_facet() -> None:
    chunks = chunks_of("# Doc\n\n## 境\n\na\n\n### 细节\n\nb\n\n## 悟\n\nc\n\n## Other\n\nd")
    assert [c.facet for c in chunks] == ["context", "context", "insight", None]


_words = st.text(alphabet="ab字句。！？；，. !?1`~|>\\ ", min_size=1, max_size=60)
_plain = st.text(alphabet="ab字 。.!\n\t\x0b\x0c\x1c\u00a0\u2028\u3000|`~>[]:<", max_size=900)


@st.composite
def _blocks(draw: st.DrawFn) -> tuple[str, str]:
    """A block of Markdown and the characters of it that must survive."""
    kind = draw(st.sampled_from(["heading", "text", "fence", "list", "table", "quote", "code"]))
    text = draw(_words).replace("`", "").replace("~", "").replace("|", "").replace(">", "").strip() or "x"
    text *= draw(st.integers(1, 8))
    lines = draw(st.lists(st.text(alphabet="ab #字-=", max_size=12), max_size=6)) * draw(st.integers(1, 60))
    marker = draw(st.sampled_from(["```", "~~~~"]))
    fence = "\n".join([marker + "py", *lines, marker])
    items = [f"- x{text}\n\n" + "\n".join("  " + line for line in fence.split("\n"))] * draw(st.integers(1, 4))
    rows = [f"| {n} | {text} |" for n in range(draw(st.integers(1, 40)))]
    code = "\n".join("    x" + line for line in lines)
    quote = "\n".join("> x" + line for line in ["", *lines])
    return {
        "heading": (f"{'#' * draw(st.integers(1, 6))} head", ""),
        "text": (f"x{text}", f"x{text}"),
        "fence": (fence, fence.replace(marker, "")),
        "list": ("\n".join(items), "\n".join(items).replace(marker, "")),
        "table": ("\n".join(["| a | b |", "|---|---|", *rows]), "\n".join(rows)),
        "quote": (quote, quote),
        "code": (f"p\n\n{code}", f"p{code}"),
    }[kind]


@settings(max_examples=60, deadline=None)
@given(st.lists(_blocks(), min_size=1, max_size=8))
def test_given_any_markdown_when_chunked_then_no_text_is_lost_and_no_fence_is_open(
    blocks: list[tuple[str, str]],
) -> None:
    chunks = chunks_of("\n\n".join(block for block, _ in blocks))
    assert is_subsequence(solid("".join(kept for _, kept in blocks)), solid("".join(c.text for c in chunks)))
    assert [c.text for c in chunks if open_fence(c.text)] == []
    assert all(width(c.text) <= 4 * SMALL.max_chars for c in chunks)


@settings(max_examples=100, deadline=None)
@given(_plain, st.sampled_from([Markup.MARKDOWN, Markup.TEXT]))
def test_given_any_characters_when_chunked_then_every_one_is_there_in_order(text: str, markup: Markup) -> None:
    joined = solid("".join(c.text for c in chunks_of(text, markup=markup)))
    if markup is Markup.TEXT:
        assert joined == solid(text)
    else:
        # A closing line may be added to an open fence, never taken away.
        assert is_subsequence(solid(text), joined)
