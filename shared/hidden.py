"""Characters that nobody sees: they make text read as other than it is, and carry words that only a model sees. Pure.

By Unicode's properties, as ranges: Python's own tables differ from release to release. Code points without a character
stay where a later Unicode may have given them one; they are shown as a box.
"""

from __future__ import annotations

import re

#: Never seen: surrogates, Default_Ignorable_Code_Point but for joiners and the signs U+FE0E and U+FE0F, interlinear
#: annotation, private use, code points that will never be characters, planes 4 to 13, and an empty note head.
NEVER_SEEN = (
    "\ud800-\udfff\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ue000-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe-\U0010ffff"
)
#: Signs that are seen around the digits behind them (number and year signs, end of a verse), or over a Syriac word.
_ENCLOSING, _SYRIAC_SIGN = "\u0600-\u0605\u06dd\u0890\u0891\u08e2\U000110bd\U000110cd", "\u070f"
#: Controls of Egyptian hieroglyphs, which place the sign before them.
_PLACING = "\U00013430-\U0001343f"
_HIEROGLYPH = "\U00013000-\U0001342f\U00013440-\U0001345f\U00013460-\U000143ff"
#: Scripts whose letters join, so that a joiner or its absence spells another word: Arabic to Khmer, Mongolian, Brahmic.
_JOINING = (
    "\u0606-\u061b\u061d-\u06dc\u06de-\u070e\u0710-\u088f\u0892-\u08e1\u08e3-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u18af"
    "\u1900-\u1cff\ua800-\uabff\U00010a00-\U000110bc\U000110be-\U000110cc\U000110ce-\U00011fff"
)
_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
#: What U+FE0E and U+FE0F show as text or as an emoji, but for digits, which also need U+20E3 behind.
_SHOWN_AS = f"{_EMOJI}\u00a9\u00ae\u203c\u2049\u2122\u2139\u3030\u303d\u3297\u3299"

_SUSPECT = re.compile(f"[{NEVER_SEEN}{_ENCLOSING}{_SYRIAC_SIGN}{_PLACING}\u200c\u200d\ufe0e\ufe0f]")
_HIDDEN = re.compile(
    f"[{NEVER_SEEN}]"
    rf"|[{_ENCLOSING}](?!\d)|{_SYRIAC_SIGN}(?![\u0710-\u074f])|(?<![{_HIEROGLYPH}])[{_PLACING}]"
    f"|(?<![{_JOINING}])\u200c"
    f"|(?<![{_JOINING}{_EMOJI}])(?<![{_EMOJI}]\ufe0f)\u200d|(?<=[{_EMOJI}\ufe0f])\u200d(?![{_EMOJI}])"
    f"|(?<![{_SHOWN_AS}#*0-9])[\ufe0e\ufe0f]|(?<=[#*0-9])[\ufe0e\ufe0f](?!\u20e3)"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def without_hidden(text: str) -> str:
    """`text` without characters that nobody sees; line separators are line breaks, an empty Braille cell a space."""
    if text.isascii():
        return text
    text = text.replace("\u2028", "\n").replace("\u2029", "\n").replace("\u2800", " ")
    return _HIDDEN.sub("", text) if _SUSPECT.search(text) else text


def visible(text: str) -> str:
    """`without_hidden`, and without control characters; line breaks and tabs stay."""
    return _CONTROLS.sub("", without_hidden(text.replace("\r\n", "\n")))
