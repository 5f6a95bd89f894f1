"""`why` and `retry` on the command line: the answer first, nothing that a terminal obeys, exit codes."""

from __future__ import annotations

import json

import pytest
from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.diagnosis.wording import duration, nth, worker_name
from orchestrator.retries.retry import Retried
from orchestrator.retries.taken_over import TakenOver
from shared.errors import InputError
from shared.models import Cost
from shared.models.status import BatchWhy, CommonError, Death, Failure, PendingWork, Redriven, Slowest, Turn, Why
from tests.fakes.ramify_client import FakeRamify

EVIL = "why \x1b[31mred\x1b[0m \u202eback?"
WORKER = "search@host:12:abcdef01-5:1"


def why(**fields: object) -> Why:
    values = {
        "job_id": "j1", "question": EVIL, "state": "searching", "lane": "batch", "tenant": "acme",
        "said": "It is searching: 1 of 3 leaves have ended.", "next": "ramify status j1 --watch", "redriven": 2,
        "work": (
            PendingWork(
                item="0.1", task="search.leaf", queue="search", what=EVIL, stands="working", said="", worker=WORKER,
                  lives=True, since_s=12.0, tries=2),
            PendingWork(item="0.2", task="search.leaf", queue="search", stands="waits", said="", needs=("0.1",)),
        ),
        "redrives": (Redriven(at=1.0, items=("0.1",), why="its worker died"),),
        "deaths": (Death(item="0.1", worker=WORKER, task="search.leaf", at=1.0),),
        "failed": (Failure(item="0.3", what=EVIL, error="no \x1b]0;store"),), "last_error": "no store",
        "providers": ("the LLM server at h wants no request until 12:00:00 UTC",), "deadline_left_s": 30.0,
        "faults": ("its line cannot be read (WRONGTYPE)",), "dead_letters": ("j1:0.1",), "retry_of": "j0",
    }  # fmt: skip
    return Why.model_validate({**values, **fields})


class Client(FakeRamify):
    """Answers with what the test gives it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Why | BatchWhy = why()
        self.made: Retried | InputError = Retried(job_id="j2", retry_of="j1")
        self.asked: list[tuple[object, ...]] = []

    def why(self, _: str) -> Why | BatchWhy:
        return self.found

    def retry(
        self,
        id_: str,
        *,
        degraded: bool = False,
        deadline_s: float | None = None,
        queue_limit_s: float | None = None,
        on_outage: str | None = None,
    ) -> Retried:
        self.asked.append((id_, self.tenant, degraded, deadline_s, queue_limit_s, on_outage))
        if isinstance(self.made, InputError):
            raise self.made
        return self.made


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    fake = Client()
    monkeypatch.setattr("orchestrator.client.Ramify", fake.opened)
    return fake


def ramify(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "160"})


def test_given_a_job_when_asked_why_then_the_answer_stands_first_and_the_command_last(client: Client) -> None:
    done = ramify("why", "j1")
    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert lines[0] == client.found.said
    assert lines[-1] == "→ ramify status j1 --watch"
    for part in ("search@host pid 12", "12.0 s", "2 times, the last: 0.1 (its worker died)", "LLM server at h", "j0",
                 "in 30.0 s", "its line cannot be read", "j1:0.1"):  # fmt: skip
        assert part in done.stdout, part


def test_given_text_of_strangers_when_asked_why_then_the_terminal_obeys_none_of_it(client: Client) -> None:
    assert not {"\x1b", "\u202e"} & set(ramify("why", "j1").stdout)
    raw = ramify("why", "j1", "--json").stdout
    assert "\x1b" not in raw
    assert json.loads(raw)["question"] == client.found.question  # type: ignore[union-attr]


def test_given_a_job_in_line_when_asked_why_then_its_place_is_drawn(client: Client) -> None:
    turn = Turn(lane="batch", ahead=7, tenants=2, waiting=90, under_way=64, own=32, window=64, eta_s=75)
    client.found = why(turn=turn, work=(), state="queued")
    assert "7 before it, 2 tenants, 90 wait in the lane, 64 of 64 under way (32 of its tenant), about" in (
        ramify("why", "j1").stdout
    )


def test_given_a_batch_when_asked_why_then_counts_slowest_and_commonest_error_are_drawn(client: Client) -> None:
    client.found = BatchWhy(
        batch_id="b1", said="90 jobs wait.", next="ramify status b1 --watch", enqueued=100, waiting=90, under_way=4,
        finished=6, outcomes={"done": 6, "open": 94}, slowest=Slowest(job_id="j9", state="searching", for_s=61),
        error=CommonError(error="no \x1bstore", count=3, looked_at=5),
    )  # fmt: skip
    said = ramify("why", "b1").stdout
    for part in ("90 wait, 4 under way, 6 of 100 ended", "j9, searching since 1 min", "no store"):
        assert part in said.replace("61.0 s", "1 min"), part


def test_given_a_batch_too_slow_for_its_limit_when_asked_why_then_the_expiring_are_counted(client: Client) -> None:
    client.found = BatchWhy(
        batch_id="b1", said="90 jobs wait.", next="ramify status b1", enqueued=100, waiting=90, under_way=4,
        finished=6, outcomes={"done": 6, "open": 94}, expiring=70,
    )  # fmt: skip
    assert "90 wait (70 of them for too long), 4 under way" in ramify("why", "b1").stdout


def test_given_a_pace_that_will_not_do_when_retried_then_a_warning_says_so(client: Client) -> None:
    client.warnings |= {"j2": "its turn comes too late", "settings": "the pools differ"}
    done = ramify("retry", "j1")
    assert (done.exit_code, done.stdout) == (0, "j2\n")
    assert done.stderr.splitlines()[:2] == ["warning: the pools differ", "warning: its turn comes too late"]


def test_given_an_ended_job_when_retried_then_the_new_id_is_all_of_stdout(client: Client) -> None:
    done = ramify("retry", "j1", "--tenant", "acme")
    assert (done.exit_code, done.stdout) == (0, "j2\n")
    assert "ramify status j2 --watch" in done.stderr
    assert client.asked == [("j1", "acme", False, None, None, None)]
    ramify("retry", "j1", "--deadline", "90", "--queue-limit", "600", "--on-outage", "degrade")
    assert client.asked[-1] == ("j1", None, False, 90, 600, "degrade")
    assert json.loads(ramify("retry", "j1", "--json").stdout)["job_id"] == "j2"
    over = TakenOver(leaves=6, leaves_total=8, saved=Cost(llm_calls=3, llm_tokens_in=40))
    client.made = Retried(
        batch_id="b2", retry_of="b1", jobs=4, taken_over=over, saved_cost=0.25, currency="EUR", degraded=2
    )
    said = ramify("retry", "b1").stderr
    assert "batch of 4 jobs" in said
    assert "6 of 8 leaves taken over, which saves 3 calls, 40 tokens, 0.25 EUR" in said
    assert "2 complete answers are degraded: `ramify retry --degraded b1` repairs them" in said
    assert json.loads(ramify("retry", "b1", "--json").stdout)["taken_over"]["saved"]["llm_calls"] == 3
    ramify("retry", "j1", "--degraded")
    assert client.asked[-1] == ("j1", None, True, None, None, None)


@pytest.mark.parametrize(("end", "code"), [("done", 0), ("partial", 3), ("failed", 1)])
def test_given_wait_when_retried_then_the_exit_code_says_how_it_ended(client: Client, end: str, code: int) -> None:
    client.ends = lambda _: end
    client.made = Retried(job_id=client.submit("why?"), retry_of="j1")
    assert ramify("retry", "j1", "--wait").exit_code == code


def test_given_what_cannot_be_tried_again_then_one_sentence_and_exit_code_two(client: Client) -> None:
    client.made = InputError("job id", "j1", "it is still searching: wait for its end")
    done = ramify("retry", "j1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "error: job id: 'j1' cannot be used: it is still searching: wait for its end\n"


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.44, "0.4 s"), (12, "12 s"), (200, "3 min"), (7500, "2 h 05 min"), (300_000, "3 d")]
)
def test_durations_are_for_people(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_ordinals_and_workers_are_for_people() -> None:
    assert [nth(n) for n in (1, 2, 3, 4, 11, 12, 21, 112)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "112th",
    ]  # fmt: skip
    assert worker_name(WORKER) == "search@host pid 12"
    assert worker_name("@h:1:m:2") == "a worker@h pid 1"
    assert worker_name("by hand") == "by hand"
