"""Errors name commands; other faces word them as requests or tools, by the registry."""

from __future__ import annotations

import pytest

from orchestrator.operations.wording import for_models, for_page, on_page, over_http
from shared.errors import NoAnswerError, RamifyError


@pytest.mark.parametrize(
    ("text", "request_", "tool"),
    [
        ("wait: `ramify status a1 --watch`", "wait: `GET /v1/jobs/a1`", "wait: the tool `status` (a1)"),
        (
            "`ramify result a1 --partial` shows it",
            "`GET /v1/jobs/a1/result?partial=true` shows it",
            "the tool `result` (a1, partial=true) shows it",
        ),
        ("it is gone; `ramify jobs` lists them", "it is gone; `GET /v1/jobs` lists them", "it is gone"),
        (
            "`ramify retry b1 --degraded` repairs it",
            '`POST /v1/jobs/b1/retry {"degraded": true}` repairs it',
            "`ramify retry b1 --degraded` repairs it",
        ),
        ("batch b1 is open: `ramify status b1`", "batch b1 is open: `GET /v1/batches/b1`", None),
        ("`ramify webhooks enable we_1` does", "`POST /v1/webhooks/we_1/enable` does", None),
        ("start it with `ramify up -d`", "start it with `ramify up -d`", "start it with `ramify up -d`"),
    ],
)
def test_a_command_is_worded_as_its_face_has_it(text: str, request_: str, tool: str | None) -> None:
    error = RamifyError(text)
    assert over_http(error, text) == request_
    assert tool is None or for_models(error, text) == tool


def test_an_ingest_has_a_report_and_no_answer() -> None:
    error = NoAnswerError("`ramify result a1` tells", terminal=True, of_ingest=True)
    assert over_http(error, str(error)) == "`GET /v1/ingests/a1` tells"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("job id 'x': there is no such job, or it has expired; `ramify jobs` lists them", "it has expired"),
        (
            "job a is queued: wait for it with `ramify status a --watch`; `ramify result a --partial` shows 1",
            "is queued",
        ),
        ("its time was up: `ramify retry ID --deadline SECONDS` gives more", "its time was up"),
        ("start it with `ramify up -d`", "start it with `ramify up -d`"),
    ],
)
def test_the_page_names_no_command_for_what_it_has(text: str, shown: str) -> None:
    assert for_page(text).endswith(shown)
    assert on_page("ramify result a")
    assert not on_page("kill -CONT 7")
