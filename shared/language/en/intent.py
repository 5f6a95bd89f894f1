"""Says an English question by type: a skill starts with a verb, a resource is a noun phrase, a memory is the user's."""

from __future__ import annotations

import re

from shared.language.base import TypedPhrases
from shared.language.tables import WordTable

_LEAD = re.compile(
    r"(?:(?:and|but|also|so|then|what about|how about) )?(?:please |kindly |can you |could you |would you |"
    r"help me(?: to)? |i (?:want|need|would like) to |i'd like to |let's |let us |show me |tell me |explain )?"
)
_HOW = re.compile(
    r"how (?:(?:do|can|should|would|could) (?:i|we|you|one) |to )|(?:what (?:is|are) )?the (?:best way|steps) to "
)
_CUT = re.compile(r" (?:from|to|in|on|with|without|using|for|when|after|before|so that|if|and|by|into) ")
_PERSONAL = re.compile(r"\b(?:my|mine|our|ours|i|we|us)\b")


def typed_phrases(text: str, words: WordTable) -> TypedPhrases:
    rest = _after(_LEAD, text)
    how = _HOW.match(rest.lower())
    rest = _after(_HOW, rest)
    first, _, thing = rest.partition(" ")
    verb = first.lower()
    if thing.lower().startswith("up ") and verb in {"set", "back"}:
        first, verb, thing = f"{first} up", f"{verb}up", thing[3:]
    noun = _noun(thing, words)
    personal = bool(_PERSONAL.search(rest.lower()))
    if noun and (how or verb in words.making + words.doing):
        making, short = verb in words.making, _CUT.split(f"{noun} ", maxsplit=1)[0].strip() or noun
        return TypedPhrases(
            skill=f"{first[:1].upper()}{first[1:]} {noun}",
            resource=f"{short} template" if making else f"{noun} {first.lower()} guide",
            memory=f"user's {short} preferences" if making else f"user's {noun}" if personal else "",
        )
    noun = _noun(rest, words)
    return TypedPhrases(resource=noun, memory=f"user's {noun}" if personal and noun else "")


def _noun(text: str, words: WordTable) -> str:
    """The words of `text` but for question words, auxiliaries, articles and pronouns."""
    kept = [word.strip("?!,;:") for word in text.split() if word.strip("?!,.;:").lower() not in words.small]
    return " ".join(words.deeds.get(word.lower(), word) for word in kept if word)


def _after(lead: re.Pattern[str], text: str) -> str:
    low = text.lower()
    found = lead.match(low if len(low) == len(text) else text)
    return text[found.end() :].strip() if found else text
