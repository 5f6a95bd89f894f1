"""Draws a checked text: each sentence with its verdict, and the passage behind it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType, group
from rich.text import Text

from orchestrator.checking import CheckedSentence, LineVerdict, TextCheck
from orchestrator.cli.render.eval_page import page
from orchestrator.cli.text import columns, counted, plain
from orchestrator.text_lines import one_line
from shared.hidden import visible

_STYLES = {
    "supported": "green",
    "contradicted": "red",
    "unsupported": "yellow",
    "no claim": "dim",
    "disputed": "yellow",
}

_INDENT = " " * 14


@group()
def draw_checked(found: TextCheck) -> Iterator[RenderableType]:
    """The counts, then sentence by sentence."""
    yield plain(_counts(found), "bold")
    for sentence in found.sentences:
        line = Text(f"{_label(sentence):>12}  ", _STYLES[_label(sentence)])
        yield line.append(one_line(sentence.text))
        if sentence.verdict in {"contradicted", "unsupported"}:
            yield Text(_INDENT).append(f"{sentence.kind}: {one_line(sentence.reason)}", "dim")
        for path in _paths(sentence):
            yield Text(_INDENT).append(path, "cyan")


def verdict_line(found: LineVerdict) -> Text:
    """One line of a file of claims."""
    verdict = found.verdict.value if found.verdict else ""
    name = str(found.id) if found.id is not None else f"line {found.line}"
    why = f"{found.kind}: {found.reason}" if found.reason else found.kind
    return Text(f"{verdict:>12}  ", _STYLES[verdict]).append(f"{one_line(name)}  ").append(one_line(why), "dim")


def checked_page(text: str, found: TextCheck) -> str:
    """The text with its sentences marked, and a table of what was found, as one HTML page that runs no script."""
    marked, place = Text(), 0
    for sentence in found.sentences:
        marked.append(plain(text[place : sentence.start]))
        marked.append(plain(text[sentence.start : sentence.end], f"{_STYLES[_label(sentence)]} underline"))
        place = sentence.end
    marked.append(plain(text[place:]))
    table = columns("verdict", "sentence", "check", "passage")
    for sentence in found.sentences:
        table.add_row(
            Text(_label(sentence), _STYLES[_label(sentence)]),
            plain(one_line(sentence.text)),
            plain(one_line(f"{sentence.kind} {sentence.reason}")),
            plain("; ".join(_paths(sentence))),
        )
    return page(_counts(found), {"Text": marked, "Sentences": table}, ())


def checked_markdown(text: str, found: TextCheck) -> str:
    """The text with its sentences marked: what is not supported is struck out, its reason and passages behind it."""
    parts, place = [f"# {_counts(found)}\n\n"], 0
    for sentence in found.sentences:
        body, why = _markdown(text[sentence.start : sentence.end]), "; ".join(_paths(sentence))
        parts.append(_markdown(text[place : sentence.start]))
        if sentence.verdict in {"contradicted", "unsupported"}:
            reason = one_line(f"{sentence.verdict}: {sentence.kind} {sentence.reason}")
            parts.append(f"~~{body}~~ *({_markdown('; '.join(filter(None, (reason, why))))})*")
        else:
            parts.append(f"{body} *({_markdown(why)})*" if why else body)
        place = sentence.end
    return "".join((*parts, _markdown(text[place:])))


def _markdown(text: str) -> str:
    """`text` without tags."""
    return visible(text).replace("<", "&lt;")


def _paths(sentence: CheckedSentence) -> list[str]:
    """The passages that support a sentence, then those that contradict it; both are named where it is disputed."""
    supporting = [one_line(one.path) for one in sentence.supporting]
    against = [one_line(one.path) for one in sentence.contradicting]
    return [*dict.fromkeys(supporting), *(f"contradicted by {path}" for path in dict.fromkeys(against))]


def _label(sentence: CheckedSentence) -> str:
    return "disputed" if sentence.disputed else sentence.verdict


def _counts(found: TextCheck) -> str:
    disputed = f" ({found.disputed} disputed)" if found.disputed else ""
    parts = [f"{found.supported} supported{disputed}", f"{found.contradicted} contradicted"]
    parts.append(f"{found.unsupported} unsupported")
    if found.not_read:
        parts.append(f"{counted(found.not_read, 'heading or block of code')} not read")
    return " · ".join(parts)
