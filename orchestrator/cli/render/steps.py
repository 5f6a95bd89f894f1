"""Draws the steps of a reasoned answer (E6): subquestion, what was found, the passages, the gaps. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from orchestrator.cli.render.text import cited, plain
from shared.models import Answer
from shared.models.reasoning import Bridge, Step


def steps_title(answer: Answer) -> str:
    """What the steps are called."""
    return "Aspects" if answer.steps[0].kind == "aspect" else "Steps"


def draw_steps(answer: Answer) -> Table:
    """One row a step. Where the summary shows the sentences of the aspects already, only their numbers stand here."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    told = answer.summary.kind == "extractive"
    for step in answer.steps:
        lines = Text("\n").join(_lines(step, told=told and step.kind == "aspect"))
        grid.add_row(Text(f"{step.number}.", "bold cyan"), lines)
    return grid


def _lines(step: Step, *, told: bool) -> Iterator[Text]:
    yield _asked(step)
    for bridge in step.bridges:
        yield _bridge(bridge)
    if told:
        if step.passages:
            yield Text("".join(f"[{number}]" for number in step.passages), "bold cyan")
    elif step.text:
        yield cited(step.text)
    if step.found:
        yield _found(step)
    if step.gap:
        yield Text("gap: ", "yellow").append(plain(step.gap, "yellow"))


def _asked(step: Step) -> Text:
    shown = Text(f"{step.facet} ", "cyan") if step.kind == "aspect" else Text()
    shown.append(plain(step.question, "bold"))
    if step.after:
        shown.append(f" · after {', '.join(map(str, step.after))}", "dim")
    if step.planned and step.planned != step.question:
        shown.append(" · planned: ", "dim").append(plain(step.planned, "dim"))
    return shown


def _bridge(bridge: Bridge) -> Text:
    start = f"[{bridge.start}]" if bridge.start else "[?]"
    shown = Text(start, "bold cyan").append(" → ", "dim").append(plain(bridge.name))
    return shown.append(" → ", "dim").append(f"[{bridge.end}]", "bold cyan").append(f"  {bridge.how}", "dim")


def _found(step: Step) -> Text:
    """What goes on to the next steps: an answer, or names of which nobody knows which is right."""
    label = "names handed on: " if step.found_by == "names" else "found: "
    return Text(label, "green").append(plain("; ".join(step.found)))
