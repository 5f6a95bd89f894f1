"""How wide a text is: a CJK character or emoji counts as two, everything else as one."""

from __future__ import annotations

import re

_WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
    "\U0001f300-\U0001faff\U00020000-\U0003fffd]+"
)


def width(text: str) -> int:
    """Characters of `text`, wide ones counted twice."""
    if text.isascii():
        return len(text)
    return len(text) + sum(len(run) for run in _WIDE.findall(text))
