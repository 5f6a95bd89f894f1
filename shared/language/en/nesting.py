"""English questions that nest: "when was the director of X born" is two, and the second waits for the first.

Finds the innermost description of something named ("the director of X", "the company that owns X"), asks for it, puts
its number in its place and looks again. Unsure: no steps. Every pattern is linear in a sentence of bounded length.
"""

from __future__ import annotations

import re

from shared.language.base import MAX_PART, MAX_SENTENCE, MIN_PART
from shared.language.en.clauses import PHRASES, bare

#: The deepest nesting that is taken apart, the outer question included.
_MOST_STEPS = 4


_CAPITAL = r"[A-Z\u00c0-\u00de0-9][\w'’&.\-]*+"
_PLAIN = r"[A-Z\u00c0-\u00de0-9][\w&.\-]*+"
_JOINT = r"(?:of|the|de|del|della|di|da|du|la|le|van|von|der|den|al|el|bin|ibn|and|for|in|on|at|to|a|an|&|y|e)"
#: Something named: a quoted title, a run of capitalised words, or the number of a step before.
_NAME = (
    rf"(?:#\d|[\"“][^\"“”]{{2,80}}[\"”]|{_CAPITAL}(?:,? (?:{_JOINT} ){{0,2}}{_CAPITAL}|!|:(?= [A-Z])){{0,9}}"
    r"(?: \([^()]{1,40}\))?)"
)
_THE = r"(?:the |a |an )?"
#: What may follow a description: the end, or what its question says of it. Any other word may belong to the name.
_END = rf"(?<!['’]s)(?=$| (?:{PHRASES.any_of('nested_verb')})\b| (?:or|and) (?:the|#))"
_RELATION = re.compile(
    rf"\bthe (?P<relation>{PHRASES.any_of('nested_person')}|{PHRASES.any_of('nested_thing')}) of "
    rf"(?P<what>{_THE}(?:{PHRASES.any_of('nested_class')} )?{_NAME}){_END}"
)
_POSSESSIVE = re.compile(
    rf"(?<![\w'’])(?P<what>{_PLAIN}(?:,? (?:{_JOINT} )?{_PLAIN}){{0,6}}|#\d)['’]s? "
    rf"(?P<relation>{PHRASES.any_of('nested_person')}|{PHRASES.any_of('nested_thing')}){_END}"
)
_NOUN = r"(?!(?:reason|fact|way|time|first|day|idea|one|case|extent|year)\b)[a-z]+(?: [a-z]+){0,2}?"
_LINK = r"(?:that|which|who|whose|where|when|while)\b"
_CLAUSE = re.compile(
    rf"\bthe (?P<noun>{_NOUN}) (?:that|which|who) (?P<clause>(?!the\b)[a-z]+(?: (?!{_LINK})[a-z]+){{0,4}}? {_NAME}"
    rf"(?: in \d{{4}})?){_END}"
)
_PARTICIPLE = re.compile(
    rf"\bthe (?P<noun>{_NOUN}) (?P<clause>(?:[a-z]{{2,}}ed|written|sung|built|made|led|won|run|known|held) "
    rf"(?:by|in|for|as|at) {_THE}{_NAME}){_END}"
)
_PERSON = re.compile(PHRASES.any_of("nested_person"), re.IGNORECASE)
_ASKS = re.compile(
    r"(?:who|whom|whose|what|when|where|which|how|(?:in|at|on|from|for) (?:what|which)|are|is|was|were|did|do|does)\b",
    re.IGNORECASE,
)
#: "Who is #2": the step that finds #2 asks it already.
_TRIVIAL = re.compile(r"(?:who|what|where|which [a-z]+) (?:is|are|was|were) #\d", re.IGNORECASE)


def steps(question: str) -> tuple[str, ...]:
    """The steps of a nested question, each with `#n` for the ones that it waits for; none where it does not nest."""
    rest = bare(question).rstrip(" ?.!")
    if len(question) > MAX_SENTENCE or not _ASKS.match(rest):
        return ()
    found: list[str] = []
    while len(found) < _MOST_STEPS - 1 and (described := _innermost(rest)):
        place, asked = described
        found.append(asked)
        rest = f"{rest[: place.start()]}#{len(found)}{rest[place.end() :]}"
    if not _TRIVIAL.fullmatch(rest):
        found.append(f"{rest}?")
    fits = len(found) > 1 and all(MIN_PART <= len(step) <= MAX_PART for step in found)
    return tuple(found) if fits else ()


def _innermost(text: str) -> tuple[re.Match[str], str] | None:
    """The first description that holds no other one, and the question for it."""
    sentences = PHRASES.sentences
    if found := _CLAUSE.search(text):
        return found, sentences["nested_clause"].format(**found.groupdict())
    if found := _PARTICIPLE.search(text):
        return found, sentences["nested_participle"].format(**found.groupdict())
    if found := _RELATION.search(text) or _POSSESSIVE.search(text):
        form = "nested_who" if _PERSON.fullmatch(found["relation"]) else "nested_what"
        return found, sentences[form].format(**found.groupdict())
    return None
