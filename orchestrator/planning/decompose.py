"""Decomposes a question: the LLM, once more with the fault named, then the rules. Always gives an answer.

The calls to the LLM happen behind the `LLM` protocol; nothing here opens a connection. The rules are those of the
language that reads the question; they prefer not to split when unsure.
"""

from __future__ import annotations

from functools import partial

from orchestrator.planning.same import folded
from shared.errors import shown
from shared.language import question_language, worded
from shared.language.base import MAX_PART, Split, Subquestion
from shared.language.text import narrowed
from shared.llm.client import LLM
from shared.llm.dialogue import Dialogue
from shared.llm.prompts import decompose_again_prompt, decompose_prompt
from shared.llm.replies import parse_decomposition
from shared.models import Cost, Decomposition, Facet, SubQuery
from shared.references import references

_BY_RULES = "The question was decomposed by rules instead."
#: Which facets go first when there is no room for all.
_PRIORITY = (Facet.CORE, Facet.HOW, Facet.WHY, Facet.NOTE, Facet.CASE)


class Decomposer:
    """Decomposes one question at a time; safe for threads if its LLM is. `llm` None: by rules, without a warning."""

    def __init__(self, llm: LLM | None = None) -> None:
        self._llm = llm

    def decompose(self, question: str, most: int, timeout_s: float) -> tuple[Decomposition, Cost]:
        """At most `most` subqueries of `question`, within `timeout_s` seconds for both asks together.

        Never raises for a fault of the LLM: each fallback leaves a warning, and failed asks are counted in the cost
        as far as they are known.
        """
        if self._llm is None:
            return decompose_by_rules(question, most), Cost()
        asking = Dialogue(
            self._llm, partial(parse_decomposition, most=most), timeout_s, wanted="decomposition", instead=_BY_RULES
        )
        again = partial(decompose_again_prompt, question, most=most)
        subqueries = asking.reply(decompose_prompt(question, most), again)
        if subqueries is not None:
            return Decomposition(subqueries=subqueries, by="llm", warnings=tuple(asking.warnings)), asking.cost
        ruled = decompose_by_rules(question, most)
        return ruled.model_copy(update={"warnings": (*asking.warnings, *ruled.warnings)}), asking.cost


def split(question: str) -> Split:
    """How the rules read `question`. In a language without rules: simple, without parts."""
    text = narrowed(question)
    language = question_language(text)
    return language.split(text) if language else Split()


def nested(question: str) -> tuple[str, ...]:
    """The steps of a question whose parts wait for each other, with `#n` in them; none for any other one."""
    text = narrowed(question)
    language = question_language(text)
    return language.steps(text) if language and not references(text) else ()


def decompose_by_rules(question: str, most: int) -> Decomposition:
    """At most `most` subqueries for `question`, in order; none for a simple one (the original is always searched).

    A nested question gives its steps, each depending on the ones that it names, if all of them fit. Parts of a compound
    question that do not fit are named in a warning; facets that do not fit are just not chosen. Linear in the length of
    the question.
    """
    if (steps := nested(question)) and len(steps) <= most:
        chain = (SubQuery(dimension=Facet.CORE, query=step, depends_on=references(step)) for step in steps)
        return Decomposition(subqueries=tuple(chain), by="rules")
    kept, dropped = _chosen(_different(in_context(split(question).parts)), most)
    warnings: tuple[str, ...] = ()
    if dropped:
        names = "; ".join(shown(part.query) for part in dropped)
        warnings = (f"The question has more parts than the {most} that fit; left to the search as a whole: {names}.",)
    subqueries = tuple(SubQuery(dimension=part.facet, query=part.query, needs_refinement=part.broad) for part in kept)
    return Decomposition(subqueries=subqueries, by="rules", warnings=warnings)


def in_context(parts: tuple[Subquestion, ...]) -> tuple[Subquestion, ...]:
    """The same parts; one that names nothing of its own says what it is about: the nearest part before that does."""
    told: list[Subquestion] = []
    about = ""
    for part in parts:
        language = question_language(part.query)
        if language is None or not language.names_nothing(part.query):
            about = part.query
            told.append(part)
            continue
        query = worded("regarding", about, about.rstrip("?？.。 "), part.query) if about and part.asked else part.query
        fits = len(query) <= MAX_PART and query != part.query
        told.append(part.model_copy(update={"query": query, "broad": False}) if fits else part)
    return tuple(told)


def _different(parts: tuple[Subquestion, ...]) -> list[Subquestion]:
    first: dict[str, Subquestion] = {}
    for part in parts:
        first.setdefault(folded(part.query), part)
    return list(first.values())


def _chosen(parts: list[Subquestion], most: int) -> tuple[list[Subquestion], list[Subquestion]]:
    asked = [part for part in parts if part.asked]
    beside = sorted((part for part in parts if not part.asked), key=lambda part: _PRIORITY.index(part.facet))
    room = (asked + beside)[: max(0, most)]
    return [part for part in parts if part in room], [part for part in asked if part not in room]
