"""Loads the rules of both languages from the TOML files beside this one, once. The code holds no phrase."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import Field

from shared.models.base import Model
from shared.models.route import Intent

#: What a rule can speak for: a type of E1, a complex question named by its hops.
Says = Literal["simple_rule", "aspects", "multi_hop", "enumeration", "none"]
#: `<name>` that is not the name of a group: any phrase of that list.
_WORD_LIST = re.compile(r"(?<!\?P)<(\w+)>")


class TypeRule(Model):
    """Speaks for a type. `when`: at least one of these words (Chinese: characters) stands in a question that fits.

    `unless` found in the question silences the rule. `form`: it only tells how the question looks, and yields to rules
    that tell what it asks. `cased` patterns see the question's own capitals, all others see it in lower case.
    `examples` are questions that fire it; the tests hold that true.
    """

    name: str
    says: Says
    weight: float = Field(gt=0, lt=1)
    pattern: str
    when: tuple[str, ...] = ()
    unless: str = ""
    cased: bool = False
    form: bool = False
    examples: tuple[str, ...] = Field(min_length=1)


class IntentRule(Model):
    """Names the intent (F3); the first one that fits decides."""

    name: str
    intent: Intent
    pattern: str
    when: tuple[str, ...] = ()
    examples: tuple[str, ...] = Field(min_length=1)


class Table(Model):
    """One language's file."""

    words: dict[str, tuple[str, ...]]
    courtesies: tuple[str, ...] = Field(description="what may stand before a question, or instead of one")
    asks: str = Field(description="a sentence that asks or orders")
    types: tuple[TypeRule, ...]
    intents: tuple[IntentRule, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule ready to run; the type rules carry `says` and `weight`, the intent rules `intent`."""

    name: str
    pattern: re.Pattern[str]
    when: frozenset[str]
    unless: re.Pattern[str] | None = None
    says: Says = "simple_rule"
    weight: float = 0.0
    cased: bool = False
    form: bool = False
    intent: Intent = Intent.GENERAL


class Index:
    """Rules in their order, found by the words of a question: most rules need one that it does not hold."""

    def __init__(self, rules: tuple[Compiled, ...]) -> None:
        self._rules = rules
        self._always = [place for place, rule in enumerate(rules) if not rule.when]
        self._by_word: dict[str, list[int]] = {}
        for place, rule in enumerate(rules):
            for word in rule.when:
                self._by_word.setdefault(word, []).append(place)

    def candidates(self, words: Iterable[str]) -> list[Compiled]:
        """The rules that can fire on a question with these words, in the table's order."""
        places = set(self._always)
        for word in words:
            places.update(self._by_word.get(word, ()))
        return [self._rules[place] for place in sorted(places)]


@dataclass(frozen=True, slots=True)
class Rules:
    """The compiled table of one language."""

    courtesy: re.Pattern[str]
    asks: re.Pattern[str]
    types: Index
    intents: Index


@cache
def table(language: Literal["en", "zh"]) -> Table:
    """The table as data. Raises pydantic's ValidationError for a table with a fault (found by the tests)."""
    text = files("shared.routing").joinpath(f"rules.{language}.toml").read_text(encoding="utf-8")
    return Table.model_validate(tomllib.loads(text))


@cache
def rules(language: Literal["en", "zh"]) -> Rules:
    """The table, compiled."""
    data = table(language)

    def built(pattern: str) -> re.Pattern[str]:
        return re.compile(_WORD_LIST.sub(lambda found: f"(?:{'|'.join(data.words[found[1]])})", pattern))

    return Rules(
        courtesy=built(rf"(?:{'|'.join(data.courtesies)})"),
        asks=built(data.asks),
        types=Index(tuple(
            Compiled(
                name=f"{language}.{rule.name}", pattern=built(rule.pattern), when=frozenset(rule.when),
                unless=built(rule.unless) if rule.unless else None,
                says=rule.says, weight=rule.weight, cased=rule.cased, form=rule.form,
            )
            for rule in data.types
        )),
        intents=Index(tuple(
            Compiled(name=f"{language}.{rule.name}", pattern=built(rule.pattern), when=frozenset(rule.when),
                     intent=rule.intent)
            for rule in data.intents
        )),
    )  # fmt: skip
