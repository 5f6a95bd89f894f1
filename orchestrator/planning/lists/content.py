"""Reads what is left of a question: bare values, words that documents must contain, and what is neither. Pure."""

from __future__ import annotations

import re

from orchestrator.planning.lists.markers import NamedValues, denied_behind
from orchestrator.planning.lists.runs import Run
from orchestrator.planning.lists.words import GAP, HOLD, KnownName, Names, Sentence, compiled, says_something, unique
from shared.language.text import HAN, is_han, terms
from shared.models.enumeration import Condition

_WORD = rf"[^\W_{HAN}](?:(?:[^\W{HAN}]|[.+#'\-/&])*(?:[^\W{HAN}]|[+#]))?"
_SIGNS = re.compile(r"[^\w]|_")
_MIN_HAN = 2
_ENDS = rf"\s*(?:$|[{GAP}?!.,;])"
#: Words beside each other that are one phrase.
_PHRASE = 2
#: Tokens between a word and the documents that it stands before: 的, a space, 有哪些.
_MOST_BETWEEN = 4
#: Words for documents that may stand in a row, 会议记录文件, before the reading of each looks no further.
_MOST_NOUNS = 8
#: One token: a gap, a quoted text, a phrase of the lists, a word, or one Han character.
_TOKEN = (
    rf"(?P<gap>{GAP})|(?P<held>{HOLD}.)|(?P<order><order>)|(?P<code>[\w.+\-]*@[\w.\-]*\w)|(?P<inner_frame><inner_frame>)|(?P<tail><tail>)|(?P<mention><mention>)"
    r"|(?P<other><other>)|(?P<about><about>)|(?P<about_next><about_next>)|(?P<about_after><about_after>)|(?P<mention_after><mention_after>)|(?P<negation><negation>)|(?P<frame><frame>)"
    rf"|(?P<either><either>)|(?P<both><both>)|(?P<noun><noun>)|(?P<word>{_WORD})|(?P<han>[{HAN}])|(?P<space>[^\S{GAP}]+)|(?P<sign>.)"
)


class ContentReader:
    """Reads a sentence once. `conditions` are what a document must say; kinds and tags go to `named`.

    `apart`: words of a phrase that each count alone; `phrases`: those that are sought word for word.
    Names of code are conditions too, and stand in `assumed`; all other bare words are no condition: they stand in
    `unread`. `names_documents`: the sentence speaks of
    documents as such, or of a kind of them.
    """

    def __init__(self, sentence: Sentence, kinds: Names, tags: Names, named: NamedValues) -> None:
        self._sentence, self._kinds, self._tags, self._named = sentence, kinds, tags, named
        self.conditions: list[Condition] = []
        self.assumed: list[str] = []
        self.unread: list[Run] = []
        self.apart: list[str] = []
        self.phrases: list[str] = []
        self._run = Run()
        self.names_documents = False
        self._mode, self._negated, self._either, self._piece = "", False, False, ""
        self._negation_used, self._negation_start, self._piece_start = True, 0, 0
        self._said_to, self._beside = -1, 0
        self._read()

    @property
    def denies_unknown(self) -> bool:
        """True when the question denies something that was not understood."""
        return self._negated and not self._negation_used

    def _read(self) -> None:
        text, place = self._sentence.text, 0
        while place < len(text):
            if (not self._piece or self._ends_in_kind(place)) and (known := self._value(place)):
                place = known
                continue
            token = compiled(_TOKEN).match(text, place)
            if token is None:
                break
            if token.lastgroup == "inner_frame" and self._piece:  # 戏有哪些: what asks goes before a part of it
                token = compiled("(?P<tail><tail>)").match(text, place) or token
            place = self._next_place(token)
        self._end_piece()
        self._end_run(len(text))
        self.conditions = [part for one in self.conditions for part in self._parted(one)]

    def _parted(self, one: Condition) -> list[Condition]:
        """Each word of a phrase that is not quoted alone; a phrase where it is denied, a topic, or one of several."""
        phrases = [word for word in one.words if not one.exact and " " in word]
        if len(one.words) > 1 or one.negated or one.tagged or not phrases:
            self.phrases += [] if one.tagged else phrases
            return [one]
        words = one.words[0].split()
        self.apart += words
        return [one.model_copy(update={"words": (word,)}) for word in words]

    def _next_place(self, token: re.Match[str]) -> int:
        """Take in one token; returns where the next begins."""
        kind, text = self._kind_of(token), token.group()
        if self._piece and self._inside(kind, text, token.end()):
            self._piece += text[0]
            return token.start() + 1
        if kind == "han" or (kind == "noun" and is_han(text) and not self._at_end(token.end())):
            self._piece_start = self._piece_start if self._piece else token.start()
            self._piece += text[0]
            return token.start() + 1
        if kind != "space":
            self._end_piece()
        if compiled("<negation_end>").fullmatch(text):
            self._end_run(token.start())
            self._negated = self._negated and not self._negation_used
        if kind in {"both", "either"} and self._run:
            self._run.join(either=kind == "either")
            return token.end()
        ends = kind in {"about", "mention"} and self._mode and compiled(_ENDS).match(self._sentence.text, token.end())
        if (kind == "about_next" and self._run) or (ends and not is_han(text)):  # "mention a torn cover"
            kind = "word"
        if kind not in {"space", "word", "code"} and not self._of_run(kind, text):
            self._end_run(token.start(), about=kind in {"about_after", "mention_after"})
        if kind == "held":
            held = self._sentence.held(token.start())
            self._add(held[0] if held else "", exact=True)
        elif kind in {"word", "code"} or self._of_run(kind, text):
            self._word(text, token.start())
        else:
            self._phrase_of(kind, text, token)
        return token.end()

    def _kind_of(self, token: re.Match[str]) -> str:
        """What a token is; a name in capitals is a word, whatever the same letters are else: "US"."""
        text = token.group()
        named = token.lastgroup == "frame" and not terms(text) and says_something(text, self._named.question)
        return "word" if named else token.lastgroup or ""

    def _of_run(self, kind: str, text: str) -> bool:
        """True for a phrase that is a word like any other: documents behind "mentions" are sought in the text."""
        return kind == "other" or (kind == "noun" and bool(self._mode) and not is_han(text))

    def _phrase_of(self, kind: str, text: str, token: re.Match[str]) -> None:
        """What a phrase of this kind means for what follows."""
        if kind in {"mention", "about"}:
            self._mode = kind
        elif kind == "about_next":
            self._mode = self._mode or "about"
        elif kind == "negation":
            self._negated, self._negation_used, self._negation_start = True, False, token.start()
        elif kind == "either":
            self._either = bool(self.conditions or self._named.tags)
        elif kind == "tail" and is_han(text) and self._documents_follow(token.end()):
            self._mode = ""
            self._end_negation()
        elif kind == "noun":
            self.names_documents = True
        elif kind == "about_after" and self.conditions:
            self.conditions[-1] = self.conditions[-1].model_copy(update={"tagged": True})
        elif kind == "gap":
            self._mode = ""
            self._end_negation()

    def _end_negation(self) -> None:
        """End a negation; one that nothing follows which it denies is unread: 没有 in 手机端没有的缺陷."""
        if self._negated and not self._negation_used:
            said = compiled("<negation>").match(self._sentence.text, self._negation_start)
            lost = Run()
            lost.add(said[0].strip() if said else "", self._negation_start, exact=True)
            self.unread += [lost] if said else []
        self._negated = False

    def _inside(self, kind: str, text: str, end: int) -> bool:
        """True when a phrase is only a part of a longer word without spaces: 列 in 队列, 文件 in 文件系统."""
        if not is_han(text) or kind in {
            "gap",
            "held",
            "word",
            "tail",
            "mention",
            "about_after",
            "mention_after",
            "negation",
        }:
            return False
        if kind in {"both", "either"}:
            return len(self._piece) < _MIN_HAN
        return kind in {"inner_frame", "about", "frame"} or (kind == "noun" and not self._at_end(end))

    def _at_end(self, place: int) -> bool:
        """True when no word of Han characters goes on at `place`."""
        for _ in range(_MOST_NOUNS):
            if compiled("<verb_behind>").match(self._sentence.text, place):
                return True
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
            return self._denied_value(place, denied.end())
        if known := self._known(place):
            self._end_run(place)
            self._negated = self._negated or (not self._named.denies and denied_behind(text, known[1].end))
            self._name(known[0], known[1].values)
            inside = compiled("<inside_noun>").match(text, known[1].end) if known[0] == "kinds" else None
            return inside.end() if inside else known[1].end
        return None

    def _ends_in_kind(self, place: int) -> bool:
        """True where a word without spaces ends in the kind that it is of: 菜谱 in 简单菜谱."""
        known = None if self._mode else self._kinds.at(self._sentence.text, place)
        if known is None or known.end - place < _MIN_HAN or not self._at_end(known.end):
            return False
        self._end_piece()
        return True

    def _known(self, place: int) -> tuple[str, KnownName] | None:
        """The kind or the tag that begins at `place`, and which of the two it is."""
        for names, target in ((self._kinds, "kinds"), (self._tags, "tags")):
            known = names.at(self._sentence.text, place)
            caused = target == "tags" and known is not None and (self._run.is_relation or self._related(known.end))
            caused = caused or (target == "tags" and known is not None and self._describes(place, known.end))
            if known and not caused and self._whole(known, place, kind=target == "kinds"):
                return target, known
        return None

    def _describes(self, place: int, end: int) -> bool:
        """True for a tag that an unread word stands before, and no documents behind: "an unfriendly crew"."""
        beside = bool(self._run) and not self._sentence.text[self._run.end : place].strip(" ")
        return beside and not self._documents_follow(end)

    def _related(self, end: int) -> bool:
        """True for a value that only caused the documents, or wrote them: DNS引起的事故."""
        return compiled(" ?<relation_behind>").match(self._sentence.text, end) is not None

    def _documents_follow(self, place: int) -> bool:
        """True when what stands before `place` belongs to the documents behind it: "kafka notes", 队列的笔记."""
        for _ in range(_MOST_BETWEEN):
            token = compiled(_TOKEN).match(self._sentence.text, place)
            if token is None:
                return False
            if token.lastgroup == "noun" or self._known(place):
                return True
            if token.lastgroup not in {"space", "tail"}:
                return False
            place = token.end()
        return False

    def _denied_value(self, place: int, name: int) -> int | None:
        """The kind or tag in "non-recipe notes", "非会议的", which are denied. Returns where its name ends."""
        known = self._known(name)
        if not known:
            return None
        self._end_run(place)
        self._negated = True
        self._name(known[0], known[1].values)
        return known[1].end

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
            inside = kind and compiled("<inside_noun>").match(text, known.end) is not None
            return inside or self._at_end(known.end) or (not kind and self._kinds.at(text, known.end) is not None)
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

    def _word(self, text: str, start: int) -> None:
        word = text.removesuffix("'s")
        other = compiled("<other>").fullmatch(word) is not None or self._is_participle(start)
        said = terms(word) or says_something(word, self._named.question)
        framed = terms(word) or not said  # "US" is none of the words around a list
        if not other and ((framed and compiled("<frame>").fullmatch(word)) or not said):
            if not self._run.is_relation or terms(word):  # "caused by DNS" is one
                self._end_run(start)
        elif self._mode and not other:
            self._condition(word, start, exact=_SIGNS.search(word) is not None)
        else:
            self._mode = ""
            self._run.add(word, start, exact=_SIGNS.search(word) is not None)

    def _is_participle(self, start: int) -> bool:
        """True where what became of the documents begins behind what they are about: "on the guider, led by Ada"."""
        before = self._sentence.text[:start].rstrip()
        return before.endswith(",") and compiled("<participle>").match(self._sentence.text, start) is not None

    def _condition(self, word: str, start: int, *, exact: bool) -> None:
        """A word that documents must say; two beside each other are one phrase, more than two count alone."""
        beside = start == self._said_to + 1 and bool(self.conditions) and not exact
        self._beside = self._beside + 1 if beside else 1
        last = self.conditions[-1] if beside else None
        if last and self._beside == _PHRASE and not last.exact:
            phrase = (*last.words[:-1], f"{last.words[-1]} {word}")
            self.conditions[-1] = last.model_copy(update={"words": phrase})
        else:
            if last and self._beside == _PHRASE + 1 and len(last.words) == 1 and " " in last.words[0]:
                parts = [last.model_copy(update={"words": (part,)}) for part in last.words[0].split()]
                self.conditions[-1:] = parts
            self._add(word, exact=exact)
        self._said_to = start + len(word)

    def _end_piece(self) -> None:
        piece, self._piece = self._piece, ""
        if piece and self._mode and not compiled("(?:<untied>)").match(piece):
            self._add(piece, exact=True)
        elif piece:
            self._run.add(piece, self._piece_start, exact=True)

    def _end_run(self, place: int, *, about: bool = False) -> None:
        """What the bare words up to `place` are: conditions before "related" and names of code, else unread."""
        run, self._run = self._run, Run()
        if not run:
            return
        denied = self._negated or denied_behind(self._sentence.text, place)
        if about:
            for joint, part in run.parts:
                if joint == "either":
                    self._either = bool(self.conditions)
                self._add(part.text, exact=part.exact)
            return
        for part in run.codes():
            self.assumed.append(part.text)
            self._add(part.text, exact=True)
        if run := run.without_codes():
            self.unread.append(run.denied(self._negation_start if self._negated else run.start) if denied else run)
            self._either, self._negation_used = False, True
            self._negated = self._negated and not self._documents_follow(place)

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
