"""Bare words of a question that stand beside each other, and what is said of those that were not understood. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from orchestrator.planning.lists.words import GAP, Sentence, compiled
from shared.language import reader_sentence
from shared.language.text import is_han, terms
from shared.models.enumeration import Condition

#: A name of code: a decorator, a call, a dotted or underscored name, a path.
_CODE = re.compile(r"@|\w[._/+]\w|\w\+|\w#$|\w_$|^_")
#: Runs that are named in a warning.
_MOST_NAMED = 8
#: So far before a run its verbs are looked for, in characters.
_LOOK_BACK = 40


class Part(NamedTuple):
    """One word of a run, or one piece of Han characters. `exact` as in a condition."""

    text: str
    start: int
    exact: bool

    @property
    def end(self) -> int:
        """Where it ends in the sentence."""
        return self.start + len(self.text)


class Run:
    """Bare words with at most "and" and "or" between them. Falsy without any."""

    def __init__(
        self, parts: Sequence[tuple[str, Part]] = (), start: int | None = None, *, negated: bool = False
    ) -> None:
        self.parts = list(parts)
        self.negated = negated
        self._start, self._joint = start, ""

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def start(self) -> int:
        """Where it begins, with its negation."""
        return self.parts[0][1].start if self._start is None else self._start

    @property
    def end(self) -> int:
        """Where its last word ends."""
        return self.parts[-1][1].end

    @property
    def is_relation(self) -> bool:
        """True when it says what became of the documents, or who did it: what follows belongs to it."""
        return any(compiled("<other>").fullmatch(part.text) for _, part in self.parts)

    def add(self, text: str, start: int, *, exact: bool) -> None:
        """One more word behind the others."""
        self.parts.append((self._joint, Part(text, start, exact)))
        self._joint = ""

    def join(self, *, either: bool) -> None:
        """What stands between the last word and the next one."""
        self._joint = "either" if either else "both"

    def spelt(self) -> list[str]:
        """The words."""
        return [part.text for _, part in self.parts]

    def codes(self) -> list[Part]:
        """The names of code among them, which stand in texts as they are written."""
        return [part for _, part in self.parts if _CODE.search(part.text)]

    def without_codes(self) -> Run:
        """The others."""
        return Run([(joint, part) for joint, part in self.parts if not _CODE.search(part.text)])

    def denied(self, negation_start: int) -> Run:
        """The same behind the negation that begins there."""
        return Run(self.parts, min(self.start, negation_start), negated=True)

    def ranking(self) -> list[Condition]:
        """What documents may say that comes near to it; nothing for what is denied."""
        words: list[Condition] = []
        for _, part in () if self.negated else self.parts:
            texts = compiled("<field>").split(part.text) if is_han(part.text) else [part.text]
            words += [Condition(words=(text,), exact=part.exact) for text in texts if text.strip()]
        return words


def named(runs: Iterable[Run], sentence: Sentence, question: str) -> tuple[str, ...]:
    """The runs as the question spells them; those with nothing but small words between them as one."""
    joined: list[tuple[int, int]] = []
    for run in runs:
        start = _with_verbs(sentence.text, run.start)
        if joined and _nothing_in(sentence.text[joined[-1][1] : run.start]):
            joined[-1] = (joined[-1][0], max(run.end, joined[-1][1]))
        else:
            joined.append((start, run.end))
    texts = (" ".join(sentence.text[start:end].split()) for start, end in joined)
    return tuple(dict.fromkeys(_as_asked(text, question) for text in texts))


def _with_verbs(text: str, start: int) -> int:
    """Where the verbs directly before a run begin: "took ages"."""
    found = compiled(r"(?:<frame_verb> )+$").search(text, max(0, start - _LOOK_BACK), start)
    return found.start() if found else start


def _nothing_in(text: str) -> bool:
    return compiled("(?:<inside_clause>)").fullmatch(text) is not None or (
        GAP not in text and not is_han(text) and not re.search(r"[.;:?!]", text) and not terms(text)
    )


def _as_asked(text: str, question: str) -> str:
    found = re.search(re.escape(text).replace(r"\ ", r"\s+"), question, re.IGNORECASE)
    return " ".join(found[0].split()) if found else text


def told(name: str, words: Sequence[str], question: str) -> str:
    """The sentence of that name about these words, in the question's language."""
    marks = (f"\u201c{word}\u201d" for word in words[:_MOST_NAMED])
    return reader_sentence(name, question, reader_sentence("comma", question).join(marks))
