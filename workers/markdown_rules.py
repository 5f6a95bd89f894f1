"""Markdown parsers that several threads may use."""

from __future__ import annotations

from markdown_it import MarkdownIt


def compiled(parser: MarkdownIt) -> MarkdownIt:
    """`parser`, with the tables of its rules made now.

    markdown-it-py 4.3 makes them at the first text, and shows them to other threads while they are half full: these
    read a text by some of the rules. Behind it rules are neither enabled nor disabled.
    """
    parser.parse("text")
    return parser
