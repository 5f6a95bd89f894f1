"""In which direction along calls and links a question looks: "what does X call", "what calls X". Pure, en and zh."""

from __future__ import annotations

import re
from typing import Literal

Direction = Literal["out", "back"]

#: As much of a question as is read.
_READ = 500
_VERB = r"(?:call|use|invoke|import|reference|link to|point to|lead to)"
_OUT = re.compile(
    rf"\b(?:does|do|did) (?!(?:I|we|you|one)\b)[^?.!\n]{{1,120}}?\b{_VERB}\b"
    r"|调用了?(?:什么|哪些|哪个|谁)|(?:用到|引用|链接到)了?(?:什么|哪些)",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"\b(?:what|who|which(?: [\w.]{1,40}){0,3})(?: else)? (?:calls?|uses?|invokes?|imports?|references?|links? to)\b"
    r"|\bcallers? of\b|\b(?:called|used|invoked|imported) by (?:what|which|whom?)\b"
    r"|(?:谁|什么|哪些|哪个|哪里|哪儿)[^\s，。？?]{0,8}?(?:调用|使用|用到|引用|链接到)",
    re.IGNORECASE,
)
#: How an edge is told that was followed against its direction.
_TURNED = frozenset({"called by", "linked by", "mentioned by"})


def asked_direction(question: str) -> Direction | None:
    """`out`: what something leads to is asked for; `back`: what leads to it; None where the words do not tell."""
    read = question[:_READ]
    out, back = _OUT.search(read), _BACK.search(read)
    if bool(out) == bool(back):
        return None
    return "out" if out else "back"


def has_direction(how: str, direction: Direction) -> bool:
    """Whether an edge, told as in `Via.how`, has that direction."""
    return (how in _TURNED) == (direction == "back")
