"""The three formats of `--out`, by the file's ending: JSON lines, CSV, Markdown. Pure: records to text and back.

A record ends with one line that names its line of the input and its job, so that a file that was cut off in the middle
of a record is read up to its last whole one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.text_lines import OWN_NAMES, csv_cell, csv_id, csv_line, json_text, one_line
from shared.errors import InputError
from shared.hidden import visible
from shared.models import Answer
from shared.models.batch import LineReport

_CSV_COLUMNS = (
    "line", "job_id", "id", "key", "kind", "state", "outcome", "reasons", "question", "answer", "sources", "coverage",
    "error", "meta", "verdicts", "stale", "waited_s", "ran_s", "leaves_done", "leaves_failed", "leaves_total",
    "llm_calls", "llm_tokens", "cost",
)  # fmt: skip
#: A heading of an answer would be one of the report.
_HEADING = re.compile(r"(?m)^#{1,6} +(.+)$")
_CITED = re.compile(r"\[(\d{1,9})\](?!\()")
_END = re.compile(rb"<!-- line (\d+) job (\S+) -->\n")
_NO_JOB = "-"


class AnsweredLine(LineReport):
    """One line of a batch's input, what became of it, and its answer, if there is one."""

    answer: Answer | None = None


@dataclass(frozen=True)
class OutFormat:
    """How a file of answers is written.

    `head` of a file that still grows; `read_end`: (line number, job id) of a line that ends a record, None for others;
    `sorted_head`, for a format that is put in order at the end, from the batch's id and its counts.
    """

    head: Callable[[str], str]
    record: Callable[[AnsweredLine], str]
    read_end: Callable[[bytes], tuple[int, str] | None]
    sorted_head: Callable[[str, str], str] | None = None


def format_of(path: Path) -> OutFormat:
    """By the ending. Raises: InputError for any other."""
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise InputError("--out", str(path), "its ending says the format: name it .jsonl, .csv or .md")
    return found


def _read_json(line: bytes) -> tuple[int, str] | None:
    try:
        found = json.loads(line)
        return int(found["line"]), found["job_id"] or ""
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _csv_head(_: str) -> str:
    return csv_line(_CSV_COLUMNS)


def _csv_record(found: AnsweredLine) -> str:
    answer = found.answer
    cells: dict[str, Any] = {
        "reasons": "; ".join(found.reasons),
        "answer": answer.summary.text if answer else "",
        "sources": "; ".join(_sources(answer)) if answer else "",
        "coverage": answer.coverage if answer else "",
        "meta": "" if found.meta is None else json_text(found.meta),
        "verdicts": "; ".join(found.verdicts),
        "llm_calls": found.spent.llm_calls,
        "llm_tokens": found.spent.llm_tokens_in + found.spent.llm_tokens_out,
        "cost": found.cost_spent,
    }
    values = ((name, cells[name] if name in cells else getattr(found, name)) for name in _CSV_COLUMNS)
    return csv_line(
        "" if value is None else csv_id(value) if name in OWN_NAMES else csv_cell(str(value)) for name, value in values
    )


def _read_csv(line: bytes) -> tuple[int, str] | None:
    number, _, rest = line.partition(b",")
    number = number.strip(b'"')
    if not number.isdigit():
        return None
    return int(number), rest.partition(b",")[0].strip(b'"').decode("utf-8", "replace")


def _markdown_head(batch_id: str) -> str:
    return f"# Batch {batch_id}\n\nIt is still being written.\n\n<!-- answers -->\n"


def _sorted_markdown_head(batch_id: str, counts: str) -> str:
    return f"# Batch {batch_id}\n\n{markdown_text(counts)}\n\n<!-- answers -->\n"


def _markdown_record(found: AnsweredLine) -> str:
    named = {"id": found.id, "key": found.key, "job": found.job_id}
    facts = [f"{name} `{_code(value)}`" for name, value in named.items() if value is not None]
    state = found.outcome or found.state or found.kind
    facts.append(f"**{state}**" + (f" ({', '.join(found.reasons)})" if found.reasons else ""))
    if found.kind not in {"enqueued", state}:
        facts.append(found.kind)
    parts = [f"\n## {found.line}. {markdown_text(one_line(found.question)) or found.kind}", " · ".join(facts)]
    if found.meta is not None:
        parts.append(f"meta `{_code(json_text(found.meta))}`")
    if found.answer:
        parts += markdown_answer(found.answer, f"{found.line}-")
    if found.error:
        parts.append(markdown_text(one_line(found.error)))
    end = f"<!-- line {found.line} job {found.job_id or _NO_JOB} -->\n"
    return "\n\n".join(part for part in parts if part) + f"\n\n{end}"


def markdown_answer(answer: Answer, prefix: str = "") -> Iterator[str]:
    """The text with a footnote for each source, with its quote; then what was removed, and why.

    `prefix`: of the names of footnotes, where answers stand together.
    """
    sources = {citation.number: citation for citation in answer.summary.citations}
    names = {number: f"[^{prefix}{number}]" for number in sources}
    text = markdown_text(visible(answer.summary.text).strip())
    yield _HEADING.sub(r"**\1**", _CITED.sub(lambda mark: names.get(int(mark[1]), mark[0]), text))
    for number, source in _numbered(answer):
        quote = one_line(sources[number].quote)
        yield f"{names[number]}: {markdown_text(source)}" + (f": “{markdown_text(quote)}”" if quote else "")
    for gone in answer.summary.support.removed if answer.summary.support else ():
        yield f"~~{markdown_text(one_line(gone.text))}~~ ({markdown_text(one_line(f'{gone.kind}: {gone.reason}'))})"


def _numbered(answer: Answer) -> Iterator[tuple[int, str]]:
    for citation in answer.summary.citations:
        where = ", ".join(filter(None, (one_line(citation.path), one_line(citation.place))))
        yield citation.number, " — ".join(filter(None, (one_line(citation.title), where)))


def _sources(answer: Answer) -> Iterator[str]:
    return (f"[{number}] {source}" for number, source in _numbered(answer))


def _read_markdown(line: bytes) -> tuple[int, str] | None:
    found = _END.fullmatch(line)
    if found is None:
        return None
    job_id = found[2].decode("utf-8", "replace")
    return int(found[1]), "" if job_id == _NO_JOB else job_id


def markdown_text(text: str) -> str:
    """`text` without HTML: no tag, and no comment that could end a record."""
    return visible(text).replace("<", "&lt;")


def _code(value: object) -> str:
    """Between backticks, where nothing is escaped."""
    return one_line(str(value)).replace("`", "'")


_FORMATS = {
    ".jsonl": OutFormat(lambda _: "", lambda found: f"{json_text(found)}\n", _read_json),
    ".csv": OutFormat(_csv_head, _csv_record, _read_csv),
    ".md": OutFormat(_markdown_head, _markdown_record, _read_markdown, _sorted_markdown_head),
}
