"""Numbers that a question spells in words, as digits: "fewer than twenty", 不到一万元. Pure."""

from __future__ import annotations

import re

from orchestrator.planning.lists.words import compiled, listed
from shared.language import derived, languages
from shared.language.text import is_han

_BOUND = "<compare_more>|<compare_least>|<compare_less>|<compare_most>|<compare_between>"
_BEFORE = rf"(?:{_BOUND})\s*$"
_JOINED = r"\d\s*(?:<compare_and>)\s*$"
_BEHIND = (
    r"[^\W\d]{0,4}?\s*(?:<compare_up>|<compare_down>)|[^\W\d]{0,4}?\s*(?:<compare_and>)\s*[^\s,]{1,12}?<compare_span>"
)
#: The values of the words of `number_tens` and `number_scales`, in their order.
_TENS = range(20, 100, 10)
_SCALES = (10, 100, 1_000, 10_000, 1_000_000, 100_000_000)
_LONGEST = 40
#: From this scale on a last digit alone counts tenths of it: 三万五.
_TENTHS = 100


def with_digits(text: str) -> str:
    """The text with digits for spelt numbers that a bound stands beside."""
    place = 0
    while found := _spelt().search(text, place):
        head = text[max(0, found.start() - _LONGEST) : found.start()]
        bound = any(compiled(before).search(head) for before in (_BEFORE, _JOINED))
        if bound or compiled(_BEHIND).match(text, found.end()):
            digits = str(_number(found[0]))
            text = f"{text[: found.start()]}{digits}{text[found.end() :]}"
            place = found.start() + len(digits)
        else:
            place = found.end()
    return text


def in_digits(text: str) -> str:
    """The text with digits for all spelt numbers: 2级 for 二级."""
    return _spelt().sub(lambda found: str(_number(found[0])), text)


def _number(spelt: str) -> int:
    """The number of a run of words: what a larger scale stands behind is counted by it."""
    section = rest = last = 0
    words = [value for word in _word().findall(spelt) for value in [_value(word)]]
    for value, is_scale in words:
        if not is_scale:
            rest += value
            continue
        counted = value > section
        section = (section + rest or 1) * value if counted else section + (rest or 1) * value
        rest, last = 0, value
    tenths = is_han(spelt[-1]) and len(words) > 1 and words[-2][1] and last >= _TENTHS
    return section + (rest * last // 10 if tenths else rest)


def _value(word: str) -> tuple[int, bool]:
    """What one word counts, and whether it is a scale, such as hundred."""
    return next(
        (value, is_scale)
        for name, values, is_scale in (
            ("number_ones", range(20), False),
            ("number_tens", _TENS, False),
            ("number_scales", _SCALES, True),
        )
        for language in languages()
        for phrase, value in zip(language.lists.phrases.get(name, ()), values, strict=False)
        if re.fullmatch(phrase, word)
    )


@derived
def _words() -> str:
    return "|".join(
        each
        for name in ("number_tens", "number_ones", "number_scales")
        for each in sorted(listed(name), key=len, reverse=True)
    )


@derived
def _word() -> re.Pattern[str]:
    return re.compile(_words())


@derived
def _spelt() -> re.Pattern[str]:
    """A run of such words; one in Latin letters is whole."""
    return compiled(rf"(?<![a-z\d.])(?:an? )?(?:{_words()})(?:[ \-]?(?:<both> )?(?:{_words()}))*(?![a-z])")
