"""reStructuredText follows its sections, keeps code whole, joins by labels and loses nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.language.page_keys import fallbacks, is_page_key, label_key
from shared.models import Chunk, RawDocument
from shared.models.hits import PagePart
from shared.settings import Settings
from shared.settings.sections import ChunkingSettings
from tests.fakes.stores import open_store
from workers.index.blocks import BlockType
from workers.index.chunking import chunk_document
from workers.index.documents import Document, Markup
from workers.index.links import links_of
from workers.index.pipeline import Indexer
from workers.index.readers import read_documents
from workers.index.rst import rst_blocks
from workers.search.stages.edge_keys import places_of

SMALL = ChunkingSettings(target_chars=200, max_chars=400)


def raw(text: str, path: str = "docs/page.rst") -> RawDocument:
    return RawDocument(source="/docs", path=path, identity=f"/{path}", suffix=".rst", content=text.encode())


def read(text: str) -> Document:
    (document,) = read_documents(raw(text), 10_000_000)
    assert isinstance(document, Document)
    return document


def chunks_of(text: str) -> list[Chunk]:
    return chunk_document(read(text), SMALL)


def labels(chunk: Chunk) -> list[str]:
    return [key.removeprefix("label:") for key in chunk.defines if key.startswith("label:")]


def headings(text: str) -> list[tuple[int, str]]:
    return [(block.level, block.text) for block in rst_blocks(text) if block.kind is BlockType.HEADING]


def solid(text: str) -> str:
    return "".join(text.split())


def test_given_both_styles_of_headings_when_chunked_then_sections_nest_by_first_appearance() -> None:
    text = (
        "====\nBook\n====\n\nintro\n\nOne\n====\n\na\n\nDeep\n~~~~\nb\n\nTwo\n====\n\nc\n\n======\n Next\n======\n\nd"
    )
    document = read(text)
    assert (document.title, document.markup) == ("Book", Markup.RST)
    assert [(c.heading, c.text) for c in chunks_of(text)] == [
        ("", "intro"), ("One", "a"), ("One > Deep", "b"), ("Two", "c"), ("Next", "d"),
    ]  # fmt: skip


def test_given_no_heading_when_read_then_the_file_names_the_page() -> None:
    document = read("just text\n\n-----\n\nmore")
    assert (document.title, [c.text for c in chunks_of("just text\n\n-----\n\nmore")]) == (
        "page",
        ["just text\n\nmore"],
    )
    assert {"title:page", "path:docs/page.rst"} <= set(chunks_of("Queues\n======\n\nx")[0].defines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("任务\n====\n", [(1, "任务")]),
        ("任务\n--\n", []),
        ("任务队列的路由\n=======\n", [(1, "任务队列的路由")]),  # short, but of 4 characters: docutils warns only
        ("Queues\n===\n", []),
        ("A\n=\n", [(1, "A")]),
        (":mod:`celery.app` -- *the* ``App``\n===================================\n", [(1, "celery.app -- the App")]),
        ("See `the docs <https://example.org>`_\n=====================================\n", [(1, "See the docs")]),
        ("1. First\n========\n", [(1, "1. First")]),
        ("two lines\nof text\n=======\n", []),
        ("- item\n------\n", []),
        (":field: x\n---------\n", []),
        (">>> x\n-----\n", []),
        ("text\n\n----\n\ntext\n", []),
        ("====\nonly over\n\ntext\n", []),
        ("====\nOver\n----\n", []),
        ("  Indented\n  ========\n", []),
        (".. note::\n\n   Inside\n   ======\nOutside\n=======\n", [(1, "Outside")]),
        ("=====  =====\nA      B\n=====  =====\nc      d\n\n-----  -----\ne      f\n=====  =====\n", []),
        ("x" * 300 + "\n" + "=" * 300 + "\n", []),
    ],
)
def test_given_lines_like_headings_when_read_then_they_are_what_docutils_takes_them_for(
    text: str, expected: list[tuple[int, str]]
) -> None:
    assert headings(text) == expected


@pytest.mark.parametrize(
    "code",
    [
        "run this::\n\n{code}",
        "::\n\n{code}",
        ".. code-block:: python\n   :linenos:\n\n{code}",
        ".. code:: sh\n\n{code}",
        "- item::\n\n{code}",
    ],
)
def test_given_code_with_lines_like_headings_when_chunked_then_it_stays_whole_and_its_links_are_none(code: str) -> None:
    lines = "\n\n".join(f"     Head {n}\n     ======\n     :ref:`x{n}`" for n in range(12))
    assert SMALL.max_chars < len(lines) < 4 * SMALL.max_chars
    text = code.format(code=lines) + "\n\nprose :ref:`after`\n"
    chunks = chunks_of(text)
    assert headings(text) == []
    assert sum(lines in chunk.text for chunk in chunks) == 1
    assert [ref for chunk in chunks for ref in chunk.refs] == ["label:after"]
    assert next(chunk for chunk in chunks if lines in chunk.text).part is PagePart.CODE


def test_given_a_quoted_literal_block_or_a_doctest_when_read_then_it_is_code() -> None:
    kinds = [block.kind for block in rst_blocks("mail::\n\n> Head\n> ====\n> x\n\n>>> 1\n1\n\nprose")]
    assert kinds == [BlockType.TEXT, BlockType.CODE, BlockType.CODE, BlockType.TEXT]


def test_given_a_note_when_read_then_only_the_code_in_it_is_code() -> None:
    text = ".. note::\n\n   prose\n\n   .. code::\n\n      x = 1\n\n   more::\n\n     y = 2\n\n   prose"
    kinds = [(block.kind, block.text.strip()[:8]) for block in rst_blocks(text)]
    assert [kind for kind, _ in kinds] == [
        BlockType.TEXT,
        BlockType.TEXT,
        BlockType.CODE,
        BlockType.TEXT,
        BlockType.CODE,
        BlockType.TEXT,
    ]


def test_given_labels_when_chunked_then_the_place_below_goes_by_them() -> None:
    text = (
        ".. _Top Page:\n\n.. index:: top\n\nPage\n====\n\n.. _first:\n.. _`a: b`:\n\nFirst\n-----\n\n"
        "Deep\n~~~~\n\na\n\n.. _addressed: https://example.org\n\nLast\n----\n\nb\n\n.. _figure:\n\n.. image:: a.png\n"
    )
    chunks = chunks_of(text)
    assert [(c.heading, labels(c)) for c in chunks] == [
        ("", []), ("First > Deep", ["top page", "first", "a: b"]), ("Last", ["figure"]),
    ]  # fmt: skip
    assert "_first" not in "".join(c.text for c in chunks)
    assert "_addressed" in chunks[1].text


def test_given_a_label_above_a_section_that_is_cut_when_chunked_then_its_first_chunk_goes_by_it() -> None:
    paragraphs = ["w" * 300, "v" * 300]
    cut = chunks_of("\n\n".join(["Page\n====", ".. _first:", "First\n-----", *paragraphs]))
    assert [(c.text[:1], labels(c)) for c in cut] == [("w", ["first"]), ("v", [])]


def test_given_references_when_read_then_they_are_keys_of_labels_and_paths() -> None:
    text = (
        "See :ref:`Daemon-Setup`, :ref:`shown\ntext <the label>`, ``:ref:`no``` and `x <../a.rst>`_, `y <http://h>`_,"
        " `z <name_>`_, :doc:`other`.\n\n.. _b: b.rst\n\n.. include:: secret.rst\n.. literalinclude:: /etc/hosts\n"
    )
    assert links_of(text, "docs/g/page.rst") == [
        "label:daemon-setup", "label:the label", "path:docs/g/other.rst", "path:docs/a.rst", "path:docs/g/b.rst",
    ]  # fmt: skip
    assert links_of(":ref:`x`", "docs/page.md") == []
    assert is_page_key(label_key("x"))
    assert fallbacks(label_key("x.html")) == ()


def test_given_labels_in_later_chunks_when_ingested_then_links_count_and_namesakes_are_seen(tmp_path: Path) -> None:
    options = Settings.model_validate({"data_dir": tmp_path, "hierarchy": {"enabled": False}})
    store = open_store(options)
    indexer = Indexer(store, None, options)

    def backlinks(pages: dict[str, str]) -> dict[str, int]:
        files = [raw(text, f"docs/{name}.rst") for name, text in pages.items()]
        outcomes, _ = indexer.index(files)
        indexer.finish({"/docs": {outcome.doc_id for outcome in outcomes}})
        return {hit.path: hit.backlinks for page in store.scroll(None) for hit in page}

    target = "A\n=\n\nx\n\n.. _later:\n\nB\n-\n\ny"
    pages = {"target": target, "source": "S\n=\n\nsee :ref:`later`"}
    assert backlinks(pages) == {"docs/target.rst": 1, "docs/source.rst": 0}
    twice = pages | {"twin": target.replace("A", "C")}
    assert backlinks(twice) == {"docs/target.rst": 0, "docs/source.rst": 0, "docs/twin.rst": 0}
    assert places_of(["label:later", "title:a"], "default", store) == {"label:later": 2, "title:a": 1}
    assert backlinks(pages) == {"docs/target.rst": 1, "docs/source.rst": 0}
    store.close()


_LINES = st.sampled_from([
    "", "", "Title", "=====", "-----", "标题", "====", "text::", "  code", "    deep", ".. code:: py", ".. note:: x::",
    "..", ".. _label:", ".. _l2: x", ".. comment", "- item::", "=== ===", "a   b", "+--+--+", "> quoted", ">>> 1", "::",
    "``x", "\tt", "\u3000全角", "`", "*", ":ref:`a`", "|x|", "\x0c", "\\", "``", "1. one",
])  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(_LINES, st.text(alphabet="ab字=-.:_` \t\\", max_size=12)), max_size=40))
def test_given_any_lines_when_read_then_only_rules_adornments_and_labels_leave_the_text(lines: list[str]) -> None:
    text = "\n".join(lines)
    kept = []
    for block in rst_blocks(text):
        kept += [f".. _{name}:" for name in block.labels]
        kept.append(block.source or block.text)
    signs = str.maketrans("", "", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    assert sorted(solid("".join(kept).translate(signs)).casefold()) == sorted(solid(text.translate(signs)).casefold())
    if text.strip():
        chunks = chunks_of(text)
        assert all(len(c.text) <= 4 * SMALL.max_chars for c in chunks)


@pytest.mark.parametrize(
    "unit",
    [
        "=== ===\n", "a::\n\n", "====\n", ".. _l:\n", ".. code::\n\n", "- ", "`", ":ref:`", "``", "a\n=\n", "=", "= ",
        ".. _`", "   ::\n\n", "> a::\n\n> b\n", ".. ", ":a", "+-", "\\", "`a <", ".. _a: ",
    ],
)  # fmt: skip
def test_given_hostile_text_when_read_then_time_grows_with_its_size(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.process_time()
        for block in rst_blocks(text):
            links_of(block.text[:20_000], "docs/a.rst")
        return time.process_time() - start

    assert seconds(160_000) < 20 * max(seconds(16_000), 0.05)
