"""What a language is to the rest of the product: one Protocol, and the data that every language fills in.

Every member has a neutral default, so a new language states only what it knows. Nothing here knows a language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from types import ModuleType
from typing import Literal, Protocol, TypeVar

from shared.language.answers import AnswerTable
from shared.language.claims import ClaimTable
from shared.language.tables import ListPhrases, RoutingTable, WordTable, toml
from shared.models import Facet
from shared.models.base import Model

T = TypeVar("T", bound=Model)
#: The longest sentence that the planning patterns look at, in characters. Longer ones are searched as they stand, which
#: keeps every pattern's work small whatever it is given.
MAX_SENTENCE = 300
#: Sentences beyond these are not looked at: nobody asks so many things at once.
MAX_SENTENCES = 40
#: How long a subquestion may be, in characters.
MIN_PART, MAX_PART = 5, 300
#: The deepest nesting that is taken apart, the outer question included.
MAX_STEPS = 4


class SplitKind(StrEnum):
    """How a question is to be taken apart."""

    SIMPLE = "simple"
    COMPOUND = "compound"
    COMPARISON = "comparison"
    BROAD = "broad"


class Subquestion(Model):
    """One part of a question. `broad`: it can be taken apart itself. `asked`: the question asks it, no facet beside.

    `leans`: it points at what another part says, and is not to be searched without that. `one_of`: the clause that asks
    this of several things.
    """

    facet: Facet
    query: str
    broad: bool = False
    asked: bool = False
    leans: bool = False
    one_of: str = ""


class Split(Model):
    """A question as the planning rules read it; no parts: it is searched as it stands."""

    kind: SplitKind = SplitKind.SIMPLE
    parts: tuple[Subquestion, ...] = ()


class TypedPhrases(Model):
    """A question by context type; "" where it asks for nothing of that type."""

    skill: str = ""
    resource: str = ""
    memory: str = ""


@dataclass(frozen=True, slots=True)
class NameRules:
    """How names are found. `plain`: words in lower case that name nothing alone; `runs`: patterns of whole names.

    `transcribed` finds foreign names written by their sound.
    """

    plain: frozenset[str] = frozenset()
    runs: re.Pattern[str] | None = None
    transcribed: re.Pattern[str] | None = None


DateUnit = Literal["day", "week", "month", "quarter", "year"]
#: What a word beside a span of time makes of it: open to the end from its first day, open after its last day, open
#: before its first day, or open up to its last day.
Bend = Literal["from", "after", "before", "until"]


@dataclass(frozen=True, slots=True)
class DateWords:
    """How spans of time are named, in folded text.

    `spans` are patterns with groups: y (year), n (month's name), m (month), d (day), q (quarter), h (half of the year),
    s (a key of `seasons`), part (a key of `parts`, of what else is named), w (week of a year), wm (week of a month),
    wd (the week of the day that is named), edge, c and cu (so many units at an edge of what else is named: a key of
    `parts`, a number, a key of `units`), dec (a decade), rel (a key of `relative`), or n and unit (a count of a key of
    `units`). `ahead` has a group `word` and ends with `$`; `behind` is the inside of a group; both name keys of
    `bends`. `lead`, `join`, `either`, `reach`, `join_tail` and `year_lead` are alternatives inside a group.
    """

    spans: Sequence[re.Pattern[str]] = ()
    months: Mapping[str, int] = field(default_factory=dict)
    quarters: Mapping[str, int] = field(default_factory=dict)
    halves: Mapping[str, int] = field(default_factory=dict)
    #: A word for a part of a month, a quarter or a year -> which of how many.
    parts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: Those of `parts` that are one day behind "before", "since" and the like: the end of March.
    points: Sequence[str] = ()
    #: A season -> its first month of three.
    seasons: Mapping[str, int] = field(default_factory=dict)
    #: Patterns and what takes their place, again and again: a year that is said once goes to each span it is said of.
    shared_years: Sequence[tuple[re.Pattern[str], str]] = ()
    #: A part of a year with "this year" (group rel), and how its year is written instead.
    named_year: re.Pattern[str] | None = None
    year_form: str = "{}"
    #: A part of a year without one (group bare), or with "last" (group past), and how it is written with its year.
    yearless: re.Pattern[str] | None = None
    yearless_form: str = "{part} {year}"
    #: Words of time directly before a span (ends with `$`) or behind it (begins with `^`) that make it another one and
    #: are not read.
    stray_ahead: re.Pattern[str] | None = None
    stray_behind: re.Pattern[str] | None = None
    #: A word for a span near today -> its unit and how many of them back: last year is ("year", 1).
    relative: Mapping[str, tuple[DateUnit, int]] = field(default_factory=dict)
    #: A word for a unit -> the unit.
    units: Mapping[str, DateUnit] = field(default_factory=dict)
    ahead: re.Pattern[str] | None = None
    behind: Sequence[str] = ()
    bends: Mapping[str, Bend] = field(default_factory=dict)
    #: Of the words that bend a span, those that may be what is done in it: "starting in May", 5月开始的.
    verbs: Sequence[str] = ()
    lead: Sequence[str] = ()
    join: Sequence[str] = ()
    either: Sequence[str] = ()
    reach: Sequence[str] = ()
    join_tail: Sequence[str] = ()
    year_lead: Sequence[str] = ()
    #: Words before a span that make any word between it and the next one mean "to".
    between: Sequence[str] = ()
    #: Days in front matter, with groups year, month (a number or a key of `months`) and day.
    days: Sequence[re.Pattern[str]] = ()
    #: Alternatives of a pattern: days or months at the start of a dated entry.
    headings: Sequence[str] = ()


class Language(Protocol):
    """One natural language: a folder beside this file, with a class that derives from this one."""

    #: ISO 639-1.
    code: str = ""
    #: Below this share of a question's terms, the best hit is no answer.
    least_coverage: float = 0.34
    #: Whether a second hop helps questions that read like a lookup.
    hops_on_lookups: bool = True
    names: NameRules = NameRules()
    dates: DateWords = DateWords()

    def reads(self, text: str) -> float:
        """How surely these rules can read `text`, 0..1: the language with the most reads it. 0: not at all."""
        return 0.0

    def speaks(self, text: str) -> float:
        """How surely what is said to a reader of `text` is to be said in this language, 0..1."""
        return 0.0

    def normalised(self, text: str) -> str:
        """`text` in the one spelling that the tables have (Chinese: simplified characters)."""
        return text

    def term(self, word: str) -> str:
        """The search term of a word in lower case without accents; "" for a stop word."""
        return word

    def singular(self, word: str) -> str:
        """A word without its plural ending."""
        return word

    def routing_keys(self, text: str, words: frozenset[str]) -> frozenset[str]:
        """What the `when` lists of the routing rules are looked up by; none: no rule of this language applies."""
        return frozenset()

    def split(self, question: str) -> Split:
        """How a question is to be taken apart; its full-width punctuation is narrow already."""
        return Split()

    def steps(self, question: str) -> tuple[str, ...]:
        """The steps of a question that nests, each with `#n` for the ones that it waits for; none where it does not."""
        return ()

    def names_nothing(self, query: str) -> bool:
        """True for a subquestion such as "What changed afterwards?", which says nothing to search for."""
        return False

    def typed_phrases(self, question: str) -> TypedPhrases:
        """The question as queries by context type; one line without end marks."""
        return TypedPhrases()

    @property
    def routing(self) -> RoutingTable:
        """routing.toml: the rules that tell what a question asks for."""
        return RoutingTable()

    @property
    def lists(self) -> ListPhrases:
        """lists.toml: how a complete list is asked for."""
        return ListPhrases()

    @property
    def answers(self) -> AnswerTable:
        """answers.toml: what kind of answer a question asks for."""
        return AnswerTable()

    @property
    def claims(self) -> ClaimTable:
        """claims.toml: by what a sentence says another thing than its source."""
        return ClaimTable()

    @property
    def words(self) -> WordTable:
        """words.toml: every other word list and sentence."""
        return WordTable()


class FolderLanguage(Language, Protocol):
    """A language whose folder, named by its code, holds its tables and maybe `planning`; loaded at first use."""

    def split(self, question: str) -> Split:
        """Sentences, clauses, comparisons, facets."""
        found: Split = self._planning.split(question) if self._planning else Split()
        return found

    def steps(self, question: str) -> tuple[str, ...]:
        """The steps of "when was the director of X born", from the innermost description outwards."""
        found: tuple[str, ...] = self._planning.steps(question) if self._planning else ()
        return found

    def typed_phrases(self, question: str) -> TypedPhrases:
        """A skill starts with a verb, a resource is a noun phrase, a memory is the user's."""
        if self._planning is None:
            return TypedPhrases()
        found: TypedPhrases = self._planning.typed_phrases(question, self.words)
        return found

    @cached_property
    def _planning(self) -> ModuleType | None:
        name = f"shared.language.{self.code}.planning"
        return import_module(name) if find_spec(name) else None

    @cached_property
    def routing(self) -> RoutingTable:
        """routing.toml."""
        return RoutingTable.model_validate(toml(self.code, "routing"))

    @cached_property
    def lists(self) -> ListPhrases:
        """lists.toml."""
        return ListPhrases.model_validate(toml(self.code, "lists"))

    @cached_property
    def answers(self) -> AnswerTable:
        """answers.toml, if there is one."""
        return self._optional_table("answers", AnswerTable)

    @cached_property
    def claims(self) -> ClaimTable:
        """claims.toml, if there is one."""
        return self._optional_table("claims", ClaimTable)

    def _optional_table(self, name: str, kind: type[T]) -> T:
        """The table of that name in the folder, or one that says nothing."""
        table = files(f"shared.language.{self.code}").joinpath(f"{name}.toml")
        return kind.model_validate(toml(self.code, name)) if table.is_file() else kind()

    @cached_property
    def words(self) -> WordTable:
        """words.toml."""
        return WordTable.model_validate(toml(self.code, "words"))


def filled_templates(templates: Mapping[Facet, str], slots: Mapping[str, str]) -> tuple[Subquestion, ...]:
    """The templates as questions, `{name}` replaced by its slot. Slot text is never read as a template."""
    parts = []
    for facet, template in templates.items():
        query = template.format_map(slots)
        parts.append(Subquestion(facet=facet, query=query[:1].upper() + query[1:]))
    return tuple(part for part in parts if len(part.query) <= MAX_PART)


def facet_split(frame: str, templates: Mapping[Facet, str], slots: Mapping[str, str]) -> Split:
    """The facets of a topic; those of "pros and cons" are what the question itself asks for."""
    parts = filled_templates(templates, slots)
    if frame != "pros":
        return Split(kind=SplitKind.BROAD, parts=parts)
    return Split(kind=SplitKind.COMPOUND, parts=tuple(part.model_copy(update={"asked": True}) for part in parts))


def comparison_parts(
    sentences: Mapping[str, str], kind: str, items: Sequence[str], slots: Mapping[str, str], *, choice: bool
) -> tuple[Subquestion, ...]:
    """A question about each of the `items`, one about all together, and for a choice one about how to decide.

    `sentences` are those of planning.toml; `slots` fill their places, `items` of it names all things.
    """
    queries = [sentences[f"thing_{kind}"].format(item=item, **slots) for item in items]
    parts = [Subquestion(facet=Facet.CORE, query=query, asked=True) for query in queries]
    parts.append(Subquestion(facet=Facet.CORE, query=sentences[f"together_{kind}"].format(**slots)))
    if choice:
        parts.append(Subquestion(facet=Facet.NOTE, query=sentences["decide"].format(**slots)))
    return tuple(part for part in parts if len(part.query) <= MAX_PART)


def standing_steps(steps: Sequence[str]) -> tuple[str, ...]:
    """The steps of a nested question; none where there is only one, or one cannot be searched for its length."""
    fits = len(steps) > 1 and all(MIN_PART <= len(step) <= MAX_PART for step in steps)
    return tuple(steps) if fits else ()


def behind(lead: re.Pattern[str], text: str) -> str:
    """`text` behind what `lead` (in lower case) finds at its start."""
    low = text.lower()
    found = lead.match(low if len(low) == len(text) else text)
    return text[found.end() :].strip() if found else text
