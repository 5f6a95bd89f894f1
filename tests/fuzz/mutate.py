"""Makes bad inputs out of good ones. Every input is a function of one seed, so that any of them can be made again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

#: Characters by what they break: directions, halves of pairs, marks that join, widths, ends of lines, digits of others.
CLASSES: tuple[str, ...] = (
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",
    "\ud800\udbff\udc00\udfff\udcff\udc80",
    "\0\x01\x07\x08\x0b\x0c\x1b\x1c\x1d\x1e\x1f\x7f\x80\x85\x9b\x9f",
    "\u0300\u0301\u0327\u0345\u0483\u05b0\u0e38\u3099\u20dd\ufe0f\ufe20",
    "\r\n\t \u00a0\u1680\u2003\u2028\u2029\u202f\u3000\u200b\u200d\u2060\ufeff",
    "中文数据库缓存為麼與还了的是，。；：？！、（）《》「」“”·年月日号第一二三零〇",
    "かなカナ한글한ไทยहिन्दीعربيעבריתΑΩß" + "İıſﬁﬀǅẞŉΐ",
    "😀👩\u200d👩\u200d👧🇨🇳🏳\ufe0f🧑🏽𝟘𝒜𠀀𪜀\U0010ffff\ufffe\uffff\ufdd0",
    "0123456789²³¹½①٣۴४௫๖𝟗Ⅷ㊿",
    "<>&\"'`{}[]()#*_-+=~|\\/:;,.!?@$%^",
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
)
_PAIRS = (
    ("[", "]"),
    ("{", "}"),
    ("(", ")"),
    ("<a>", "</a>"),
    ('"', '"'),
    ("> ", ""),
    ("- ", ""),
    ("《", "》"),
    ("`", "`"),
)
_ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "gb18030", "big5", "utf-7")
_NUMBERS = ("0", "-1", "1e999", "-0.0", "1" * 50, "9" * 5000, "0x10", "1_000", "NaN", "٣", "99999999999999999999")
#: Stands in JSON for a number that Python itself refuses to write.
_HUGE = "@huge-number@"
_ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**64), 10**400, 1.5, 1e308, float("nan"), float("inf"), _HUGE,
    "", " ", "\n", "x", "null", "true", "-1", "\ud800", "\0", "a\nb", "\x1b[31m", "中" * 400, "x" * 5000, "{}", "[]",
    "../..", [], {}, [[]], [None], {"": ""}, [{}], {"a": {"b": {}}}, ["x"] * 100, [0] * 100,
)  # fmt: skip
#: How long an input may be in characters, and how often: most are small, a few find what grows too fast.
_LENGTHS = ((0.90, 6_000), (0.985, 24_000), (1.0, 64_000))


class Mutator:
    """One input's source of chance. `tokens` are words of the format, put in whole."""

    def __init__(self, seed: str, tokens: Sequence[str] = ()) -> None:
        self.rng = Random(seed)
        self._tokens = tokens or ("\n",)
        roll = self.rng.random()
        self.most = next(length for share, length in _LENGTHS if roll <= share)

    def text(self, samples: Sequence[str], most: int | None = None) -> str:
        """One of `samples` after one to six changes, at most `most` characters long."""
        limit = min(self.most, most or self.most)
        text = self.rng.choice(samples)
        for _ in range(self.rng.choice((1, 1, 2, 2, 3, 4, 6))):
            text = self.rng.choice(_CHANGES)(self, text, samples)[:limit]
        return text

    def raw(self, samples: Sequence[str]) -> bytes:
        """As `text`, in some encoding, and sometimes with bytes that belong to none."""
        text = self.text(samples)
        encoding = self.rng.choice(_ENCODINGS) if self.rng.random() < 0.15 else "utf-8"
        content = bytearray(
            text.encode(
                encoding,
                self.rng.choice(("replace", "surrogatepass"))
                if encoding.startswith("utf-") and encoding != "utf-7"
                else "replace",
            )
        )
        if self.rng.random() < 0.25:
            for _ in range(self.rng.randint(1, 4)):
                place = self.rng.randint(0, len(content))
                content[place : place + self.rng.choice((0, 0, 1, 2))] = self.rng.choice(
                    (
                        b"\0",
                        b"\xff",
                        b"\xc3",
                        b"\xed\xa0\x80",
                        b"\xf4\x90\x80\x80",
                        b"\xef\xbb\xbf",
                        b"\x80",
                        b"\r",
                        b"\xc0\xaf",
                    )
                )
        return bytes(content)

    def value(self, samples: Sequence[Any]) -> Any:
        """One of `samples` (plain data) after some changes of its tree."""
        value = self.rng.choice(samples)
        for _ in range(self.rng.choice((1, 1, 2, 3, 5))):
            value = self._changed(value, 0)
        return value

    def json(self, samples: Sequence[Any]) -> str:
        """`value` as JSON, and now and then changed as text besides."""
        text = as_json(self.value(samples), ascii_only=self.rng.random() < 0.5)
        return self.text([text]) if self.rng.random() < 0.3 else text

    def char(self) -> str:
        """One character of any class."""
        return self.rng.choice(self.rng.choice(CLASSES))

    def odd(self) -> Any:
        """A value that is seldom meant."""
        if self.rng.random() < 0.05:
            deep: Any = "x"
            for _ in range(self.rng.choice((5, 50, 500))):
                deep = [deep] if self.rng.random() < 0.5 else {"a": deep}
            return deep
        return self.text([self.rng.choice(self._tokens)], 300) if self.rng.random() < 0.3 else self.rng.choice(_ODD)

    def token(self) -> str:
        """A word of the format."""
        return self.rng.choice(self._tokens)

    def _changed(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping) and value and self.rng.random() < 0.85 and depth < 20:
            return self._table(dict(value), depth)
        if isinstance(value, list) and value and self.rng.random() < 0.85 and depth < 20:
            return self._list(list(value), depth)
        if isinstance(value, str) and self.rng.random() < 0.5:
            return self.text([value])
        return self.odd()

    def _table(self, table: dict[str, Any], depth: int) -> dict[str, Any]:
        name, roll = self.rng.choice(list(table)), self.rng.random()
        if roll < 0.1:
            del table[name]
        elif roll < 0.2:
            table[self.text([str(name)], 200)] = table[name]
        elif roll < 0.3:
            table[self.token()[:100]] = self.odd()
        else:
            table[name] = self._changed(table[name], depth + 1)
        return table

    def _list(self, items: list[Any], depth: int) -> list[Any]:
        place, roll = self.rng.randrange(len(items)), self.rng.random()
        if roll < 0.1:
            del items[place]
        elif roll < 0.2:
            items += [items[place]] * self.rng.choice((1, 2, 100))
        elif roll < 0.3:
            items.insert(place, self.odd())
        else:
            items[place] = self._changed(items[place], depth + 1)
        return items

    def span(self, text: str) -> tuple[int, int]:
        """A short piece of `text`, as often as not at the ends of lines or words."""
        start = self.rng.randint(0, len(text))
        return start, min(len(text), start + self.rng.choice((1, 1, 2, 3, 5, 9, 20, 80, 400)))


def as_json(value: Any, *, ascii_only: bool = True) -> str:
    """JSON, with numbers that Python reads and writes no more (over 4,300 digits)."""
    return json.dumps(value, ensure_ascii=ascii_only, default=str).replace(f'"{_HUGE}"', "9" * 5000)


def _insert(m: Mutator, text: str, _: Sequence[str]) -> str:
    place = m.rng.randint(0, len(text))
    piece = m.token() if m.rng.random() < 0.5 else "".join(m.char() for _ in range(m.rng.choice((1, 1, 2, 8))))
    return text[:place] + piece + text[place:]


def _delete(m: Mutator, text: str, _: Sequence[str]) -> str:
    start, end = m.span(text)
    return text[:start] + text[end:]


def _duplicate(m: Mutator, text: str, _: Sequence[str]) -> str:
    start, end = m.span(text)
    return text[:end] + text[start:end] * m.rng.choice((1, 1, 2, 5)) + text[end:]


def _swap(m: Mutator, text: str, _: Sequence[str]) -> str:
    cuts = sorted(m.rng.randint(0, len(text)) for _ in range(4))
    a, b, c, d = cuts
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def _replace(m: Mutator, text: str, _: Sequence[str]) -> str:
    start, end = m.span(text)
    return text[:start] + (m.token() if m.rng.random() < 0.4 else m.char()) + text[end:]


def _truncate(m: Mutator, text: str, _: Sequence[str]) -> str:
    return text[: m.rng.randint(0, len(text))]


def _splice(m: Mutator, text: str, samples: Sequence[str]) -> str:
    other = m.rng.choice(samples)
    return text[: m.rng.randint(0, len(text))] + other[m.rng.randint(0, len(other)) :]


def _repeat(m: Mutator, text: str, _: Sequence[str]) -> str:
    """A short piece very often: what finds backtracking, and work that grows with the square."""
    start, end = m.span(text)
    unit = m.rng.choice((text[start:end][:20], m.token(), m.char(), m.char() + m.char(), m.token() + m.char())) or "x"
    times = max(1, int(m.most * m.rng.random()) // len(unit))
    return text[:start] + unit * times + text[end:]


def _nest(m: Mutator, text: str, _: Sequence[str]) -> str:
    opening, closing = m.rng.choice(_PAIRS)
    start, end = m.span(text)
    deep = m.rng.choice((1, 2, 5, 30, 200, 2000, 12_000))
    return text[:start] + opening * deep + text[start:end] + closing * deep + text[end:]


def _number(m: Mutator, text: str, _: Sequence[str]) -> str:
    places = [place for place, char in enumerate(text[:5000]) if char.isdigit()]
    place = m.rng.choice(places) if places else m.rng.randint(0, len(text))
    return text[:place] + m.rng.choice(_NUMBERS) + text[place + bool(places) :]


def _lines(m: Mutator, text: str, _: Sequence[str]) -> str:
    return text.replace("\n", m.rng.choice(("\r\n", "\r", "", "\n\n", " ", "\u2028", "\x85", "\x0b", "\n\t")))


def _case(m: Mutator, text: str, _: Sequence[str]) -> str:
    return m.rng.choice((str.upper, str.lower, str.title, str.swapcase))(text)


def _sprinkle(m: Mutator, text: str, _: Sequence[str]) -> str:
    """Characters of one class all over."""
    some = m.rng.choice(CLASSES)
    return "".join(char + (m.rng.choice(some) if m.rng.random() < 0.1 else "") for char in text[:4000]) + text[4000:]


_Change = Callable[[Mutator, str, Sequence[str]], str]
_CHANGES: tuple[_Change, ...] = (
    _insert, _insert, _insert, _delete, _delete, _duplicate, _swap, _replace, _replace, _truncate, _splice, _splice,
    _repeat, _nest, _number, _lines, _case, _sprinkle,
)  # fmt: skip
