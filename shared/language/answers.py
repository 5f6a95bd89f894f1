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
    NUMBER = "number"
    PLACE = "place"
    CAUSE = "cause"
    STEPS = "steps"
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


class AnswerTable(Model):
    """The rules in order. `evidence`: patterns over sentences in lower case, by kind.

    `points_back`: a pattern that the beginning of a sentence without a subject of its own matches ("He was born").
    """

    asks: tuple[AnswerRule, ...] = ()
    points_back: str = NEVER
    evidence: dict[AnswerKind, str] = Field(default={})
    relations: tuple[Relation, ...] = ()

    def kind(self, question: str) -> AnswerKind | None:
        """What the question (in lower case, narrow punctuation) asks for, by the first rule that fits."""
        return next((kind for kind, pattern in self._asks if pattern.search(question)), None)

    def shown_by(self, kind: AnswerKind) -> re.Pattern[str] | None:
        """What a sentence with an answer of that kind holds; None: a name that the question does not have."""
        return self._evidence.get(kind)

    @cached_property
    def pointing_back(self) -> re.Pattern[str]:
        """`points_back`, compiled."""
        return re.compile(self.points_back, re.IGNORECASE)

    @cached_property
    def _asks(self) -> list[tuple[AnswerKind, re.Pattern[str]]]:
        return [(rule.kind, re.compile(rule.pattern)) for rule in self.asks]

    @cached_property
    def _evidence(self) -> dict[AnswerKind, re.Pattern[str]]:
        return {kind: re.compile(pattern) for kind, pattern in self.evidence.items()}
