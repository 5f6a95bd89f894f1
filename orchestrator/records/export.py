"""An answer, or the answers of a batch, with their sources, as one file: Markdown, HTML, JSON, BibTeX or CSL. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from orchestrator.answer_text import Kind, TextBlock, TextSentence, blocks, groups
from orchestrator.out_formats import AnsweredLine, format_of, markdown_answer, markdown_text
from orchestrator.records.sources import AnswerSource, bibtex, csl, sources_of
from orchestrator.text_lines import json_text, one_line
from shared.hidden import visible
from shared.models import Answer
from shared.models.base import Model

#: Elements of HTML around blocks of a kind, and of each.
_TAGS: Mapping[Kind, tuple[str, str]] = {
    "heading": ("", "h3"), "item": ("ul", "li"), "numbered": ("ol", "li"), "paragraph": ("", "p"), "code": ("", "pre"),
    "row": ("table", "tr"),
}  # fmt: skip
#: Writes a batch, of its id and its lines.
BatchWriter = Callable[[str, Iterable[AnsweredLine]], Iterator[str]]


class ExportFormat(StrEnum):
    """What an export is written as."""

    MARKDOWN = "md"
    HTML = "html"
    JSON = "json"
    BIBTEX = "bibtex"
    CSL = "csl"


@dataclass(frozen=True)
class ExportKind:
    """The ending of a format's file, its media type, and its two writers: of one answer, and of a batch, streamed."""

    ending: str
    media_type: str
    answer: Callable[[Answer], str]
    batch: BatchWriter


class ExportedAnswer(Model):
    """An answer with the documents that it cites."""

    answer: Answer
    sources: tuple[AnswerSource, ...]


def _markdown_page(answer: Answer) -> str:
    parts = [f"# {markdown_text(one_line(answer.question))}", _facts(answer), *markdown_answer(answer)]
    parts += [f"> {markdown_text(one_line(warning))}" for warning in answer.warnings]
    return "\n\n".join(parts) + "\n"


def _facts(answer: Answer) -> str:
    said = [f"job {answer.job_id}", answer.coverage, *(["partial"] if answer.partial else []), *answer.degraded]
    return " · ".join(said)


def _markdown_batch(batch_id: str, lines: Iterable[AnsweredLine]) -> Iterator[str]:
    yield f"# Batch {batch_id}\n"
    record = format_of(Path("export.md")).record
    yield from (record(line) for line in lines)


def _html_page(answer: Answer) -> str:
    return "".join((_head(one_line(answer.question)), *_html_answer(answer, "", "h1"), _FOOT))


def _html_batch(batch_id: str, lines: Iterable[AnsweredLine]) -> Iterator[str]:
    yield _head(f"Batch {batch_id}")
    yield f"<h1>Batch {escape(batch_id)}</h1>\n"
    for line in lines:
        yield f'<article id="line-{line.line}">\n'
        if line.answer:
            yield from _html_answer(line.answer, f"{line.line}-", "h2", f"{line.line}. ")
        else:
            state = line.outcome or line.state or line.kind
            yield f"<h2>{line.line}. {_html(line.question)}</h2>\n"
            yield f"<p class=note>{_html(state)} {_html(line.error or '')}</p>\n"
        yield "</article>\n"
    yield _FOOT


@cache
def _style() -> str:
    return resources.files(__package__).joinpath("export.css").read_text("utf-8")


_FOOT = "</body></html>\n"


def _head(title: str) -> str:
    return (
        '<!DOCTYPE html>\n<html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_style()}</style></head><body>\n"
    )


def _html_answer(answer: Answer, prefix: str, heading: str, number: str = "") -> Iterator[str]:
    """`prefix`: of the names that citations lead to, where answers stand together."""
    yield f"<{heading}>{number}{_html(one_line(answer.question))}</{heading}>\n"
    yield f"<p class=facts>{_html(_facts(answer))}</p>\n"
    summary = answer.summary
    spans = summary.support.spans if summary.support else ()
    numbers = frozenset(citation.number for citation in summary.citations)
    yield from _html_blocks(blocks(summary.text, spans, numbers), prefix)
    if sources := sources_of(answer):
        yield "<h2>Sources</h2>\n<dl>\n"
        for source in sources:
            yield from _html_source(source, prefix)
        yield "</dl>\n"
    yield from (f"<p class=note>{_html(warning)}</p>\n" for warning in answer.warnings)


def _html_blocks(found: Iterable[TextBlock], prefix: str) -> Iterator[str]:
    """Lines of the text; items that follow each other are one list, rows one table."""
    for kind, group in groups(found):
        around, tag = _TAGS[kind]
        yield f"<{around}>\n" if around else ""
        for block in group:
            cells = "".join(f"<td>{_html_sentences(cell, prefix)}</td>" for cell in block.cells)
            value = f' value="{block.number}"' if block.number else ""
            yield f"<{tag}{value}>{cells or _html_sentences(block.sentences, prefix)}</{tag}>\n"
        yield f"</{around}>\n" if around else ""


def _html_sentences(found: Iterable[TextSentence], prefix: str) -> str:
    return "".join(
        _html(piece.text) if piece.number is None else f'<a href="#s{prefix}{piece.number}">[{piece.number}]</a>'
        for sentence in found
        for piece in sentence.pieces
    )


def _html_source(source: AnswerSource, prefix: str) -> Iterator[str]:
    where = ", ".join(filter(None, (source.path, source.date)))
    yield f"<dt><b>{_html(one_line(source.title))}</b> <small>{_html(one_line(where))}</small></dt>\n"
    for quote in source.quotes:
        place = f" <small>{_html(one_line(quote.place))}</small>" if quote.place else ""
        words = f"<blockquote>{_html(quote.quote)}</blockquote>" if quote.quote else ""
        yield f'<dd id="s{prefix}{quote.number}">[{quote.number}]{place}{words}</dd>\n'


def _html(text: str) -> str:
    return escape(visible(text))


def _json_answer(answer: Answer) -> str:
    return f"{json_text(ExportedAnswer(answer=answer, sources=sources_of(answer)), indent=1)}\n"


def _json_batch(batch_id: str, lines: Iterable[AnsweredLine]) -> Iterator[str]:
    yield f'{{"batch_id": {json_text(batch_id)}, "lines": [\n'
    for number, line in enumerate(lines):
        told = {**line.model_dump(mode="json"), "sources": sources_of(line.answer) if line.answer else ()}
        yield f"{',' * bool(number)}{json_text(told)}\n"
    yield "]}\n"


def _of_sources(
    write: Callable[[Iterable[AnswerSource]], str],
) -> Callable[[str, Iterable[AnsweredLine]], Iterator[str]]:
    """Of a batch each document once, in the order of the lines."""

    def batch(_: str, lines: Iterable[AnsweredLine]) -> Iterator[str]:
        found = dict[str, AnswerSource]()
        for line in lines:
            for source in sources_of(line.answer) if line.answer else ():
                found.setdefault(source.key, source)
        yield write(found.values())

    return batch


KINDS: Mapping[ExportFormat, ExportKind] = MappingProxyType(
    {
        ExportFormat.MARKDOWN: ExportKind(".md", "text/markdown", _markdown_page, _markdown_batch),
        ExportFormat.HTML: ExportKind(".html", "text/html", _html_page, _html_batch),
        ExportFormat.JSON: ExportKind(".json", "application/json", _json_answer, _json_batch),
        ExportFormat.BIBTEX: ExportKind(
            ".bib", "application/x-bibtex", lambda answer: bibtex(sources_of(answer)), _of_sources(bibtex)
        ),
        ExportFormat.CSL: ExportKind(
            ".csl.json",
            "application/vnd.citationstyles.csl+json",
            lambda answer: csl(sources_of(answer)),
            _of_sources(csl),
        ),
    }
)
