"""Tells which words of what was taken for a field nobody listed: they are named, so no guess is silent. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from orchestrator.planning.lists.field_values import KnownFields, field_concepts, of_one_word
from orchestrator.planning.lists.words import GAP, Nouns, compiled
from shared.language import derived
from shared.language.text import HAN

#: Phrases that say nothing but that a value, or somebody, belongs to documents.
_PHRASES = (
    "field_from", "field_said", "field_is", "field_is_not", "field_lead", "field_agent", "negation", "denies",
    "negation_end", "group_who", "who_verb", "group_whose", "group_who_behind", "group_asked_behind", "group_asked",
    "group_listed", "group_by", "group_by_counted", "group_have", "group_done", "group_done_to", "group_prefix",
    "group_suffix", "group_end", "top_asked", "top_common", "top_rare", "top_end", "top_counted", "behind_place",
    "flag_verb", "except", "either", "both", "but_also", "value_joint", "head_asked", "inside_noun", "noun",
    "article_words", "did", "is_so", "head_lead", "tail", "tie_neutral", "tie_done", "value_end",
    "group_where", "group_when",
)  # fmt: skip
_LATIN = re.compile(r"[a-z][a-z'\-]*[a-z]")
_HAN = re.compile(rf"[{HAN}]+")
_WORD_BEGINS = re.compile(rf"(?<![a-z0-9_'\-])(?=[a-z0-9])|(?=[{HAN}])")


def unowned(text: str, names: Sequence[str], known: KnownFields, nouns: Nouns) -> Iterator[str]:
    """Words that are of no name or value, of no verb of these fields (`names`), and of no phrase of the languages."""
    said = _without_names(text, known, nouns)
    left = compiled(_phrases()).sub(lambda found: GAP * len(found[0]), said)
    for word in _LATIN.findall(left):
        if not any(of_one_word(word, name) for name in names):
            yield word
    for piece in _HAN.finditer(compiled("<value_end!>").sub(GAP, said)):
        runs = _HAN.findall(left[piece.start() : piece.end()])
        if {*"".join(runs)} - {*"".join(names)}:
            yield piece[0]


def _without_names(text: str, known: KnownFields, nouns: Nouns) -> str:
    place = 0
    while found := _WORD_BEGINS.search(text, place):
        start = found.start()
        ends = [name.end for names in (known.anywhere, known.names, *nouns) if (name := names.at(text, start))]
        text = f"{text[:start]}{GAP}{text[max(ends) :]}" if ends else text
        place = start + 1
    return text


@derived
def _phrases() -> str:
    concepts = [f"<{part}_{concept}>" for concept in field_concepts() for part in ("said", "behind", "weak", "unset")]
    return "|".join([*concepts, *(f"<{name}>" for name in _PHRASES)])
