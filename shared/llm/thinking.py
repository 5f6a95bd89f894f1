"""Cuts a reasoning model's thinking out of its reply. Never touches what stands outside the marks."""

from __future__ import annotations

import re

_TAG = r"<(/?)(?:think|thinking|reasoning)>"
_ANYWHERE = re.compile(_TAG, re.IGNORECASE)
_OWN_LINE = re.compile(rf"(?:^|(?<=\n))[ \t]*{_TAG}", re.IGNORECASE)
_CLOSING = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)


def without_thinking(text: str, *, anywhere: bool = False) -> str:
    """`text` without <think>...</think>. An unclosed mark hides all that follows it, a lone closing one all before it.

    Marks count at the beginning of a line, or `anywhere`: prose may speak of such marks, XML cannot hold them bare.
    """
    marks = _ANYWHERE if anywhere else _OWN_LINE
    kept: list[str] = []
    at = 0
    while mark := marks.search(text, at):
        if mark[1]:  # the chat template swallowed the opening mark
            kept.clear()
            at = mark.end()
            continue
        kept.append(text[at : mark.start()])
        closing = _CLOSING.search(text, mark.end())
        if closing is None:
            return "".join(kept)
        at = closing.end()
    return "".join([*kept, text[at:]])
