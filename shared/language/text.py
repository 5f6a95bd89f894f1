"""Text in any language: scripts, folded forms, keys, terms, shingles. Pure, linear in the text's length.

Which words say nothing, and what a word is without its ending, the languages know. Never used for search itself: the
stores search with the sparse encoder's tokens.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from shared.language import alternatives, derived, derived_last, derived_of_passages, languages

#: Han, kana, Hangul and their extensions, for use inside a regular expression's character class.
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
#: The Han characters of the basic plane, likewise.
HAN = "\u3400-\u9fff\uf900-\ufaff"
#: One character that counts as many tokens as any.
WIDEST = "\u5b57"
#: Script, as Unicode names it -> the languages that are written in it, but for Latin letters.
SCRIPTS = {
    "CJK": ("zh", "ja"),
    "KANA": ("ja",),
    "HANGUL": ("ko",),
    "CYRILLIC": ("ru", "uk", "be", "bg", "sr", "mk", "kk", "mn"),
    "ARABIC": ("ar", "fa", "ur"),
    "HEBREW": ("he", "yi"),
    "GREEK": ("el",),
    "DEVANAGARI": ("hi", "mr", "ne"),
    "BENGALI": ("bn",),
    "TAMIL": ("ta",),
    "THAI": ("th",),
}
LATIN = "LATIN"
#: Kana and Hangul: whatever Han characters stand between, the text is not Chinese.
KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
#: A word in Latin letters as a question writes it: a name, a path, a version.
LATIN_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.+#'/-]*")

_CJK_CHAR = re.compile(f"[{CJK}]")
_HAN_CHAR = re.compile(f"[{HAN}]")
_LETTERS = re.compile(rf"[^\W\d_{CJK}]+")
_TOKEN = re.compile(rf"(?P<cjk>[{CJK}]+)|\d+(?:\.\d+)+|[^\W_{CJK}]+(?:'[a-z]+)?")
_UNIT = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
_JOINERS = re.compile(r"[\s_\-]+")
#: Punctuation that tells names apart: C# is not C, R&D is not RD.
_SIGNIFICANT = frozenset("#&@%*")
_ISO = re.compile(rf"(?<!\d)(\d{{4}})[-/{CJK}] ?(\d{{1,2}})(?:[-/{CJK}] ?(\d{{1,2}}))?(?!\d)")
_MIN_MONTH = 3
_NAMED_MONTH = re.compile(r"(?:(\d{1,2}) )?([a-z]{3,9})\.? (?:(\d{1,2}),? )?(\d{4})\b")
_MONTHS = 12
#: Characters of a title, by which many are found again: what is longer is kept by its bytes.
_TITLE = 80
_WIDE = {0xFF0C: ",", 0xFF1F: "? ", 0xFF01: "! ", 0xFF1B: "; ", 0xFF1A: ": ", 0xFF08: "(", 0xFF09: ")", 0x3000: " "}


def is_cjk_text(text: str) -> bool:
    """True when `text` is mainly written in Chinese, Japanese or Korean: a CJK character weighs as half a word."""
    return not text.isascii() and len(_CJK_CHAR.findall(text)) > 2 * len(_LETTERS.findall(text))


def has_cjk(text: str) -> bool:
    """True when there is a character of Chinese, Japanese or Korean in it."""
    return _CJK_CHAR.search(text) is not None


def is_han(text: str) -> bool:
    """True when there is a Han character in it."""
    return _HAN_CHAR.search(text) is not None


def script_of(text: str) -> str:
    """The script that most of `text` is written in, as Unicode names it; "" without letters."""
    names = Counter(unicodedata.name(char, "").split(" ")[0] for char in text if char.isalpha())
    if is_cjk_text(text):
        kana = names["HIRAGANA"] + names["KATAKANA"]
        return "KANA" if kana else max(("CJK", "HANGUL"), key=lambda script: names[script])
    for script in ("CJK", "HIRAGANA", "KATAKANA"):
        del names[script]
    return max(names, key=lambda script: names[script], default="")


def fold(text: str) -> str:
    """`text` with compatibility forms unified (NFKC: full width, ligatures) and in lower case."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).lower()


def narrowed(text: str) -> str:
    """`text` with full-width punctuation in its ASCII form, as the phrase tables have it."""
    return text if text.isascii() else text.translate(_WIDE)


def normalised(text: str) -> str:
    """`text` in the one spelling that each language's tables have."""
    if not text.isascii():
        for language in languages():
            text = language.normalised(text)
    return text


def plain(text: str) -> str:
    """The form in which names and words are compared: folded and normalised."""
    return normalised(fold(text))


@lru_cache(maxsize=10_000)
def value_key(value: str) -> str:
    """Equal for the spellings of one value: case, width, "redis-streams" and "Redis Streams", singular and plural."""
    return " ".join(_singular(word) for word in _JOINERS.split(plain(value).strip()) if word)


def question_key(question: str) -> str:
    """The key under which two questions are the same search (NFKC, case folded, no punctuation, no space).

    Symbols such as + stay, and so does a full stop between digits: C++ is not C, 1.2 is not 12. A question of nothing
    but punctuation keeps it.
    """
    text = unicodedata.normalize("NFKC", question).casefold()
    kept = [c for place, c in enumerate(text) if _is_significant(text, place)]
    return "".join(kept) or "".join(text.split())


def _is_significant(text: str, place: int) -> bool:
    char = text[place]
    if char == ".":
        return text[place - 1 : place].isdigit() and text[place + 1 : place + 2].isdigit()
    return char in _SIGNIFICANT or unicodedata.category(char)[0] not in "PZC"


def month_number(name: str) -> int:
    """1 to 12 for the name of a month in lower case, or three letters or more of it; 0 for any other word."""
    if len(name) < _MIN_MONTH:
        return 0
    for language in languages():
        for month, number in language.dates.months.items():
            if month.startswith(name) or name == f"{month[:3]}t":
                return number
    return 0


def days_in(text: str) -> list[tuple[int, int, int]]:
    """Year, month and day (0 where it is not said) of the days and months that `text` names with their year."""
    found = [(int(year), int(month), int(day or 0)) for year, month, day in _ISO.findall(text)]
    for before, name, behind, year in _NAMED_MONTH.findall(text.lower()):
        if month := month_number(name):
            found.append((int(year), month, int(before or behind or 0)))
    return [one for one in found if 1 <= one[1] <= _MONTHS]


def terms(text: str) -> list[str]:
    """The content terms of `text` in order, with repeats.

    Words: accents off, stop words off, lightly stemmed. CJK runs: function words cut out, the rest as overlapping pairs
    of characters; a character that stands alone is a term. Empty for text of stop words only.
    """
    if text.isascii() and text.isalpha():
        return [term] if (term := _term(text.lower())) else []
    found: list[str] = []
    for match in _TOKEN.finditer(fold(text).replace("’", "'")):
        token = match.group()
        if match.lastgroup == "cjk":
            found.extend(_pairs(token))
        else:
            found.append(_term(token))
    return [term for term in found if term]


def term_set(text: str) -> frozenset[str]:
    """The content terms of a text, each once. Kept for a while: the chunks of a corpus are found again and again."""
    return _of_title(text) if len(text) <= _TITLE else _of_passage(text)


@derived_last(2048)
def _of_title(text: str) -> frozenset[str]:
    return frozenset(terms(text))


@derived_of_passages
def _of_passage(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def shingles(text: str, n: int) -> frozenset[str]:
    """All runs of `n` units in `text`; a unit is a word or one CJK character, stop words included.

    A text of fewer than `n` units is one shingle; a text without units has none.
    """
    units: list[str] = _UNIT.findall(fold(text))
    if len(units) <= n:
        return frozenset([" ".join(units)] if units else [])
    return frozenset(" ".join(units[i : i + n]) for i in range(len(units) - n + 1))


def flat(text: str) -> str:
    """Words and single CJK characters, folded, with one space around each: what holds a name holds it as a part."""
    return f" {' '.join(_UNIT.findall(fold(text)))} "


def without_accents(word: str) -> str:
    """`word` with its base letters alone."""
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


@derived
def _term(token: str) -> str:
    """The term of a token between spaces, or "" for a stop word. A few thousand words make up most of any text."""
    word = without_accents(token)
    for language in languages():
        word = language.term(word)
    return word


@derived
def _singular(word: str) -> str:
    for language in languages():
        word = language.singular(word)
    return word


@derived
def _cut() -> tuple[re.Pattern[str], frozenset[str]]:
    """Function words of all languages without spaces, and the characters that say nothing alone."""
    pattern = re.compile(alternatives(lambda language: language.words.cut))
    return pattern, frozenset("".join(language.words.alone for language in languages()))


def _pairs(run: str) -> list[str]:
    """Pairs of neighbours between function words; a character alone is a term, and "" (no term) is filtered later."""
    cut, alone = _cut()
    found: list[str] = []
    for part in cut.split(run):
        if len(part) > 1:
            found.extend(part[i : i + 2] for i in range(len(part) - 1))
        elif part not in alone:
            found.append(part)
    return found
