"""Markdown that a renderer can do nothing with: no HTML, no links, no images, no definitions of them. Pure.

What a piece of text means is asked of a CommonMark parser, not of patterns: nested parentheses, titles, entities and
tags without an end are read as a browser's renderer reads them. Code stays to the character. CommonMark 0.31.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from workers.markdown_rules import compiled

#: What may make text more than text. Other text is not parsed.
_MAY_ACT = re.compile(r"<[A-Za-z/!?]|\]\s?[(\[]|\]:|!\[")
_ELEMENTS = (
    "a|abbr|applet|area|article|aside|audio|b|base|blockquote|body|br|button|canvas|center|code|col|dd|details|dialog|div"
    "|dl|dt|em|embed|fieldset|figure|font|footer|form|frame|frameset|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd"
    "|label|legend|li|link|main|mark|marquee|math|menu|meta|nav|noscript|object|ol|option|p|param|picture|portal|pre|s"
    "|script|section|select|slot|small|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td|template|textarea"
    "|tfoot|th|thead|title|tr|track|tt|u|ul|var|video|wbr|xml|xmp"
)
#: HTML's own elements, and tags with attributes. "List<String>" and "<job_id>" are text.
_TAG = re.compile(rf"</?(?:{_ELEMENTS})(?=[\s/>])|<[A-Za-z][\w:.-]*+[\s/]*+[^\s>/]|<[!?]", re.IGNORECASE)
#: A tag that has no end, or an odd one, and would take in what stands behind the text.
_OPEN_TAG = re.compile(
    rf"<(?=/?(?:{_ELEMENTS})[\s/]?[^<>]{{0,500}}=|[!?]|/?(?:script|style|iframe|svg|img|object|embed|math|template)"
    r"|[A-Za-z][^<>]{0,500}[\s/\"'](?:on\w+|style|src|srcset|srcdoc|href|xlink:href|action|formaction|data)\s*=)",
    re.IGNORECASE,
)
#: "[label]: target", in lists and quotes too.
_DEFINITION = re.compile(r"^([\s>*+-]{0,40})\[([^\[\]\n]{1,999})\]:[ \t]*(\S*)", re.MULTILINE)
_TARGET = re.compile(r"[:/.#?]")
_AUTOLINK = re.compile(r"(?:https?|mailto|ftp):", re.IGNORECASE)
_PASSES = 4
_BAR = re.compile(r"(?<!\\)\|")


@cache
def _parser() -> MarkdownIt:
    """CommonMark with the source of escapes and entities kept; HTML is left to the inline rules."""
    parser = MarkdownIt("commonmark").disable(["html_block", "text_join"])
    # To some renderers "javascript:" is a link, too.
    parser.validateLink = lambda _url: True  # type: ignore[method-assign,assignment]
    return compiled(parser)


def inert(text: str) -> str:
    """`text` with nothing in it that acts: a link is its words (a linked citation stays one), an image its caption.

    What comes out of a removal is read again, so that "<scr<b>ipt>" becomes no tag.
    """
    for _ in range(_PASSES):
        if not _MAY_ACT.search(text):
            return text
        before, text = text, _pass(text)
        if text == before:
            return _cells(text)
    return _OPEN_TAG.sub(" ", _TAG.sub(" ", text)).replace("](", "] (").replace("][", "] [")


def _pass(text: str) -> str:
    lines, out, at = text.split("\n"), list[str](), 0
    env: dict[str, object] = {}
    for token in _parser().parse(text, env):
        if token.map is None or token.type not in {"inline", "fence", "code_block"} or token.map[0] < at:
            continue
        first, last = token.map
        out += lines[at:first]
        block, at = lines[first:last], last
        out += _rewritten(block, token) if token.type == "inline" else block
    out += lines[at:]
    found = "\n".join(out)
    return _DEFINITION.sub(_defined, found) if env.get("references") else found


@cache
def _table_parser() -> MarkdownIt:
    return compiled(MarkdownIt("commonmark").enable("table"))


def _cells(text: str) -> str:
    """The cells of GitHub's tables, each on its own: there a cell ends a piece of code, which CommonMark reads on."""
    if "|" not in text:
        return text
    lines = text.split("\n")
    for token in _table_parser().parse(text):
        if token.type == "table_open" and token.map:
            for at in range(*token.map):
                lines[at] = "|".join(inert(cell) for cell in _BAR.split(lines[at]))
    return "\n".join(lines)


def _defined(found: re.Match[str]) -> str:
    """A definition's words without what it points to; what is no address stays text."""
    return f"{found[1]}{found[2]}" if _TARGET.search(found[3]) else f"{found[1]}[{found[2]}] : {found[3]}"


def _rewritten(block: Sequence[str], token: Token) -> list[str]:
    """The lines of a paragraph: what stands before its text in a line (a list's mark, a quote's) stays."""
    old, new = token.content.split("\n"), _emit(token.children or ()).split("\n")
    kept = [line[: len(line) - len(words)] for line, words in zip(block, old, strict=False) if line.endswith(words)]
    if len(kept) != len(block) or len(old) != len(block):
        return _outside(block, token.content, "\n".join(new))
    return [before + words for before, words in zip(kept, new, strict=False)] + new[len(kept) :]


def _outside(block: Sequence[str], old: str, new: str) -> list[str]:
    """A heading, whose line goes on behind its text; of what cannot be placed only the text is kept."""
    whole = "\n".join(block)
    return (whole.replace(old, new, 1) if old and old in whole else new).split("\n")


def _emit(tokens: Sequence[Token]) -> str:
    """Inline tokens as Markdown again, without links, images and tags."""
    out, number = list[str](), 0
    while number < len(tokens):
        token = tokens[number]
        if token.type == "link_open":
            end = _end_of_link(tokens, number)
            inside = _emit(tokens[number + 1 : end])
            out.append(_link_text(token, inside))
            number = end
        elif token.type == "image":
            out.append(_plain(token.children or ()))
        elif token.type == "html_inline":
            out.append("" if _TAG.match(token.content) else token.content)
        elif token.type == "code_inline":
            out.append(_code(token))
        elif token.type == "text_special":
            follows = tokens[number + 1].content if number + 1 < len(tokens) else ""
            out.append("" if _OPEN_TAG.match(token.content + follows) else token.markup)
        elif token.type in {"softbreak", "hardbreak"}:
            out.append("\n")
        else:
            out.append(_OPEN_TAG.sub("", token.content) if token.type == "text" else token.markup)
        number += 1
    return "".join(out)


def _end_of_link(tokens: Sequence[Token], start: int) -> int:
    """Links do not stand in links."""
    return next((at for at in range(start, len(tokens)) if tokens[at].type == "link_close"), len(tokens) - 1)


def _link_text(token: Token, inside: str) -> str:
    if token.markup == "autolink":
        return inside if _AUTOLINK.match(inside) or "@" in inside.partition(":")[0] else ""
    return f"[{inside}]" if inside.removeprefix("^").isdecimal() else inside


def _plain(tokens: Sequence[Token]) -> str:
    return "".join(token.content or _plain(token.children or ()) for token in tokens)


def _code(token: Token) -> str:
    pad = " " if token.content[:1] == "`" or token.content[-1:] == "`" else ""
    return f"{token.markup}{pad}{token.content}{pad}{token.markup}"
