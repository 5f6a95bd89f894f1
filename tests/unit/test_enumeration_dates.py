"""The span of time that a question names, in both languages; what only looks like one is none."""

from __future__ import annotations

from datetime import date

import pytest

from orchestrator.enumeration.dates import several, spans

TODAY = date(2026, 11, 20)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("all decisions from 2025", "2025-01-01", "2025-12-31"),
        ("incidents in march 2026", "2026-03-01", "2026-03-31"),
        ("notes since 2025-03", "2025-03-01", None),
        ("before may 2025", None, "2025-04-30"),
        ("after 18 may 2026", "2026-05-19", None),
        ("until 2025", None, "2025-12-31"),
        ("between 2024-01-01 and 2024-03-31", "2024-01-01", "2024-03-31"),
        ("from may 2025 to july 2025", "2025-05-01", "2025-07-31"),
        ("in 2024 and 2025", "2024-01-01", "2025-12-31"),
        ("q3 2025", "2025-07-01", "2025-09-30"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("the last 30 days", "2026-10-21", "2026-11-20"),
        ("february 2024", "2024-02-01", "2024-02-29"),
        ("2025年的决定", "2025-01-01", "2025-12-31"),
        ("2026年3月有哪些事故", "2026-03-01", "2026-03-31"),
        ("2026年3月8日", "2026-03-08", "2026-03-08"),
        ("2025年下半年", "2025-07-01", "2025-12-31"),
        ("2025年第三季度", "2025-07-01", "2025-09-30"),
        ("去年的笔记", "2025-01-01", "2025-12-31"),
        ("上个月", "2026-10-01", "2026-10-31"),
        ("2025年以来", "2025-01-01", None),
        ("2025年以前", None, "2024-12-31"),
        ("从2025年1月到2025年3月", "2025-01-01", "2025-03-31"),
    ],
)
def test_given_a_span_when_read_then_its_first_and_last_day_come(
    text: str, first: str | None, last: str | None
) -> None:
    span = spans(text, TODAY)
    assert span is not None
    days = (span.first and span.first.isoformat(), span.last and span.last.isoformat())
    assert days == (first, last)


@pytest.mark.parametrize("text", ["windows 2000", "adr-2025-03.md", "2026-13-01", "may i see", "8月的"])
def test_given_what_is_no_span_when_read_then_there_is_none(text: str) -> None:
    assert spans(text, TODAY) is None


def test_given_spans_that_do_not_join_when_read_then_that_is_told() -> None:
    assert several("in 2023 and 2025", TODAY)
    assert not several("in 2024 and 2025", TODAY)
    assert not several("no time at all", TODAY)
