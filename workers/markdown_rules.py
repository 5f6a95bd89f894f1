"""Markdown parsers that several threads may use."""

from __future__ import annotations

from markdown_it import MarkdownIt


def compiled(parser: MarkdownIt) -> MarkdownIt:
    """`parser`, with the tables of its rules and of its links made now.

    markdown-it-py 4.3 and mdurl 0.1 make them at the first text, and show them to other threads while they are half
    full: these read a text by some of the rules, or fail at a link. Behind it rules are neither enabled nor disabled.
    """
    parser.parse("text")
    parser.normalizeLink("text")
    parser.normalizeLinkText("text")
    return parser
