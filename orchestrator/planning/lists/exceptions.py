"""Says "except" once more before each thing that a question leaves out. Pure."""

from __future__ import annotations

import re
from functools import partial

from orchestrator.planning.lists.words import Names, Sentence, compiled
from shared.language import languages

#: So far before a joint the name is looked for that it may be a part of, in characters.
_LOOK_BACK = 60


def repeat_exceptions(sentence: Sentence, names: Names) -> None:
    """Say "except" once more before each thing that is left out: "except those tagged sev3 or from 2025".

    `names`: values that a joint may be a part of, as 和 is of 瑞和贸易.
    """
    if found := compiled("<except>").search(sentence.text):
        for language in languages():
            phrases = language.lists.phrases
            if pattern := "|".join(phrases.get("and_except", ())):
                end = _clause_end(sentence.text, found.end())
                scope, instead = sentence.text[found.end() : end], phrases["instead"][0]
                scope = re.sub(pattern, partial(_unless_inside, names, instead), scope)
                sentence.text = sentence.text[: found.end()] + scope + sentence.text[end:]


def _unless_inside(names: Names, instead: str, joint: re.Match[str]) -> str:
    """`instead`, or the joint itself where it is a part of a known name."""
    begins = range(max(0, joint.start() - _LOOK_BACK), joint.start())
    inside = any((name := names.at(joint.string, place)) and name.end > joint.end() for place in begins)
    return joint[0] if inside else instead


def _clause_end(text: str, start: int) -> int:
    found = compiled("[.;?!](?: |$)|<negation_end>").search(text, start)
    return found.end() if found else len(text)
