"""Numbers as they are written: "three hundred thousand", 二十四, 百分之三十, a tenth, 8000万, and their units. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from shared.language import derived, languages

_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
#: From so many digits without a scale on they are a number: a year, not "three or five".
_DIGITS = 3
#: A unit in a script with spaces has at most two words; in one without, so many characters.
_WORDS = re.compile(r"[a-z]+(?: [a-z]+)?")
_LONGEST = 4


@dataclass(frozen=True, slots=True)
class Measure:
    """What a number counts: how many of the base of its dimension one of it is."""

    dimension: str
    factor: Decimal


def written(value: Decimal) -> str:
    """The key of a number: the same for all ways to write it."""
    return f"#{value.normalize():f}"


def number_of(text: str) -> Decimal | None:
    """The value of a number in digits; None for 10:30 and 1,2,3."""
    try:
        return Decimal(text.replace(",", "") if _GROUPED.fullmatch(text) else text)
    except InvalidOperation:
        return None


def numeral_of(text: str) -> Decimal | None:
    """The value of digits of another script: 二十四, 一百零五, 二〇二四; None for what is no number (百万, 三五)."""
    words, factors = number_words(), scales()
    if all(char in words and words[char] < 10 for char in text):
        return Decimal("".join(str(words[char]) for char in text)) if len(text) >= _DIGITS or len(text) == 1 else None
    total = section = digit = 0
    if text[0] in factors and factors[text[0]] != 10:
        return None
    for one, char in enumerate(text):
        factor = 10 if words.get(char) == 10 else factors.get(char, 0)
        if not factor:
            if digit:
                return None
            digit = words[char]
        elif factor < 10_000:
            section, digit = section + (digit or (1 if not one or words.get(text[one - 1]) == 0 else 0)) * factor, 0
        else:
            total, section, digit = (total + section + digit) * factor, 0, 0
    return Decimal(total + section + digit)


def fraction_of(text: str) -> Decimal | None:
    """The percent of 百分之三十, 三分之一."""
    below, above = re.split(fraction_mark(), text, maxsplit=1)
    parts = [number_of(part) if part[0].isdigit() else numeral_of(part) for part in (below, above)]
    if below in scales():
        parts[0] = Decimal(scales()[below])
    if parts[0] is None or parts[1] is None or not parts[0]:
        return None
    return parts[1] * 100 / parts[0]


def unit_behind(low: str, place: int) -> Measure | None:
    """The unit that stands behind a number which ends at `place`."""
    start = place + 1 if low[place : place + 1] in {" ", "-"} else place
    if low[start : start + 1].isascii() and low[start : start + 1].isalpha():
        found = _WORDS.match(low, start)
        words = found[0] if found else ""
        return _units().get(words) or _units().get(words.split(" ")[0])
    return next((unit for size in range(_LONGEST, 0, -1) if (unit := _units().get(low[start : start + size]))), None)


def sign_before(low: str, place: int) -> Measure | None:
    """The currency whose sign stands before a number."""
    return _units().get(low[place - 1]) if place and not low[place - 1].isalnum() else None


def unit_of(word: str) -> Measure | None:
    """The unit that a word or sign is."""
    return _units().get(word)


@derived
def number_words() -> dict[str, int]:
    """Word or digit -> its number, of all languages."""
    return {word: value for language in languages() for word, value in language.claims.numbers.items()}


@derived
def scales() -> dict[str, int]:
    """A word behind a number -> what it multiplies it by."""
    return {word: value for language in languages() for word, value in language.claims.scales.items()}


@derived
def sums() -> dict[str, int]:
    """A letter behind a sum of money -> what it multiplies it by: $5m."""
    return {word: value for language in languages() for word, value in language.claims.sums.items()}


@derived
def parts() -> dict[str, Decimal]:
    """A word behind a number -> how much percent it is: two tenths, 一成."""
    return {
        word: Decimal(100) / below for language in languages() for word, below in language.claims.parts.items() if below
    }


@derived
def ordinals() -> dict[str, int]:
    """Sixth -> 6."""
    return {word: value for language in languages() for word, value in language.claims.ordinals.items()}


@derived
def number_joints() -> frozenset[str]:
    """What may stand between the words of one number: two hundred and five."""
    return frozenset(language.claims.joint for language in languages() if language.claims.joint)


@derived
def wholes() -> tuple[str, ...]:
    """What stands between a part and its whole: a tenth of, the 4th of."""
    return tuple(language.claims.whole for language in languages() if language.claims.whole)


@derived
def measured_by() -> tuple[str, ...]:
    """What stands before a part of something that has been named: fell by a third."""
    return tuple(language.claims.measured_by for language in languages() if language.claims.measured_by)


@derived
def fraction_mark() -> str:
    """What stands between the two numbers of a fraction."""
    return "|".join(language.claims.fraction for language in languages() if language.claims.fraction) or "(?!)"


@derived
def numeral_characters() -> str:
    """The digits and scales of scripts without spaces, for a character class."""
    return "".join(sorted({word for word in (*number_words(), *scales()) if len(word) == 1 and not word.isascii()}))


@derived
def _units() -> dict[str, Measure]:
    return {
        word: Measure(dimension, Decimal(str(factor)))
        for language in languages()
        for dimension, words in language.claims.units.items()
        for word, factor in words.items()
    }
