"""claims.toml: by what a sentence says another thing than its source. Data; the code holds no words."""

from __future__ import annotations

import re
from functools import cached_property

from pydantic import Field

from shared.language.tables import NEVER
from shared.models.base import Model


class ClaimTable(Model):
    """claims.toml. Patterns see folded, normalised text; the defaults know no word."""

    negations: str = NEVER
    contrasts: str = NEVER
    implied: str = Field(default=NEVER, description="a word that denies without a word of denial: closed, refused")
    light: tuple[str, ...] = Field(default=(), description="stand for many others, so that one of them changes little")
    twice: str = Field(default=NEVER, description="denies a denial")
    withdrawals: str = NEVER
    conditions: str = NEVER
    clock: str = Field(default=NEVER, description="a time of day: groups for hour and minute, or a third for half past")
    hedges: str = NEVER
    rumours: str = Field(default=NEVER, description="somebody says it, or says that it is not so")
    plans: str = Field(default=NEVER, description="it is wanted, asked or being thought about")
    future: str = Field(default=NEVER, description="it is to come")
    done: str = Field(default=NEVER, description="a claim says that it has come about")
    modest: str = Field(default=NEVER, description="further words by which a claim says no more than a hedge does")
    attributed: str = Field(default=NEVER, description="a claim says that somebody says it, or that it is refused")
    bounds: str = Field(default=NEVER, description="bounds what its clause says to a case")
    conditional: str = Field(default=NEVER, description="a claim says a condition itself")
    quantities: tuple[tuple[str, str], ...] = Field(
        default=(), description="what a claim says of a quantity, and what else the passage may say for it"
    )
    earlier: str = Field(default=NEVER, description="between what comes first and what comes then")
    later: str = Field(default=NEVER, description="between what comes then and what comes first")
    earlier_behind: str = Field(default=NEVER, description="behind what comes then, in a clause of its own")
    later_behind: str = Field(default=NEVER, description="behind what comes first, in a clause of its own")
    sequence: str = Field(default=NEVER, description="between what comes first and what a text says comes then")
    greater: str = Field(default=NEVER, description="says that one of two things is more")
    lesser: str = Field(default=NEVER, description="says that one of two things is less")
    greatest: str = Field(default=NEVER, description="says that one of several things is most")
    smallest: str = Field(default=NEVER, description="says that one of several things is least")
    measured: tuple[str, ...] = Field(default=(), description="words that speak of one measure: heavy, weight")
    more_than: str = Field(default=NEVER, description="between two things of which the first is more")
    converse: tuple[tuple[str, str], ...] = Field(
        default=(), description="words of which one says of two the same as the other with both changed: bought, sold"
    )
    less_than: str = Field(default=NEVER, description="between two things of which the first is less")
    because: str = Field(default=NEVER, description="between an effect and its cause, or before the cause")
    therefore: str = Field(default=NEVER, description="between a cause and its effect")
    passive: str = Field(default=NEVER, description="between two names where the second one acts")
    agent: str = Field(default=NEVER, description="between what is done and who does it")
    agent_before: str = Field(default=NEVER, description="before who does what the clause ends with")
    unlike: str = Field(default=NEVER, description="at the start of a clause: what is said is not so of what it names")
    determined: str = Field(default=NEVER, description="at the start of a clause: it has a subject of its own")
    others: str = Field(default=NEVER, description="at the start of a clause: what is said is so of the others")
    towards: str = Field(default=NEVER, description="one character between who acts and who is acted on")
    origins: str = Field(default=NEVER, description="before the first number of a range that goes one way")
    goals: str = Field(default=NEVER, description="between its two numbers")
    once: str = Field(default=NEVER, description="what comes about once, so that two days of it are one too many")
    obsolete: str = Field(default=NEVER, description="a status of what is out of date")
    superseded: str = Field(default=NEVER, description="a line by which a page says that it is out of date")
    supersedes: str = Field(default=NEVER, description="before the name of a page that this one takes the place of")
    versions: str = Field(default=NEVER, description="in a title: which version of its page it is")
    absences: str = Field(default=NEVER, description="says of all sources that they do not say something")
    plain: str = Field(default="", description="words, or characters where there are no spaces, that say nothing")
    same: tuple[tuple[str, ...], ...] = Field(default=(), description="ways to say one thing")
    opposed: tuple[tuple[tuple[str, ...], ...], ...] = Field(
        default=(), description="groups of cells: words of two cells of a group cannot both be true of one thing"
    )
    scales: dict[str, int] = Field(default={}, description="a word behind a number -> what it multiplies it by")
    numbers: dict[str, int] = Field(default={}, description="a word, or a digit of another script -> its number")
    ordinals: dict[str, int] = Field(default={}, description="sixth -> 6")
    parts: dict[str, int] = Field(default={}, description="a word behind a number -> into how many parts")
    pronouns: tuple[str, ...] = Field(default=(), description="stand for a name of a sentence before them")
    naming: str = Field(default=NEVER, description="before a number that names and does not count")
    over: str = Field(default=NEVER, description="before a number that is less than what is meant")
    under: str = Field(default=NEVER, description="before a number that is more than what is meant")
    or_more: str = Field(default=NEVER, description="behind a number that is less than what is meant")
    or_less: str = Field(default=NEVER, description="behind a number that is more than what is meant")
    around: str = Field(default=NEVER, description="before a number that is rounded")
    joints: str = Field(default=NEVER, description="between two parts of a sentence, each with a number of its own")
    currency: str = Field(default=NEVER, description="the name of a currency before a sum")
    present: str = Field(default=NEVER, description="a form of what has come about that says what is so always")
    contrasted: str = Field(default=NEVER, description="between what is so and what is not")
    changes: str = Field(default=NEVER, description="a sentence tells of an older value beside the newer one")
    older: str = Field(default=NEVER, description="before the older value in such a sentence")
    former: str = Field(default=NEVER, description="before what was so and is no longer")
    saying: str = Field(default=NEVER, description="between one who says something and what is said")
    past: str = Field(default=NEVER, description="a claim tells of an older value")
    joint: str = Field(default="", description="may stand between the words of one number")
    whole: str = Field(default="", description="stands behind a part of it: a tenth of")
    measured_by: str = Field(default="", description="stands before a part of what has been named: by a third")
    negative: str = Field(default=NEVER, description="before a number below zero")
    by: str = Field(default=NEVER, description="before a number by which something changes")
    to: str = Field(default=NEVER, description="before a number to which it changes")
    started: str = Field(default=NEVER, description="before a number from which it changes")
    per: str = Field(default=NEVER, description="says what is counted once each; its group is what that is")
    rates: dict[str, str] = Field(default={}, description="period -> how it is said that something is counted per it")
    half: str = Field(default=NEVER, description="a word that means 50 % by itself")
    sums: dict[str, int] = Field(default={}, description="a letter behind a sum with a currency's sign -> its scale")
    endings: str = Field(default=NEVER, description="behind the digits of an ordinal")
    date_marks: tuple[str, ...] = Field(default=(), description="behind month and day of a date in digits")
    articles: tuple[str, ...] = Field(default=(), description="one, before a part: a tenth")
    fraction: str = Field(default="", description="stands between the whole and the part in a fraction")
    units: dict[str, dict[str, float]] = Field(
        default={}, description="dimension -> unit behind or sign before a number -> how many of the base it is"
    )

    @cached_property
    def negation(self) -> re.Pattern[str]:
        """`negations`, compiled."""
        return re.compile(self.negations)

    @cached_property
    def withdrawal(self) -> re.Pattern[str]:
        """`withdrawals`, compiled."""
        return re.compile(self.withdrawals)

    @cached_property
    def condition(self) -> re.Pattern[str]:
        """`conditions`, compiled."""
        return re.compile(self.conditions)
