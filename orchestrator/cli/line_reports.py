"""The report of a batch as CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from orchestrator.text_lines import OWN_NAMES, csv_cell, csv_id, csv_writer, json_text
from shared.models.batch import LineReport

_COLUMNS = (
    "line", "id", "key", "kind", "job_id", "state", "outcome", "reasons", "verdicts", "stale", "leaves_total",
    "leaves_done", "leaves_failed", "waited_s", "ran_s", "llm_calls", "embed_calls", "rerank_calls", "tokens",
    "cost_estimated_least", "cost_estimated_most", "cost_spent", "question", "error", "meta",
)  # fmt: skip


def tokens(line: LineReport) -> int:
    """What the budget's tokens count: of the LLM, in and out, and of the embedding server."""
    return line.spent.llm_tokens_in + line.spent.llm_tokens_out + line.spent.embed_tokens


def report_csv(lines: Iterable[LineReport]) -> None:
    """One row a line, on stdout."""
    writer = csv_writer(sys.stdout)
    writer.writerow(_COLUMNS)
    for line in lines:
        least, most = line.cost_estimated or (None, None)
        cells = (
            dict(line)
            | dict(line.spent)
            | {
                "reasons": "; ".join(line.reasons),
                "verdicts": "; ".join(line.verdicts),
                "tokens": tokens(line),
                "cost_estimated_least": least,
                "cost_estimated_most": most,
                **{name: None if (own := getattr(line, name)) is None else csv_id(own) for name in OWN_NAMES},
                "meta": None if line.meta is None else json_text(line.meta),
            }
        )
        writer.writerow("" if cells[name] is None else _cell(name, cells[name]) for name in _COLUMNS)


def _cell(name: str, value: object) -> object:
    """Numbers as they are: a negative one is no formula."""
    return csv_cell(value) if isinstance(value, str) and name not in OWN_NAMES else value
