"""The TOML tables of a language as data, loaded once. Phrases are data; the code holds none.

A table with a fault raises pydantic's ValidationError when it is loaded; the tests load them all.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from importlib.resources import files
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field

from shared.models import Facet
from shared.models.base import Model
from shared.models.request import ContextType
from shared.models.route import TYPE_OF, Intent

#: What a routing rule can speak for: a query type, a complex question named by its hops.
Says = Annotated[str, Field(pattern="|".join(f"^{says}$" for says in TYPE_OF))]
#: A pattern that matches nothing.
NEVER = "(?!)"
#: `<name>` that is not the name of a group: any phrase of that list.
_WORD_LIST = re.compile(r"(?<!\?P)<(\w+!?)>")


def toml(folder: str, name: str) -> dict[str, Any]:
    """The table `name` of a language's folder, as TOML has it."""
    return tomllib.loads(files(f"shared.language.{folder}").joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def with_lists(template: str, alternatives: Callable[[str], str]) -> str:
    """A pattern with a group of the alternatives of a list in the place of each `<name>`."""
    return _WORD_LIST.sub(lambda found: f"(?:{alternatives(found[1])})", template)


class RoutingRule(Model):
    """Fires on a question that `pattern` is found in. `when`: the question holds at least one of these words.

    Chinese lists characters in `when`. `unless` found in the question silences the rule. `cased` patterns see the
    question's own capitals, all others see it in lower case. `examples` fire it; the tests check that.
    """

    name: str
    pattern: str
    when: tuple[str, ...] = ()
    unless: str = ""
    cased: bool = False
    examples: tuple[str, ...] = Field(min_length=1)


class TypeRule(RoutingRule):
    """Speaks for a type. `form`: it tells only how the question looks; rules about what it asks weigh more."""

    says: Says
    weight: float = Field(gt=0, lt=1)
    form: bool = False


class IntentRule(RoutingRule):
    """Names the intent; the first one that fits decides."""

    intent: Intent


R = TypeVar("R", bound=RoutingRule)


class RuleIndex(Generic[R]):
    """Compiled rules in their order, found by the words of a question: most rules need one that it does not hold."""

    def __init__(self, rules: Sequence[R], built: Callable[[str], re.Pattern[str]]) -> None:
        self._rules = [(rule, built(rule.pattern), built(rule.unless) if rule.unless else None) for rule in rules]
        self._always = [place for place, rule in enumerate(rules) if not rule.when]
        self._by_word: dict[str, list[int]] = {}
        for place, rule in enumerate(rules):
            for word in rule.when:
                self._by_word.setdefault(word, []).append(place)

    def matches(self, text: str, low: str, words: Iterable[str]) -> Iterator[tuple[R, str]]:
        """The rules that fire, in the table's order, each with what it fired on. `low` is `text` in lower case."""
        places = set(self._always).union(*(self._by_word.get(word, ()) for word in words))
        for place in sorted(places):
            rule, pattern, unless = self._rules[place]
            found = pattern.search(text if rule.cased else low)
            if found and not (unless and unless.search(low)):
                yield rule, found[0].strip()


class RoutingTable(Model):
    """routing.toml. The defaults know no rule, no courtesy and no question."""

    words: dict[str, tuple[str, ...]] = Field(default={})
    courtesies: tuple[str, ...] = Field(default=(), description="what may stand before a question, or instead of one")
    asks: str = Field(default=NEVER, description="found in a sentence that asks or orders")
    types: tuple[TypeRule, ...] = ()
    intents: tuple[IntentRule, ...] = ()

    @cached_property
    def courtesy(self) -> re.Pattern[str]:
        """Any of the courtesies."""
        return self._compile("|".join(self.courtesies) or NEVER)

    @cached_property
    def asking(self) -> re.Pattern[str]:
        """`asks`, compiled."""
        return self._compile(self.asks)

    @cached_property
    def type_rules(self) -> RuleIndex[TypeRule]:
        """`types`, compiled."""
        return RuleIndex(self.types, self._compile)

    @cached_property
    def intent_rules(self) -> RuleIndex[IntentRule]:
        """`intents`, compiled."""
        return RuleIndex(self.intents, self._compile)

    def _compile(self, pattern: str) -> re.Pattern[str]:
        return re.compile(with_lists(pattern, lambda name: "|".join(self.words[name])))


class Frame(Model):
    """A way to ask: sentences that match `pattern` as a whole are of `type`; its named groups are the slots."""

    type: str
    pattern: str


class PlanningTable(Model):
    """planning.toml. `templates`: question type or verb class -> facet -> question."""

    frames: tuple[Frame, ...]
    comparisons: tuple[Frame, ...]
    verbs: dict[str, tuple[str, ...]]
    facet_markers: tuple[tuple[Facet, str], ...]
    words: dict[str, tuple[str, ...]]
    patterns: dict[str, str]
    templates: dict[str, dict[Facet, str]]
    sentences: dict[str, str]

    def without_lead_in(self, sentence: str) -> str:
        """`sentence` without the politeness and the like at its start (three layers of it at most)."""
        for _ in range(3):
            sentence = self.compiled["lead_in"].sub("", sentence, count=1).strip()
        return sentence

    def frame(self, sentence: str) -> tuple[str, dict[str, str]] | None:
        """Type and slots of the first frame that fits, or None."""
        return self._first("frames", sentence)

    def comparison(self, sentence: str) -> tuple[str, dict[str, str]] | None:
        """Type and slots of the first comparison that fits, or None."""
        return self._first("comparisons", sentence)

    def _first(self, table: str, sentence: str) -> tuple[str, dict[str, str]] | None:
        for kind, pattern in self._ways_to_ask[table]:
            if found := pattern.fullmatch(sentence):
                return kind, {name: (text or "").strip(" ,:") for name, text in found.groupdict().items()}
        return None

    @cached_property
    def _ways_to_ask(self) -> dict[str, list[tuple[str, re.Pattern[str]]]]:
        tables = {"frames": self.frames, "comparisons": self.comparisons}
        return {name: [(each.type, self._compile(each.pattern)) for each in table] for name, table in tables.items()}

    @cached_property
    def verb_class(self) -> dict[str, str]:
        """Verb -> its class."""
        return {verb: name for name, verbs in self.verbs.items() for verb in verbs}

    @cached_property
    def compiled(self) -> dict[str, re.Pattern[str]]:
        """The named patterns, compiled once; `<name>` in a pattern stands for any word of that list."""
        return {name: self._compile(pattern) for name, pattern in self.patterns.items()}

    @cached_property
    def _markers(self) -> list[tuple[Facet, re.Pattern[str]]]:
        return [(facet, self._compile(marker)) for facet, marker in self.facet_markers]

    def _compile(self, pattern: str) -> re.Pattern[str]:
        return re.compile(_WORD_LIST.sub(lambda found: self.any_of(found[1]), pattern), re.IGNORECASE)

    def facet_of(self, question: str) -> Facet:
        """The facet that a part of a question asks for, by the first marker found in it."""
        return next((facet for facet, marker in self._markers if marker.search(question)), Facet.CORE)

    def any_of(self, name: str) -> str:
        """Any word of one list, as a group of a pattern."""
        longest_first = sorted(self.words[name], key=len, reverse=True)
        return f"(?:{'|'.join(map(re.escape, longest_first))})"


class ListPhrases(Model):
    """lists.toml: `phrases` by what they mean for a question after a list; `kinds`: kind -> its other names.

    `fields`: a field of documents -> rows of its names; a row means the same, a later one counts where none before is.
    `rewrites`: patterns, with `<name>` for the phrases of a list, and what takes their place before anything is read.
    """

    phrases: dict[str, tuple[str, ...]] = Field(default={})
    kinds: dict[str, tuple[str, ...]] = Field(default={})
    fields: dict[str, tuple[tuple[str, ...], ...]] = Field(default={})
    rewrites: tuple[tuple[str, str], ...] = ()


class TopicWords(Model):
    """How a question points back at what was said. All are patterns over folded text but `generic` and `ordinals`.

    `function`: cut out of a run of characters without spaces. `generic`: words that name nothing. `opens`: a question
    that goes on. `refers`: points back. `dummy`: looks like it, and does not. `asks`: asks to be told (more). `picks`:
    counts items out of a list, by `ordinals` (from 0), from its end with `from_end`, several by `counts`. `swaps`: the
    last question of something else, the group `new`, maybe in place of the group `old`. `heads`: what a question begins
    with and asks about, the group `old`. `alike`: things of one kind, one of which takes another one's place.
    `swaps_alike`: the last question of a thing of one kind with one that it names; `prepositions` and `joints` end what
    stands behind a preposition, `opposites`: one that takes the other's place ("before her" for "after Ada").
    `agents` stand before verbs. `afterwards`: asks what happened then.
    """

    function: tuple[str, ...] = ()
    generic: tuple[str, ...] = ()
    opens: tuple[str, ...] = ()
    refers: tuple[str, ...] = ()
    dummy: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    picks: tuple[str, ...] = ()
    ordinals: dict[str, int] = Field(default={})
    counts: dict[str, int] = Field(default={})
    from_end: tuple[str, ...] = ()
    swaps: tuple[str, ...] = ()
    swaps_alike: tuple[str, ...] = ()
    prepositions: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    opposites: dict[str, str] = Field(default={})
    afterwards: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()


class SectionWords(Model):
    """What headings, labels and front matter are called.

    `facets`: facet -> headings. `keys`: field of the front matter -> its names. `kinds`: a kind's other name -> kind.
    `describes`: names of files that say what their directory holds. `numerals`: characters that number a heading.
    """

    truth: tuple[str, ...] = ()
    timeline: tuple[str, ...] = ()
    facets: dict[str, tuple[str, ...]] = Field(default={})
    keys: dict[str, tuple[str, ...]] = Field(default={})
    kinds: dict[str, str] = Field(default={})
    describes: tuple[str, ...] = ()
    numerals: str = ""


class ReplyWords(Model):
    """What an LLM that answers in this language writes for the words of our formats."""

    facets: dict[str, Facet] = Field(default={})
    context_types: dict[str, ContextType] = Field(default={})
    yes: tuple[str, ...] = ()
    none: tuple[str, ...] = ()


class WordTable(Model):
    """words.toml.

    `stop`: words that say nothing by themselves. `cut`: alternatives of a pattern, function words that are cut out of a
    run of characters without spaces; `alone`: characters that say nothing when they are left alone there.
    `abbreviations`: patterns, before a full stop that ends nothing. `openers`: words with which a question begins.
    `and_`, `or_`: between the last two of a list. `edges`: patterns for questions after what something leads to (`out`)
    and what leads to it (`back`), for those that name a `symbol` of code, and for whole questions for its `callers`
    (`shared.language.symbols` has what `<code>`, `<name>` and `<word>` in them stand for). `commands`: messages that
    order something of the assistant; `polite`: patterns around them. `says`: sentences of ours by name.
    """

    stop: frozenset[str] = frozenset()
    cut: tuple[str, ...] = ()
    alone: str = ""
    abbreviations: tuple[str, ...] = ()
    openers: tuple[str, ...] = ()
    and_: tuple[str, ...] = ()
    or_: tuple[str, ...] = ()
    edges: dict[Literal["out", "back", "symbol", "callers"], tuple[str, ...]] = Field(default={})
    commands: tuple[str, ...] = ()
    polite: tuple[str, ...] = ()
    topic: TopicWords = TopicWords()
    sections: SectionWords = SectionWords()
    reply: ReplyWords = ReplyWords()
    making: tuple[str, ...] = Field(default=(), description="verbs: something new is to be made")
    doing: tuple[str, ...] = Field(default=(), description="verbs: something is to be done")
    small: frozenset[str] = Field(default=frozenset(), description="left out of noun phrases")
    deeds: dict[str, str] = Field(default={}, description="what was done with words -> what is left of it")
    generic: tuple[str, ...] = Field(default=(), description="words of a subquestion that names nothing")
    says: dict[str, str] = Field(default={})
