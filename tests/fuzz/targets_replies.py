"""What models reply: XML and prose. Only ReplyError may come out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any
from xml.sax.saxutils import escape

from shared.errors import ReplyError
from shared.providers.llm import replies
from shared.providers.llm.replies import parse_marks, parse_plan, parse_route, parse_rows
from shared.providers.llm.reply_schema import without_thinking
from tests.fuzz import samples
from tests.fuzz.mutate import Mutator
from tests.fuzz.target import Target, always

_BETWEEN = re.compile(r"(?<=>)(?=[^<>])|(?<=[^<>])(?=<)")


def _decomposition(text: str) -> None:
    found = replies.parse_decomposition(text, 5)
    assert 1 <= len(found) <= 5
    for place, subquery in enumerate(found, 1):
        assert all(1 <= other < place for other in subquery.depends_on)
        _said(subquery.query, replies.MIN_QUERY_CHARS, replies.MAX_QUERY_CHARS)


def _rewrites(text: str) -> None:
    found = replies.parse_rewrites(text, "queue latency", 3)
    assert 1 <= len(found) <= 3
    for rewrite in found:
        _said(rewrite, 1, replies.MAX_QUERY_CHARS)


def _answer(text: str) -> None:
    if (answer := replies.parse_answer(text)) is not None:
        _said(answer, 1, replies.MAX_ANSWER_CHARS)


def _missing(text: str) -> None:
    found = replies.parse_missing(text, 3)
    assert len(found) <= 3
    for query in found:
        _said(query, replies.MIN_QUERY_CHARS, replies.MAX_QUERY_CHARS)


def _summary(text: str) -> None:
    summary = replies.summary_text(text, 500)
    _said(summary, 1, 502, lines=True)
    without_thinking(text, anywhere=True)


def _plan(text: str) -> None:
    reply = parse_plan(text, 5)
    assert bool(reply.queries) != bool(reply.none)
    for query in reply.queries:
        _said(query.query, 1, 300)
        _said(query.intent, 0, 200)


def _rows(text: str) -> None:
    for (row, column), value in parse_rows(text, 3, 2).items():
        assert 1 <= row <= 3
        assert 1 <= column <= 2
        value.encode()


def _marks(text: str) -> None:
    marks = parse_marks(text, 3)
    assert marks
    assert all(0 <= place < 3 and 0 <= mark <= 10 for place, mark in marks.items())


def _said(text: str, least: int, most: int, *, lines: bool = False) -> None:
    """What goes on to prompts, stores and terminals holds no control character and no half of a pair."""
    assert least <= len(text) <= most, len(text)
    bad = [c for c in text if unicodedata.category(c) in {"Cc", "Cs"} and not (lines and c in "\n\t")]
    assert not bad, bad[:5]


def _reply(mutator: Mutator, given: Sequence[str]) -> str:
    """Half of them changed inside their texts alone: elsewhere, XML breaks at the first change."""
    if mutator.rng.random() < 0.5:
        return mutator.text(given)
    parts = _BETWEEN.split(mutator.rng.choice(given))
    for _ in range(mutator.rng.choice((1, 1, 2, 3))):
        place = mutator.rng.randrange(len(parts))
        changed = mutator.text([parts[place]], 2000)
        parts[place] = escape(changed) if mutator.rng.random() < 0.8 else changed
    return "".join(parts)


def _target(name: str, run: Callable[[str], Any], given: Sequence[str], short: int = 300) -> Target:
    return Target(
        name=f"reply_{name}",
        make=lambda mutator: _reply(mutator, given),
        opened=always(run),
        allowed=(ReplyError,),
        tokens=samples.tokens("xml"),
        short=short,
    )


TARGETS = (
    _target("decomposition", _decomposition, samples.forms("decomposition"), 600),
    _target("rewrites", _rewrites, samples.forms("rewrites")),
    _target("answer", _answer, samples.forms("answer")),
    _target("missing", _missing, samples.forms("missing")),
    _target("summary", _summary, samples.SUMMARIES),
    _target("intent", _plan, samples.forms("intent")),
    _target("route", parse_route, samples.forms("route")),
    _target("extract", _rows, samples.forms("rows")),
    _target("marks", _marks, samples.forms("marks")),
)
