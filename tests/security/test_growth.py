"""What reads questions, documents and replies of models takes time in proportion to them, whatever they repeat."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest

from orchestrator.planning.intent import intent_by_rules
from orchestrator.planning.lists.reading import read_question
from orchestrator.planning.planner import decompose_by_rules
from shared.language.names import names_of
from shared.language.routing import route_by_rules
from shared.language.sentences import question_sentences, sentences
from shared.language.text import question_key, terms
from shared.models import Filters
from shared.models.enumeration import Values
from shared.models.request import Session
from shared.settings.sections import ChunkingSettings
from tests.support.growth import past_linear
from workers.display import plain_line, safe
from workers.index.chunking import chunk_document
from workers.index.documents import Document, Markup
from workers.index.fields import fields_of
from workers.index.links import links_of, refs_of
from workers.labelled import labelled, split_values

_TODAY, _SIZES = date(2026, 11, 20), ChunkingSettings()
#: CPU seconds that nobody notices for texts as long as those below.
_UNNOTICED_S = 0.03
_MARKS = (
    " ",
    "\n",
    "\u3000",
    "a",
    "中",
    "a ",
    "中，",
    "？",
    "? ",
    '"',
    "(",
    "[",
    "*",
    "`",
    "|",
    "<",
    "- ",
    "> ",
    "\n\n    ",
)
_BEFORE = ("", "Why did ", "为什么")
#: A list is read of 1000 characters at most, and slowly: fewer show how it grows.
_LISTED = 600

_OF_QUESTIONS: dict[str, Callable[[str], object]] = {
    "rules": lambda text: decompose_by_rules(text, 5),
    "route": route_by_rules,
    "intent": lambda text: intent_by_rules(text, Session()),
    "list": lambda text: read_question(text, Filters(), Values(kinds={"incident": 2}, documents=3), _TODAY),
    "sentences": question_sentences,
    "names": lambda text: names_of(text, text),
    "key": question_key,
}


def _chunks(markup: Markup) -> Callable[[str], object]:
    def run(text: str) -> object:
        document = Document(
            doc_id="0b8e1f6e-54b3-5c5e-9d0c-5a0f4f6f2a11", path="a.md", title="a", text=text, markup=markup, source="s"
        )
        return chunk_document(document, _SIZES)

    return run


_OF_DOCUMENTS: dict[str, Callable[[str], object]] = {
    "markdown": _chunks(Markup.MARKDOWN),
    "restructuredtext": _chunks(Markup.RST),
    "text": _chunks(Markup.TEXT),
    "links": lambda text: (links_of(text, "a.md"), refs_of(text, "a.rst")),
    "fields": lambda text: fields_of({}, text),
    "labelled": lambda text: (labelled(f"a: {text}"), split_values(text)),
    "sentences": sentences,
    "terms": terms,
    "plain_line": plain_line,
    "safe": safe,
}


def _pumped(before: str, mark: str) -> Callable[[int], str]:
    return lambda size: before + mark * ((size - len(before) - 2) // len(mark)) + "x!"


@pytest.mark.parametrize("name", _OF_QUESTIONS)
def test_given_a_question_that_repeats_a_mark_when_read_then_its_time_is_linear(name: str) -> None:
    run, (size, befores) = _OF_QUESTIONS[name], (_LISTED, ("List all ",)) if name == "list" else (2000, _BEFORE)
    for text_of in (_pumped(before, mark) for before in befores for mark in _MARKS):
        assert not past_linear(run, text_of, size, _UNNOTICED_S), repr(text_of(40))


@pytest.mark.parametrize("name", _OF_DOCUMENTS)
def test_given_a_document_that_repeats_a_mark_when_read_then_its_time_is_linear(name: str) -> None:
    run = _OF_DOCUMENTS[name]
    for text_of in (_pumped("", mark) for mark in (*_MARKS, "| a |\n", "a: b\n", "a\n\n", "[a](", "```\n", "中\n")):
        assert not past_linear(run, text_of, 5000, 2 * _UNNOTICED_S), repr(text_of(40))
