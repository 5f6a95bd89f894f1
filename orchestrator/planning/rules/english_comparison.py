"""English comparisons: a question for each thing and one for all together. Finds the things, judges none."""

from __future__ import annotations

import re

from orchestrator.planning.rules.english_phrases import PHRASES, second_person
from orchestrator.planning.rules.reading import MAX_PART, Part
from shared.models import Facet

_SEPARATOR = re.compile(r",? (?:and|or|versus|vs\.?|over|instead of|rather than|compared (?:to|with)) |, (?:and |or )?")
_COMPARE = re.compile(r" (?:with|to|against) ")
_THINGS = (2, 5)
_MAX_WORDS = 6


def compared(sentence: str) -> tuple[Part, ...]:
    """The parts of a comparison of 2 to 5 things, else nothing."""
    found = PHRASES.comparison(sentence)
    if found is None:
        return ()
    kind, slots = found
    items, scope = _items(sentence, slots)
    if not _THINGS[0] <= len(items) <= _THINGS[1] or not all(map(_is_thing, items)):
        return ()
    scope = f" {scope}" if scope else ""
    aspect = slots.get("aspect", "")
    if kind == "difference" and (aspect or (near := PHRASES.compiled["aspect"].search(sentence))):
        aspect = aspect or (near["aspect"] if near else "")
        scope = f" in terms of {aspect}{scope}"
    return _questions(kind, items, {"scope": second_person(scope), "aspect": aspect})


def _questions(kind: str, items: list[str], slots: dict[str, str]) -> tuple[Part, ...]:
    sentences = PHRASES.sentences
    things = [sentences[f"thing_{kind}"].format(item=item, **slots) for item in items]
    together = {**slots, "items": _listed(items)}
    parts = [Part(facet=Facet.CORE, query=query, asked=True) for query in things]
    parts.append(Part(facet=Facet.CORE, query=sentences[f"together_{kind}"].format(**together)))
    if kind == "choice":
        parts.append(Part(facet=Facet.NOTE, query=sentences["decide"].format(**together)))
    return tuple(part for part in parts if len(part.query) <= MAX_PART)


def _items(sentence: str, slots: dict[str, str]) -> tuple[list[str], str]:
    """The things compared, without what narrows the comparison ("for small teams"); and that."""
    scope = slots.get("scope", "")
    if slots.get("a"):
        pieces = [slots["a"], slots["b"]]
    else:
        text = PHRASES.compiled["after_things"].sub("", slots["items"])
        pieces = [piece for piece in _SEPARATOR.split(text) if piece.strip()]
        if len(pieces) < _THINGS[0] and re.match(r"compar", sentence, re.IGNORECASE):
            pieces = _COMPARE.split(text, maxsplit=1)
    if pieces and not scope and (found := PHRASES.compiled["scope"].match(pieces[-1])):
        pieces[-1], scope = found["item"], found["scope"].strip(" ,")
    lead = PHRASES.compiled["item_lead"]
    items = [second_person(lead.sub("", piece.strip(" ,:")).strip()) for piece in pieces]
    return _with_shared_head(list(dict.fromkeys(items))), scope


def _is_thing(item: str) -> bool:
    return 0 < len(item.split()) <= _MAX_WORDS and not PHRASES.compiled["question_word"].match(item)


def _with_shared_head(items: list[str]) -> list[str]:
    """The first of "supervised and unsupervised learning" is "supervised learning"."""
    *heads, last = items or [""]
    words = last.split()
    if len(words) != 2 or not all(_are_a_pair(item, words[0]) for item in heads):
        return items
    return [*(f"{item} {words[1]}" for item in heads), last]


def _are_a_pair(one: str, other: str) -> bool:
    if one in PHRASES.words["pair_word"] and other in PHRASES.words["pair_word"]:
        return True
    return one.islower() and any(one.endswith(end) and other.endswith(end) for end in PHRASES.words["pair_suffix"])


def _listed(items: list[str]) -> str:
    return f"{', '.join(items[:-1])} and {items[-1]}"
