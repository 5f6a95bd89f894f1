"""Draws the difference of two answers, the sentence that names the cause last. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType, group
from rich.table import Table
from rich.text import Text

from orchestrator.cli.text import cited, columns, heading, pair, plain, score
from orchestrator.records.diff import AnswerDifference, Changed, ResultDifference

_PARTS, _MOST = 3, 12
_MARKS = {"came": ("+", "green"), "went": ("-", "red"), "moved": ("↕", "yellow"), "scored": ("~", "yellow")}


@group()
def draw_difference(found: AnswerDifference) -> Iterator[RenderableType]:
    """Only what differs; nothing but a sentence where nothing does."""
    yield plain(f"A {found.a} · B {found.b}", "dim")
    if found.question:
        yield from heading("Question")
        yield from _changes([found.question])
    for title, changes, none in (
        ("Options", found.options, "not given"), ("Settings", found.settings, "default"),
        ("Models", found.models, "none"), ("Releases", found.releases, "none"), ("Plan", found.plan, "none"),
        ("Made without", found.degraded, "nothing"),
    ):  # fmt: skip
        if changes:
            yield from heading(title)
            yield from _changes(changes, none)
    if found.prompts:
        yield pair("Prompts changed", ", ".join(found.prompts))
    if found.documents:
        yield from heading("Documents")
        for document in found.documents:
            mark, style = _MARKS.get(document.how, ("~", "yellow"))
            yield Text(f"{mark} ", style).append(plain(document.path)).append(f"  {document.how}", "dim")
    yield from _results(found)
    yield from _sentences(found)
    if found.answer:
        yield from heading("Answer")
        yield from _changes(found.answer)
    if found.warnings_went or found.warnings_came:
        yield from heading("Warnings")
        yield from _lines(found.warnings_went, found.warnings_came)
    yield Text()
    yield plain(found.sentence, "bold")


def _changes(changes: Iterable[Changed], none: str = "none") -> Iterator[RenderableType]:
    for change in changes:
        before, after = (
            none if value in {None, ""} else _shown(value) for value in (_plain(change.before), _plain(change.after))
        )
        yield Text.assemble(
            plain(change.name, "bold"), "  ", plain(before, "red"), (" → ", "dim"), plain(after, "green")
        )


def _plain(value: object) -> object:
    return (
        ", ".join(map(str, value))
        if isinstance(value, list | tuple)
        else str(value)
        if isinstance(value, dict)
        else value
    )


def _shown(value: object) -> str:
    return str(value)


def _results(found: AnswerDifference) -> Iterator[RenderableType]:
    """Those that came, went or moved; the others are counted."""
    told = [one for one in found.results if one.how != "scored"]
    if found.results:
        yield from heading(f"Results ({len(told)} came, went or moved, {found.kept} are the same)")
    if told:
        yield _table(told[:_MOST])
    more = (
        (len(told) - _MOST, "more came, went or moved"),
        (len(found.results) - len(told), "have another score at the same rank"),
    )
    if said := ", ".join(f"{number} {what}" for number, what in more if number > 0):
        yield plain(f"{said}: --json has them", "dim")


def _table(results: Sequence[ResultDifference]) -> Table:
    table = columns("", "A", "B", "score", "document", "because", right=("A", "B"), whole=("", "A", "B", "score"))
    for one in results:
        mark, style = _MARKS[one.how]
        scores = " → ".join(score(value) for value in (one.score_before, one.score_after) if value is not None)
        document = plain(one.title).append("\n").append(plain(one.path, "dim"))
        table.add_row(
            Text(mark, style),
            str(one.before or ""),
            str(one.after or ""),
            scores,
            document,
            plain(_because(one), "dim"),
        )
    return table


def _because(one: ResultDifference) -> str:
    parts = [
        f"{part.name} {'-' if part.before is None else score(part.before)} → "
        f"{'-' if part.after is None else score(part.after)}"
        for part in one.parts[:_PARTS]
    ]
    return "; ".join(filter(None, (one.why, ", ".join(parts))))


def _sentences(found: AnswerDifference) -> Iterator[RenderableType]:
    if found.sentences_went or found.sentences_came:
        yield from heading(f"Sentences ({found.sentences_kept} are the same)")
        yield from _lines(found.sentences_went, found.sentences_came)


def _lines(went: Sequence[str], came: Sequence[str]) -> Iterator[RenderableType]:
    for mark, style, texts in (("- ", "red", went), ("+ ", "green", came)):
        for text in texts:
            yield Text(mark, style).append_text(cited(text))
