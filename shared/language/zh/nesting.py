"""Chinese questions that nest: 《X》的导演的出生地是哪里 is two, and the second waits for the first.

Reads relations from the left: X 的导演, then what is asked of that one. Unsure: no steps. Every pattern is linear in a
sentence of bounded length.
"""

from __future__ import annotations

import re

from shared.language.base import MAX_PART, MAX_SENTENCE, MIN_PART
from shared.language.zh.clauses import PHRASES, asks, bare

#: The deepest nesting that is taken apart, the outer question included.
_MOST_STEPS = 4
_MAX_THING = 30


#: Something named: in title marks, the number of a step before, or a run without 的 and without punctuation.
_WHAT = rf"(?:《[^《》]{{1,{_MAX_THING}}}》|#\d|[^的,;:。?!《》\s][^的,;:。?!《》]{{0,{_MAX_THING}}})"
_RELATION = re.compile(
    rf"(?P<lead>(?:{PHRASES.any_of('nested_class')})?)(?P<what>{_WHAT})的(?P<relation>{PHRASES.any_of('nested_person')}|{PHRASES.any_of('nested_thing')})"
    r"(?P<tail>.+)"
)
#: "谁是 X 的 Y 的 Z": the same as "X 的 Y 的 Z 是谁".
_TURNED = re.compile(r"(?:谁是|哪一?位是)(?P<what>.+的.+的[^的]+)")
#: The relation is what is asked for: nothing waits for it.
_ASKED = re.compile(
    r"\s*(?:是|叫|有|为|在)?(?:谁|什么|哪些|哪位|哪一?[个位人家部座]|哪里|哪儿|几|多少)(?:[人位个名家部座]|名字)?(?:[呢啊呀])?"
)
#: What may stand behind a relation: a verb, a question word, or another 的. Else it is part of a longer word (导演组).
_GOES_ON = re.compile(rf"\s*(?:的|{PHRASES.any_of('nested_verb')}|{PHRASES.any_of('ask')})")
#: Words that name nothing: "our team", "the country".
_UNNAMED = re.compile(
    rf"(?:{PHRASES.any_of('nested_class')}|{PHRASES.any_of('nested_thing')}|[我你您他她它](?:们)?|这.*|那.*|该.*|大家|自己|咱们?)"
)
_PERSON = re.compile(PHRASES.any_of("nested_person"))


def steps(question: str) -> tuple[str, ...]:
    """The steps of a nested question, each with `#n` for the one that it waits for; none where it does not nest."""
    rest = bare(question)
    if len(question) > MAX_SENTENCE or not asks(rest) or re.search("[,;。]", rest):
        return ()
    if turned := _TURNED.fullmatch(rest):
        rest = f"{turned['what']}是谁"
    sentences = PHRASES.sentences
    found: list[str] = []
    while len(found) < _MOST_STEPS - 1 and (inner := _RELATION.fullmatch(rest)):
        tail = inner["tail"]
        if (
            _ASKED.fullmatch(tail)
            or not _GOES_ON.match(tail)
            or asks(inner["what"])
            or _UNNAMED.fullmatch(inner["what"])
        ):
            break
        form = "nested_who" if _PERSON.fullmatch(inner["relation"]) else "nested_what"
        what = f"{inner['lead']}{inner['what']}"
        found.append(sentences[form].format(what=what, relation=inner["relation"]))
        rest = f"#{len(found)}{tail}"
    if not found or not asks(rest):
        return ()
    found.append(f"{rest}?")
    return tuple(found) if all(MIN_PART <= len(step) <= MAX_PART for step in found) else ()
