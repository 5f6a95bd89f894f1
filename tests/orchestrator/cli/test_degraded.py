"""How the command line shows what was made without something, and what waits for a server."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console, RenderableType
from typer.testing import CliRunner

from orchestrator.cli import streams
from orchestrator.cli.follow import sentence
from orchestrator.cli.main import app
from orchestrator.cli.render.answer import draw_answer
from orchestrator.cli.render.batches import draw_batch
from orchestrator.cli.render.tables import draw_job
from orchestrator.diagnosis.wording import degraded_parts, waiting_for
from orchestrator.intake import as_request
from shared.models import BatchStatus, JobEvent, JobStatus
from shared.models.status import Postponement
from shared.providers.gates.gate import time_of_day
from tests.fakes.ramify_client import CREATED, FakeRamify, answer

AT = {
    "plan.job": ("llm_unavailable",),
    "0.1": ("embedding_unavailable", "llm_unavailable"),
    "0.2": ("llm_unavailable",),
}
CODES = ("embedding_unavailable", "llm_unavailable")
SAID = "embedding_unavailable (leaf 0.1), llm_unavailable (planned by rules, leaves 0.1, 0.2)"


def shown(drawn: RenderableType) -> str:
    console = Console(width=200, record=True, file=StringIO())
    console.print(drawn)
    return console.export_text()


def status(**fields: object) -> JobStatus:
    given = {
        "job_id": "j1", "state": "done", "question": "why?", "lane": "batch", "tenant": "default",
        "created_at": CREATED, "updated_at": CREATED, "deadline_s": 60.0,
    }  # fmt: skip
    return JobStatus.model_validate({**given, **fields})


def test_reasons_are_said_with_the_parts_that_they_are_about() -> None:
    assert degraded_parts(CODES, AT) == SAID
    many = {f"0.{number}": ("out_of_time",) for number in range(5)}
    assert degraded_parts(("out_of_time",), many) == "out_of_time (leaves 0.0, 0.1, 0.2 and 2 more)"
    summary = {"merge.summarise": ("llm_unavailable", "plugin_failed")}
    assert degraded_parts(("llm_unavailable", "plugin_failed"), summary) == (
        "llm_unavailable (summary from extracts), plugin_failed (summary)"
    )
    assert degraded_parts(("of_a_newer_release",), {}) == "of_a_newer_release"


def test_an_answer_and_a_job_show_their_reasons_and_a_whole_one_shows_none() -> None:
    whole = answer("j1", "why?")
    assert "egraded" not in shown(draw_answer(whole))
    assert SAID in shown(draw_answer(whole.model_copy(update={"degraded": CODES, "degraded_at": AT})))
    assert SAID in shown(draw_job(status(degraded=CODES, degraded_at=AT), CREATED))


def test_a_job_that_waits_for_a_server_shows_until_when() -> None:
    wait = Postponement(until=CREATED, goes_on_at=CREATED + 60, provider="llm", why="LLM server at h answered 500")
    text = shown(draw_job(status(state="planning", postponed={"plan.job": wait}), CREATED - 1))
    times = f"tried again at {time_of_day(CREATED)}, goes on without it at {time_of_day(CREATED + 60)}"
    assert f"plan.job: LLM server at h answered 500; {times}" in text


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, streams.DONE),
        ({"degraded": CODES}, streams.PARTIAL),
        ({"degraded": CODES, "state": "searching"}, streams.DONE),
        ({"degraded": CODES, "state": "failed"}, streams.FAILED),
        ({"partial": True}, streams.PARTIAL),
    ],
)
def test_the_exit_code_of_a_degraded_answer_is_the_partial_one(fields: dict[str, object], code: int) -> None:
    assert streams.job_exit_code(status(**fields)) == code


def test_events_of_waits_and_fallbacks_are_lines_where_there_is_no_terminal() -> None:
    wait = JobEvent(id="1-0", type="postponed", data={"item": "plan.job", "why": "LLM server at h answered 500"})
    assert sentence(wait) == "plan.job waits: LLM server at h answered 500"
    fell = JobEvent(id="2-0", type="degraded", data={"item": "0.1", "reason": "llm_unavailable"})
    assert sentence(fell) == "0.1 goes on without: llm_unavailable"


def test_a_wait_whose_time_has_come_is_said_to_hang_on_the_servers_gate() -> None:
    wait = Postponement(until=CREATED, goes_on_at=CREATED + 60, provider="llm", why="LLM server at h answered 500.")
    said = f"when its breaker, pause or rate limit lets it, goes on without it at {time_of_day(CREATED + 60)}"
    assert waiting_for(wait, CREATED + 1) == f"LLM server at h answered 500; tried again {said}"


def test_a_batch_whose_jobs_wait_for_a_server_shows_how_many_and_which() -> None:
    wait = Postponement(until=4e9, goes_on_at=4e9 + 60, provider="llm", why="LLM server at h answered 500")
    batch = BatchStatus(batch_id="b1", lines=9, enqueued=9, open=9, postponed=3, waits_for=wait, created_at=CREATED)
    assert "3 for a server: LLM server at h answered 500; tried again at " in shown(draw_batch(batch))
    assert "for a server" not in shown(draw_batch(batch.model_copy(update={"postponed": 0, "waits_for": None})))


def test_what_is_done_while_a_server_fails_is_an_option_and_a_field_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeRamify()
    monkeypatch.setattr("orchestrator.client.Ramify", client.opened)
    assert CliRunner().invoke(app, ["ask", "why?", "--on-outage", "wait"]).exit_code == 0
    assert [request.on_outage for request in client.requests.values()] == ["wait"]
    refused = CliRunner().invoke(app, ["ask", "why?", "--on-outage", "maybe"])
    assert (refused.exit_code, "on_outage: 'maybe' cannot be used" in refused.stderr) == (2, True)
    assert as_request({"question": "why?", "on_outage": "degrade"}, {"on_outage": "wait"}).on_outage == "degrade"
