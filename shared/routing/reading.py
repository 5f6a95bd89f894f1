"""Prepares a question for the rules: bounded, cleaned, without courtesies, down to what it asks. Judges nothing."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from shared.language import simplified
from shared.routing.tables import rules

#: Of a longer text only its beginning and its end are read, in characters: that is where people put their question.
_HEAD = _TAIL = 500
_JOINT = "\n"
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[a-z0-9][a-z0-9']*")
_HIDDEN = {"Cf": None, "Cc": " ", "Cs": " ", "Co": None, "Cn": None}
#: A full stop ends a sentence only behind a word and before a capital; "?" may stand within a title.
_BETWEEN = re.compile(
    r"\n+|(?<=[?!。])\s*(?=[\u3400-\u9fff])|(?<=[?!])\s+(?=\w)|(?<=[a-z0-9]{3}\.)\s+(?=[A-Z\"])|(?<=。)\s*(?=\w)"
)
_EDGES = " ,.!?;:~…。、-\"'()[]{}"
_COURTESIES = 8
#: Stands among the words of a text with an apostrophe, for the rules about possessives.
_POSSESSIVE = frozenset({"'s"})
#: Traditional characters of the phrase tables beyond those that the decomposer's rules know.
_MORE_SIMPLIFIED = str.maketrans(
    "幾總將檔會發離認議謝嗎當關係麼舉統計條項從屬歲戶單聯繫筆記裡裏賬產變",
    "几总将档会发离认议谢吗当关系么举统计条项从属岁户单联系笔记里里账产变",
)


@dataclass(frozen=True, slots=True)
class Question:
    """What the rules see. `text` keeps its capitals, `low` is the same in lower case; both are one line.

    `words` are the English words, `chars` the Chinese characters; `sentences` how many of its sentences ask;
    `stated` is True for a text that ends like a statement. An empty `text` asks nothing.
    """

    text: str
    low: str
    words: frozenset[str]
    chars: frozenset[str]
    asking: int
    stated: bool


def read(question: str) -> Question:
    """The part of `question` that asks, ready for the rules. Linear in its length, which is bounded first."""
    whole = _without_courtesies(_cleaned(_bounded(question)))
    parts = [part for part in _BETWEEN.split(whole) if part and part.strip(_EDGES)]
    asking = [part for part in parts if asks(part)]
    text = " ".join((asking or parts)[-3:]) if len(parts) > 1 else whole
    text = " ".join(text.split())
    stated = text.endswith((".", "。")) and not asking
    text = text.strip(_EDGES)
    low = text.lower()
    words = frozenset(_WORD.findall(low))
    return Question(
        text=text if len(text) == len(low) else low,
        low=low,
        words=words | _POSSESSIVE if "'" in low else words,
        chars=frozenset(_HAN.findall(low)),
        asking=sum(part.rstrip().endswith("?") for part in asking),
        stated=stated,
    )


def _bounded(question: str) -> str:
    if len(question) <= _HEAD + _TAIL:
        return question
    return f"{question[:_HEAD]}{_JOINT}{question[-_TAIL:]}"


def _cleaned(text: str) -> str:
    """Compatibility forms unified, Chinese simplified as far as the tables need it, nothing hidden; lines stay."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
        text = simplified(text).translate(_MORE_SIMPLIFIED)
    if not text.replace("\n", " ").isprintable():
        text = "".join(
            c if c == "\n" or c.isprintable() else _HIDDEN.get(unicodedata.category(c), " ") or "" for c in text
        )
    return text.strip()


def _without_courtesies(text: str) -> str:
    """`text` without greetings, thanks and the like at its start; empty when it holds nothing else."""
    for _ in range(_COURTESIES):
        text = text.lstrip(_EDGES + "\n")
        low = text[:80].lower()
        found = rules("en").courtesy.match(low) or rules("zh").courtesy.match(low)
        if not found or not found.end():
            break
        text = text[found.end() :]
    return text if any(c.isalnum() for c in text) else ""


def asks(sentence: str) -> bool:
    """True for a question: it ends with a mark, or it begins (in Chinese: it holds) what questions do."""
    if sentence.rstrip().endswith("?"):
        return True
    low = sentence[:200].strip(_EDGES).lower()
    return bool(rules("en").asks.match(low) or rules("zh").asks.search(low))
