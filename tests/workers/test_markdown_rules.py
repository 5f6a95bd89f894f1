"""Parsers that threads share: their rules are whole before the first text."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt
from markdown_it.ruler import Ruler
from mdurl import _decode, _encode

from workers import inert
from workers.index.blocks import BlockType, blocks_of
from workers.index.documents import Markup
from workers.markdown_rules import compiled

TEXT = "# Title\n\nA [link](x), `code`.\n\n> said\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n"


@pytest.fixture
def _no_rules_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Ruler[object]) -> None:
        raise AssertionError("made while a text is read")

    inert._parser()
    inert._table_parser()
    monkeypatch.setattr(Ruler, "__compile__", refuse)


@pytest.mark.usefixtures("_no_rules_made_later")
def test_no_text_makes_rules() -> None:
    kinds = [block.kind for block in blocks_of(TEXT, Markup.MARKDOWN, 1000)]
    assert kinds == [BlockType.HEADING, BlockType.TEXT, BlockType.TEXT, BlockType.TABLE]
    assert inert.inert("a <b>bold</b> | [x](y)") == inert.inert("a <b>bold</b> | [x](y)")
    with pytest.raises(AssertionError, match="while a text is read"):
        compiled(MarkdownIt("commonmark"))


def test_no_link_makes_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded, decoded = dict[str, object](), dict[str, object]()
    monkeypatch.setattr(_encode, "encode_cache", encoded)
    monkeypatch.setattr(_decode, "decode_cache", decoded)
    parser = compiled(MarkdownIt("commonmark"))
    made = [*encoded], [*decoded]
    assert "%C3%A4" in parser.render("[text](http://a/ä) <http://a/%C3%A4>")
    assert ([*encoded], [*decoded]) == made
    assert all(made)
