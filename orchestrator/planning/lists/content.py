"""Reads what is left of a question: bare values, and the words that a document must contain. Pure, linear."""

from __future__ import annotations

import re

from orchestrator.planning.lists.markers import NamedValues
from orchestrator.planning.lists.words import GAP, HOLD, KnownName, Names, Sentence, compiled, unique
from shared.language.text import HAN, is_han, terms
from shared.models.enumeration import Condition

_WORD = rf"[^\W_{HAN}](?:[\w.+#'\-/&]*[\w+#])?"
_SIGNS = re.compile(r"[^\w]|_")
_MIN_HAN = 2
#: Words for documents that may stand in a row, 会议记录文件, before the reading of each looks no further.
_MOST_NOUNS = 8
#: One token: a gap, a quoted text, a phrase of the lists, a word, or one Han character.
_TOKEN = (
    rf"(?P<gap>{GAP})|(?P<held>{HOLD}.)|(?P<inner_frame><inner_frame>)|(?P<tail><tail>)|(?P<mention><mention>)"
    r"|(?P<about><about>)|(?P<about_after><about_after>)|(?P<negation><negation>)|(?P<frame><frame>)"
    rf"|(?P<either><either>)|(?P<both><both>)|(?P<noun><noun>)|(?P<word>{_WORD})|(?P<han>[{HAN}])|(?P<space>\s+)|(?P<sign>.)"
)


class ContentReader:
    """Reads a sentence once. `conditions` are what a document must say; kinds and tags go to `named`.

    `names_documents`: the sentence speaks of documents as such, or of a kind of them.
    """

    def __init__(self, sentence: Sentence, kinds: Names, tags: Names, named: NamedValues) -> None:
        self._sentence, self._kinds, self._tags, self._named = sentence, kinds, tags, named
        self.conditions: list[Condition] = []
        self.names_documents = False
        self._mode, self._negated, self._either, self._piece = "", False, False, ""
        self._negation_used = True
        self._read()

    @property
    def denies_unknown(self) -> bool:
        """True when the question denies something that was not understood."""
        return self._negated and not self._negation_used

    def _read(self) -> None:
        text, place = self._sentence.text, 0
        while place < len(text):
            if not self._piece and (known := self._value(place)):
                place = known
                continue
            token = compiled(_TOKEN).match(text, place)
            if token is None:
                break
            place = self._next_place(token)
        self._end_piece()

    def _next_place(self, token: re.Match[str]) -> int:
        """Take in one token; returns where the next begins."""
        kind, text = token.lastgroup or "", token.group()
        if self._piece and self._inside(kind, text, token.end()):
            self._piece += text[0]
            return token.start() + 1
        if kind == "han" or (kind == "noun" and is_han(text) and not self._at_end(token.end())):
            self._piece += text[0]
            return token.start() + 1
        if kind != "space":
            self._end_piece()
        if kind == "held":
            held = self._sentence.held(token.start())
            self._add(held[0] if held else "", exact=True)
        else:
            self._phrase_of(kind, text)
        return token.end()

    def _phrase_of(self, kind: str, text: str) -> None:
        """What a phrase of this kind means for what follows."""
        if kind == "word":
            self._word(text)
        elif kind in {"mention", "about"}:
            self._mode = kind
        elif kind == "negation":
            self._negated, self._negation_used = True, False
        elif kind == "either":
            self._either = bool(self.conditions)
        elif kind == "noun" and self._mode and not is_han(text):
            self._word(text)  # documents are what is sought in the text
        elif kind == "noun":
            self.names_documents = True
        elif kind == "about_after" and self.conditions:
            self.conditions[-1] = self.conditions[-1].model_copy(update={"tagged": True})
        elif kind == "gap":
            self._mode, self._negated = "", self._negated and not self._negation_used

    def _inside(self, kind: str, text: str, end: int) -> bool:
        """True when a phrase is only a part of a longer word without spaces: 列 in 队列, 文件 in 文件系统."""
        if not is_han(text) or kind in {"gap", "held", "word", "tail", "mention", "about_after", "negation"}:
            return False
        if kind in {"both", "either"}:
            return len(self._piece) < _MIN_HAN
        return kind in {"inner_frame", "about", "frame"} or (kind == "noun" and not self._at_end(end))

    def _at_end(self, place: int) -> bool:
        """True when no word of Han characters goes on at `place`."""
        for _ in range(_MOST_NOUNS):
            token = compiled(_TOKEN).match(self._sentence.text, place)
            if token is None or token.lastgroup != "noun":
                return token is None or token.lastgroup != "han"
            place = token.end()
        return True

    def _value(self, place: int) -> int | None:
        """A kind, or a tag, that stands bare at `place`: "decisions", "redis notes". Returns where it ends."""
        text = self._sentence.text
        if self._mode == "mention" or not _begins(text, place):
            return None
        if self._mode:
            return self._phrase(place)
        if denied := compiled("<non!>").match(text, place):
            return self._denied_kind(place, denied.end())
        for names, target in ((self._kinds, "kinds"), (self._tags, "tags")):
            known = names.at(text, place)
            if known and self._whole(known, place, kind=target == "kinds"):
                self._name(target, known.values)
                return known.end
        return None

    def _denied_kind(self, place: int, name: int) -> int | None:
        """The kind in "non-recipe notes", "非会议的", which are denied. Returns where its name ends."""
        known = self._kinds.at(self._sentence.text, name)
        if not known or not self._whole(known, place, kind=True):
            return None
        self._negated = True
        self._name("kinds", known.values)
        return known.end

    def _phrase(self, place: int) -> int | None:
        """A tag of several words behind "about": one condition instead of one for each word."""
        known = self._tags.at(self._sentence.text, place)
        if not known or " " not in (spelt := self._sentence.text[place : known.end]) or is_han(spelt):
            return None
        self._add(spelt, exact=True)
        return known.end

    def _whole(self, known: KnownName, place: int, *, kind: bool) -> bool:
        """Not the beginning of a longer word, and, for a tag, no word that says nothing of documents."""
        text = self._sentence.text
        token = compiled(_TOKEN).match(text, place)
        if token is None:
            return False
        if is_han(text[known.end - 1]):
            return self._at_end(known.end)
        if known.end < len(text) and (text[known.end].isalnum() and text[known.end].isascii()):
            return False
        plain_word = token.end() >= known.end and (token.lastgroup != "word" or not terms(token.group()))
        return kind or not plain_word

    def _name(self, target: str, values: tuple[str, ...]) -> None:
        named, self._negation_used = self._named, True
        if target == "kinds":
            (named.without_kinds if self._negated else named.kinds).extend(values)
            self.names_documents = True
        elif self._negated:
            named.without_tags.extend(values)
        elif self._either and named.tags:
            named.tags[-1] = unique([*named.tags[-1], *values])
        else:
            named.tags.append(unique(values))
        self._negated = self._either = False

    def _word(self, text: str) -> None:
        word = text.removesuffix("'s")
        if compiled("<frame>").fullmatch(word) or not terms(word):
            return
        self._add(word, exact=_SIGNS.search(word) is not None)

    def _end_piece(self) -> None:
        piece, self._piece = self._piece, ""
        if piece:
            self._add(piece, exact=True)

    def _add(self, text: str, *, exact: bool) -> None:
        if not text.strip():
            return
        tagged = self._mode == "about"
        if self._either and self.conditions:
            last = self.conditions[-1]
            words = unique([*last.words, text])
            update = {"words": words, "exact": last.exact and exact, "tagged": last.tagged or tagged}
            self.conditions[-1] = last.model_copy(update=update)
        else:
            self.conditions.append(Condition(words=(text,), exact=exact, tagged=tagged, negated=self._negated))
        self._either, self._negation_used = False, True


def _begins(text: str, place: int) -> bool:
    """True where a word begins."""
    before, here = text[place - 1] if place else " ", text[place]
    return here.strip() != "" and not (here.isascii() and here.isalnum() and before.isascii() and before.isalnum())
