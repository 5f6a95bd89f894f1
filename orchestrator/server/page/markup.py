"""Markdown's marks within a line as safe HTML: emphasis, code, links of http(s). All else is escaped. Pure."""

from __future__ import annotations

import re

from markupsafe import Markup

from shared.hidden import visible

_INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`"
    r"|\*\*(?=\S)(?P<strong>[^*\n]+)(?<=\S)\*\*"
    r"|(?<![*\w])\*(?=[^\s*])(?P<em>[^*\n]+)(?<=\S)\*(?![*\w])"
    r"|(?<![_\w])_(?=[^\s_])(?P<under>[^_\n]+)(?<=\S)_(?![_\w])"
    r"|\[(?P<label>[^\[\]\n]{1,300})\]\((?P<url>https?://[^\s()<>\"]{1,1000})\)"
)
_ELEMENTS = {
    "code": Markup("<code>{}</code>"), "strong": Markup("<strong>{}</strong>"),
    "em": Markup("<em>{}</em>"), "under": Markup("<em>{}</em>"),
}  # fmt: skip
_LINK = Markup('<a href="{}" rel="noopener noreferrer nofollow">{}</a>')


def inline(text: str) -> Markup:
    """`text` as HTML."""
    made, at, text = Markup(), 0, visible(text)
    for mark in _INLINE.finditer(text):
        made += Markup.escape(text[at : mark.start()]) + _element(mark)
        at = mark.end()
    return made + Markup.escape(text[at:])


def unmarked(text: str) -> str:
    """`text` without these marks; of a link its words."""
    return _INLINE.sub(lambda mark: mark["label"] or unmarked(mark[_kind(mark)]), text)


def _kind(mark: re.Match[str]) -> str:
    return mark.lastgroup or "url"


def _element(mark: re.Match[str]) -> Markup:
    kind = _kind(mark)
    if kind == "url":
        return _LINK.format(mark["url"], mark["label"])
    return _ELEMENTS[kind].format(mark[kind] if kind == "code" else inline(mark[kind]))
