"""Loads the phrase tables that lie beside the rules as TOML, once. Phrases are data; the rules hold none."""

from __future__ import annotations

import re
import tomllib
from functools import cached_property
from importlib.resources import files

from shared.models import Facet
from shared.models.base import Model

#: `<name>` that is not the name of a group.
_WORD_LIST = re.compile(r"(?<!\?P)<(\w+)>")


class Frame(Model):
    """A way to ask: sentences that match `pattern` as a whole are of `type`; its named groups are the slots."""

    type: str
    pattern: str


class Phrases(Model):
    """What both languages' tables hold. `templates`: question type or verb class -> facet -> question."""

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
        return _first(self._frames, sentence)

    def comparison(self, sentence: str) -> tuple[str, dict[str, str]] | None:
        """Type and slots of the first comparison that fits, or None."""
        return _first(self._comparisons, sentence)

    @cached_property
    def _frames(self) -> list[tuple[str, re.Pattern[str]]]:
        return [(frame.type, self._compile(frame.pattern)) for frame in self.frames]

    @cached_property
    def _comparisons(self) -> list[tuple[str, re.Pattern[str]]]:
        return [(frame.type, self._compile(frame.pattern)) for frame in self.comparisons]

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
        return re.compile(_WORD_LIST.sub(lambda found: _any_of(self.words[found[1]]), pattern), re.IGNORECASE)

    def facet_of(self, question: str) -> Facet:
        """The facet that a part of a question asks for, by the first marker found in it."""
        return next((facet for facet, marker in self._markers if marker.search(question)), Facet.CORE)


def _any_of(words: tuple[str, ...]) -> str:
    longest_first = sorted(words, key=len, reverse=True)
    return f"(?:{'|'.join(map(re.escape, longest_first))})"


def _first(frames: list[tuple[str, re.Pattern[str]]], sentence: str) -> tuple[str, dict[str, str]] | None:
    for kind, regex in frames:
        if found := regex.fullmatch(sentence):
            return kind, {name: (text or "").strip(" ,:") for name, text in found.groupdict().items()}
    return None


def load(language: str) -> Phrases:
    """The table of one language. Raises pydantic's ValidationError for a table with a fault (found by the tests)."""
    text = files("orchestrator.planning.rules").joinpath(f"{language}.toml").read_text(encoding="utf-8")
    return Phrases.model_validate(tomllib.loads(text))
