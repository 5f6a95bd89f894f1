"""Abstract and overview without a model: bounded, deterministic, in English and Chinese, plain text."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from shared.models import Chunk
from workers.index.directories.describe import Contents, DirectoryItem, abstract_of, clipped, lead_of, overview_of

CACHING = [
    DirectoryItem(
        "Cache stampedes and how to stop them", "A value expires. A hundred requests notice in the same instant."
    ),
    DirectoryItem("Add jitter to a cache TTL", "Use a cache TTL with jitter for every key. The linter complains."),
    DirectoryItem("Choosing an eviction policy", "When memory is full, the cache forgets something."),
]
CHINESE = [
    DirectoryItem("缓存雪崩的处理", "大量缓存同时过期，数据库压力骤增。加随机过期时间。"),
    DirectoryItem("缓存穿透与布隆过滤器", "查询不存在的数据，缓存永远不命中。"),
]


def chunk(text: str) -> Chunk:
    return Chunk(chunk_id="c", doc_id="d", path="p.md", title="T", text=text)


def test_given_documents_when_abstracted_then_their_titles_and_a_typical_sentence_stand_there() -> None:
    abstract = abstract_of(Contents("n/caching/", CACHING))
    assert all(item.title in abstract for item in CACHING)
    assert "Use a cache TTL with jitter for every key." in abstract
    assert "The linter complains" not in abstract


def test_given_chinese_documents_when_described_then_titles_and_labels_are_chinese() -> None:
    abstract = abstract_of(Contents("n/缓存/", CHINESE))
    assert all(item.title in abstract for item in CHINESE)
    assert "。" in abstract
    assert "文档:\n- 缓存雪崩的处理: 大量缓存同时过期" in overview_of(Contents("n/缓存/", CHINESE), abstract)


def test_given_a_readme_when_abstracted_then_its_first_sentence_comes_first_and_its_title_is_left_out() -> None:
    readme = DirectoryItem("README", "Everything about caches at Lantern. More below.", describes=True)
    abstract = abstract_of(Contents("n/", [*CACHING, readme]))
    assert abstract.startswith("Everything about caches at Lantern. ")
    assert "README" not in abstract


def test_given_subdirectories_when_described_then_their_names_and_abstracts_stand_there() -> None:
    items = [
        DirectoryItem("en", "Caches in English. More.", is_directory=True),
        DirectoryItem("zh", "缓存笔记。", is_directory=True),
    ]
    contents = Contents("n/", items)
    abstract = abstract_of(contents)
    assert abstract.startswith("en; zh.")
    assert "en: Caches in English." in abstract
    assert "Directories:\n- en: Caches in English. More." in overview_of(contents, abstract)


def test_given_a_directory_that_wraps_another_when_abstracted_then_it_is_what_that_one_is() -> None:
    assert (
        abstract_of(Contents("/", [DirectoryItem("n", "All about caches.", is_directory=True)])) == "All about caches."
    )


@pytest.mark.parametrize("lead", ["word " * 400, "长" * 3000, "x" * 3000, ""])
@pytest.mark.parametrize("count", [1, 40, 200])
def test_given_any_contents_when_described_then_the_bounds_hold(lead: str, count: int) -> None:
    items = [
        DirectoryItem(f"{number} {lead[:900]}", lead[:600], is_directory=number % 2 == 0) for number in range(count)
    ]
    contents = Contents("n/", items, more=[f"title {number}" for number in range(500)], left=7)
    abstract = abstract_of(contents)
    overview = overview_of(contents, abstract)
    assert 0 < len(abstract) <= 256
    assert len(overview) <= 4000
    assert abstract_of(contents) == abstract


def test_given_more_titles_when_overviewed_then_they_follow_and_the_rest_is_counted() -> None:
    overview = overview_of(Contents("n/", CACHING, more=["Sharding", "Warming"], left=12), "A.")
    assert overview.endswith("Also: Sharding; Warming; +12")


def test_given_markdown_when_its_lead_is_taken_then_it_is_prose_on_one_line_without_controls_or_tags() -> None:
    text = "## Head\n\n- A **bold** [link](http://x) \x1b[31mline\n  goes on. <script>x</script>"
    text += "\n\n```\ncode\n```\n\nNext."
    assert lead_of(chunk(text)) == "A bold link line goes on. x Next."


def test_given_code_alone_when_its_lead_is_taken_then_it_is_not_empty() -> None:
    assert lead_of(chunk("```\nselect 1\n```")) != ""


def test_given_a_hostile_chunk_when_its_lead_is_taken_then_the_time_is_bounded() -> None:
    begun = time.thread_time()
    for text in ("[" * 16_000, "*_" * 8_000, "." * 16_000, "<" * 16_000):
        assert len(lead_of(chunk(text))) <= 600
    assert time.thread_time() - begun < 1.0


def test_given_a_long_text_when_clipped_then_it_ends_at_a_pause_and_says_so() -> None:
    assert clipped("one two three four", 12) == "one two…"
    assert clipped("short", 12) == "short"


def test_given_another_order_of_sets_when_abstracted_then_the_text_is_the_same() -> None:
    code = (
        "import sys, types\n"
        "for name in ('workers.index', 'workers.index.directories'):\n"  # what these two import takes seconds
        "    sys.modules[name] = types.ModuleType(name)\n"
        "    sys.modules[name].__path__ = [name.replace('.', '/')]\n"
        "from workers.index.directories.describe import *\n"
        "words = [f'{a}{b} term{a} common{b % 3}' for a in range(9) for b in range(9)]\n"
        "print(abstract_of(Contents('n/', [DirectoryItem(f'{w} {v}', w) for w, v in zip(words, reversed(words))])))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
