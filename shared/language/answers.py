"""answers.toml: which kind of answer a question asks for, and by what a sentence shows that it holds one."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cached_property

from pydantic import Field

from shared.language.tables import NEVER
from shared.models.base import Model


class AnswerKind(StrEnum):
    """What a question asks for."""

    PERSON = "person"
    DATE = "date"
    DURATION = "duration"
    MONEY = "money"
    FREQUENCY = "frequency"
    VERSION = "version"
    NUMBER = "number"
    PLACE = "place"
    CAUSE = "cause"
    STEPS = "steps"
    DEFINITION = "definition"
    NAME = "name"
    YES_NO = "yes_no"


class AnswerRule(Model):
    """A question in lower case that `pattern` is found in asks for `kind`; `examples` do, the tests check that."""

    kind: AnswerKind
    pattern: str
    examples: tuple[str, ...] = Field(min_length=1)


class Relation(Model):
    """Words of questions and words of sentences that speak of the same: "place of birth" and "was born in"."""

    asked: tuple[str, ...] = Field(min_length=1)
    said: tuple[str, ...] = Field(min_length=1)
    needed: bool = Field(default=False, description="a sentence without one of `said` answers no question for `asked`")


class MeasureRule(Model):
    """A question that `asked` is found in asks for a number of these dimensions (those of `units` in claims.toml).

    `said`: how sentences call what is measured. One that calls it otherwise, by another row, does not answer.
    """

    asked: str
    dimensions: tuple[str, ...] = Field(min_length=1)
    said: str = NEVER
    named: bool = Field(default=False, description="its unit alone does not tell what is measured")


class SectionRule(Model):
    """A question that `asked` is found in is answered below a heading that `heading` is found in."""

    asked: str
    heading: str
    changes: bool = Field(default=False, description="what was changed stands below it")


class AnswerTable(Model):
    """The rules in order. `evidence`: patterns over sentences in lower case, by kind.

    `joins`: where a question ends and the next one begins within a sentence. `newest`: a word that asks for the latest
    of several. `defines`: a question for what a `term` is; `is_defined`: what stands between that and its definition.
    `parts`: what stands between two parts of a question that each ask something of their own. `example`: asks for code
    that shows how something is used. `current`: asks how something is now; `past`: asks for the day of what is over.
    `measured`: asks which of several has more of something that is counted. `attribute`: patterns with a group, what is
    asked of something ("the weight of X"); `counted`: the number or the kind of what is asked for ("how many people",
    "which port"). `sections`: under which headings they are answered. `points_back`: a pattern that the beginning of a
    sentence without a subject of its own matches ("He was born"). `open`: patterns with a group, of what anything that
    is known is asked ("what do we know about X"). `implied`: words of questions that any answer of that kind says ("how
    many", "the price").
    """

    asks: tuple[AnswerRule, ...] = ()
    joins: str = NEVER
    newest: str = NEVER
    defines: str = NEVER
    is_defined: str = NEVER
    points_back: str = NEVER
    parts: str = NEVER
    example: str = NEVER
    current: str = NEVER
    past: str = NEVER
    measured: str = NEVER
    attribute: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    sections: tuple[SectionRule, ...] = ()
    evidence: dict[AnswerKind, str] = Field(default={})
    implied: dict[AnswerKind, tuple[str, ...]] = Field(default={})
    relations: tuple[Relation, ...] = ()
    measures: tuple[MeasureRule, ...] = ()

    def measure_of(self, question: str) -> MeasureRule | None:
        """What is measured where the question (as in `kind`) asks for that."""
        return next((row for row, (asked, _) in self._measures if asked.search(question)), None)

    def calls(self, sentence: str, row: MeasureRule) -> bool:
        """True where `sentence` (as in `kind`) names what is measured."""
        return any(one is row and said.search(sentence) for one, (_, said) in self._measures)

    def says_other(self, sentence: str, row: MeasureRule) -> bool:
        """True where `sentence` (as in `kind`) calls what it measures as another row of the same dimension does."""
        dimensions = frozenset(row.dimensions)
        others = (one for one, _ in self._measures if one is not row and not dimensions.isdisjoint(one.dimensions))
        return not self.calls(sentence, row) and any(self.calls(sentence, one) for one in others)

    def kind(self, question: str) -> AnswerKind | None:
        """What the question (in lower case, narrow punctuation) asks for, by the first rule that fits."""
        return next((kind for kind, pattern in self._asks if pattern.search(question)), None)

    def kinds(self, question: str) -> tuple[AnswerKind, ...]:
        """What each part of the question asks for, each kind once: "when was it, and how long did it take"."""
        parts = self._joins.split(question)
        found = [self.kind(question), *(self.kind(part) for part in parts)] if len(parts) > 1 else [self.kind(question)]
        return tuple(dict.fromkeys(kind for kind in found if kind))

    def parts_of(self, question: str) -> list[str]:
        """The parts of a question that asks several things, each with its own kind of answer; else empty."""
        parts: list[str] = []
        for part in self._parts.split(question):
            low = part.lower().strip(" ?!.")
            if parts and self.kind(low) is None:
                return []
            parts.append(part.strip())
        asking = [part for part in parts if self.kind(part.lower().strip(" ?!.")) is not None]
        return asking if len(asking) > 1 else []

    def asks_for_section(self, question: str) -> bool:
        """True where headings can tell what answers the question (as in `kind`)."""
        return any(asked.search(question) for asked, _ in self._sections)

    def section(self, question: str, heading: str) -> float:
        """1 below a heading under which the question (as in `kind`) is answered, -1 below that of another; else 0."""
        asked = [one for one in self._sections if one[0].search(question)]
        if not asked:
            return 0.0
        if any(pattern.search(heading) for _, pattern in asked):
            return 1.0
        return -1.0 if any(pattern.search(heading) for _, pattern in self._sections) else 0.0

    def asks_for_newest(self, question: str) -> bool:
        """True where the question (as in `kind`) asks for the latest of several."""
        return self._newest.search(question) is not None

    def asks_for_past(self, question: str) -> bool:
        """True where the question (as in `kind`) asks when something was that is over."""
        return self._past.search(question) is not None

    def latest_of(self, question: str) -> str:
        """The question (as in `kind`) without the words that ask for the latest of several."""
        return self._newest.sub(" ", question)

    def attributes(self, question: str) -> list[str]:
        """What the question (as in `kind`) asks of something that it names: "weight"."""
        return [found[1] for pattern in self._attribute if (found := pattern.search(question))]

    def counts(self, question: str) -> list[str]:
        """What the question (as in `kind`) asks the number or the kind of: "engineers", "port"."""
        return [found[1] for pattern in self._counted if (found := pattern.search(question))]

    def open_subject(self, question: str) -> str:
        """Of whom or what a question (as it was asked) wants to know anything that there is; "" for another one."""
        found = (pattern.search(question.strip()) for pattern in self._open)
        return next((one[1].strip(" .") for one in found if one), "")

    def exemplified(self, question: str) -> str:
        """What code that answers the question (as in `kind`) shows the use of; "" for a question that asks for none."""
        return self._example.sub(" ", question) if self._example.search(question) else ""

    def is_change(self, heading: str) -> bool:
        """True for a heading (as in `kind`) below which it is said what was changed."""
        rows = zip(self.sections, self._sections, strict=True)
        return any(row.changes and pattern.search(heading) is not None for row, (_, pattern) in rows)

    def asks_for_more(self, question: str) -> bool:
        """True where the question (as in `kind`) asks which of several has more of something that is counted."""
        return self._measured.search(question) is not None

    def state_of(self, question: str) -> str:
        """What the question (as in `kind`) asks the present state of; "" for a question that asks for none."""
        found = self._current.search(question)
        if found is None:
            return ""
        before, after = question[: found.start()].strip(" ,"), question[found.end() :]
        again = None if before else self._current.search(after)
        return before or (after[: again.start()].strip(" ,") if again else "") or after

    def now_in(self, question: str) -> str:
        """The word by which the question (as in `kind`) asks how something is now; "" where it has none."""
        found = self._current.search(question)
        return found[0] if found else ""

    def defined_term(self, question: str) -> str:
        """What the question asks the meaning of; "" for any other question."""
        found = self._defines.search(question)
        return next((term for term in found.groups() if term), "") if found else ""

    def says_what(self, sentence: str, term: str) -> bool:
        """True where `sentence` (as in `kind`) says what `term` is."""
        at = sentence.find(term)
        return at >= 0 and self._is_defined.match(sentence[at + len(term) :]) is not None

    def shown_by(self, kind: AnswerKind) -> re.Pattern[str] | None:
        """What a sentence with an answer of that kind holds; None: a name that the question does not have."""
        return self._evidence.get(kind)

    @cached_property
    def pointing_back(self) -> re.Pattern[str]:
        """`points_back`, compiled."""
        return re.compile(self.points_back, re.IGNORECASE)

    @cached_property
    def _measures(self) -> list[tuple[MeasureRule, tuple[re.Pattern[str], re.Pattern[str]]]]:
        return [(one, (re.compile(one.asked), re.compile(one.said))) for one in self.measures]

    @cached_property
    def _parts(self) -> re.Pattern[str]:
        return re.compile(self.parts, re.IGNORECASE)

    @cached_property
    def _sections(self) -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
        return [(re.compile(one.asked), re.compile(one.heading)) for one in self.sections]

    @cached_property
    def _joins(self) -> re.Pattern[str]:
        return re.compile(self.joins)

    @cached_property
    def _attribute(self) -> list[re.Pattern[str]]:
        return [re.compile(one) for one in self.attribute]

    @cached_property
    def _counted(self) -> list[re.Pattern[str]]:
        return [re.compile(one) for one in self.counted]

    @cached_property
    def _open(self) -> list[re.Pattern[str]]:
        return [re.compile(one, re.IGNORECASE) for one in self.open]

    @cached_property
    def _past(self) -> re.Pattern[str]:
        return re.compile(self.past)

    @cached_property
    def _measured(self) -> re.Pattern[str]:
        return re.compile(self.measured)

    @cached_property
    def _current(self) -> re.Pattern[str]:
        return re.compile(self.current)

    @cached_property
    def _example(self) -> re.Pattern[str]:
        return re.compile(self.example)

    @cached_property
    def _newest(self) -> re.Pattern[str]:
        return re.compile(self.newest)

    @cached_property
    def _defines(self) -> re.Pattern[str]:
        return re.compile(self.defines)

    @cached_property
    def _is_defined(self) -> re.Pattern[str]:
        return re.compile(self.is_defined)

    @cached_property
    def _asks(self) -> list[tuple[AnswerKind, re.Pattern[str]]]:
        return [(rule.kind, re.compile(rule.pattern)) for rule in self.asks]

    @cached_property
    def _evidence(self) -> dict[AnswerKind, re.Pattern[str]]:
        return {kind: re.compile(pattern) for kind, pattern in self.evidence.items()}
