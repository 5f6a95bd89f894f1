"""Kinds of pages, parts of a page, facets of memories: as people write them, in both languages."""

from __future__ import annotations

import pytest

from shared.models import Chunk
from shared.settings.sections import ChunkingSettings
from workers.index.chunking import chunk_document
from workers.index.documents import Document, Markup, document_id

SIZES = ChunkingSettings(target_chars=200, max_chars=400)


def chunks(text: str, title: str = "Page", path: str = "notes/page.md", **more: object) -> list[Chunk]:
    given = {
        "doc_id": document_id(path, "default", "default"),
        "path": path,
        "title": title,
        "text": text,
        "source": "/",
        **more,
    }
    return chunk_document(Document.model_validate({"markup": Markup.MARKDOWN, **given}), SIZES)


def parts(text: str, title: str = "Page") -> list[str]:
    return [chunk.part.value for chunk in chunks(text, title)]


@pytest.mark.parametrize(
    ("heading", "part"),
    [
        ("Summary", "truth"), ("Compiled Truth", "truth"), ("**TL;DR**", "truth"), ("1. Current state", "truth"),
        ("结论", "truth"), ("一、现状", "truth"), ("事实（Facts）", "truth"),
        ("Timeline", "timeline"), ("2) History", "timeline"), ("Changelog", "timeline"), ("时间线", "timeline"),
        ("三、更新记录", "timeline"), ("Log (2024)", "timeline"),
        ("Summaries of others", "text"), ("Login", "text"), ("历史上的今天", "text"), ("Details", "text"),
    ],
)  # fmt: skip
def test_given_a_heading_when_chunked_then_it_says_which_part_of_the_page_follows(heading: str, part: str) -> None:
    assert parts(f"intro\n\n## {heading}\n\na\n\n### deeper\n\nb\n\n## Other\n\nc") == ["text", part, part, "text"]


def test_given_a_rule_before_a_timeline_when_chunked_then_what_stands_above_is_compiled_truth() -> None:
    for below in (
        "## Timeline\n\n- 2024-05-01 met",
        "- **2024-05-01** | mail: met",
        "- 2024年5月1日 见面",
        "### 2024-05-01\n\nmet",
    ):
        assert parts(f"holds now\n\n## More\n\nstill\n\n---\n\n{below}") == ["truth", "truth", "timeline"]
    assert parts("holds\n\n<!-- timeline -->\n\nold") == ["truth", "timeline"]


def test_given_any_other_rule_when_chunked_then_it_parts_nothing() -> None:
    assert parts("a\n\n---\n\nb") == ["text"]
    assert parts("a\n\n```\n---\n- 2024-05-01 x\n```\n\nb") == ["text"]


def test_given_a_short_truth_and_timeline_when_chunked_then_no_chunk_holds_both() -> None:
    assert [c.text for c in chunks("now\n\n---\n\n- 2024-05-01 then")] == ["now", "- 2024-05-01 then"]


def test_given_a_changelog_when_chunked_then_all_of_it_is_timeline_but_a_summary_page_is_no_truth() -> None:
    assert parts("## 1.2\n\nx", "Changelog") == ["timeline"]
    assert parts("## 1.2\n\nx", "Summary") == ["text"]


def test_given_a_chunk_of_code_alone_when_chunked_then_it_is_code() -> None:
    fence = "```py\n" + "x = 1\n" * 60 + "```"
    assert parts(f"{'before it ' * 20}\n\n{fence}") == ["text", "code"]
    assert parts("some text\n\n```\nx\n```") == ["text"]


@pytest.mark.parametrize(
    ("path", "said", "kind"),
    [
        ("brain/memories/a.md", "", "memory"), ("memory/a.md", "", "memory"), ("x/skills/b/a.md", "", "skill"),
        ("x/b/SKILL.md", "", "skill"), ("x/resources/a.md", "", "resource"), ("x/y/memories/a.md", "", "resource"),
        ("memories/a.md", "decision", "decision"), ("x/memoriesold/a.md", "", "resource"),
    ],
)  # fmt: skip
def test_given_a_folder_when_chunked_then_it_says_the_kind_unless_the_page_does(
    path: str, said: str, kind: str
) -> None:
    assert [chunk.kind for chunk in chunks("a", path=path, kind=said)] == [kind]


def test_given_links_when_chunked_then_chunks_define_their_page_and_refer_to_what_they_link() -> None:
    first, second = chunks("[[Other]]\n\n## On [x](b.md)\n\ntext")
    assert first.defines == second.defines == ("title:page", "path:notes/page.md")
    assert (first.refs, second.refs) == (("title:other",), ("path:notes/b.md",))


@pytest.mark.parametrize(
    "label", ["**Result:** 5 ms", "Result: 5 ms", "- **结果**：5 ms", "果（Result）：5 ms", "🎯 Result: x"]
)
def test_given_a_label_when_chunked_then_the_chunk_has_its_facet(label: str) -> None:
    assert [chunk.facet for chunk in chunks(label)] == ["result"]


def test_given_a_memory_of_labelled_paragraphs_when_chunked_then_each_facet_is_a_chunk() -> None:
    memory = "**Context:** slow\n\nvery slow\n\n**Action:** index\n\n**Result:** fast"
    assert [(c.facet, c.text[:9]) for c in chunks(memory)] == [
        ("context", "**Context"), ("action", "**Action:"), ("result", "**Result:"),
    ]  # fmt: skip
    assert [c.facet for c in chunks("plain\n\nNote: this\n\nResult: that")] == [None]


def test_given_a_facet_in_front_matter_when_chunked_then_it_holds_where_no_heading_says_another() -> None:
    assert [c.facet for c in chunks("a\n\n## 结果\n\nb", facet="insight")] == ["insight", "result"]
