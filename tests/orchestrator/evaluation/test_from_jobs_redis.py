"""`ramify eval --from-jobs` on a real Redis: which jobs it takes, and the whole command with a thread as worker."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.client import Ramify
from orchestrator.evaluation.from_jobs import kept_jobs
from orchestrator.evaluation.pipeline import EVAL_KEY_PREFIX
from shared.errors import InputError
from shared.jobs import JobStore, State
from shared.jobs.keys import ACTIVE
from shared.models import Answer, MergedHit
from shared.models.route import PlannerName
from shared.settings import Settings
from tests.fakes.walked_jobs import WalkedJob, answer, route

PATHS = {None: ("n/1.md", "n/2.md"), "deep": ("n/1.md", "n/3.md")}


def hit(path: str) -> MergedHit:
    return MergedHit(chunk_id=path, doc_id=path, path=path, title=path, text="t", score=1.0)


def end(store: JobStore, job_id: str, **fields: object) -> str:
    """Walk a job to its answer, which has the documents of its strategy."""
    walked = WalkedJob(store, job_id).to("summarising")
    hits = tuple(hit(path) for path in PATHS.get(walked.job.request.strategy, ("n/9.md",)))
    made = answer(walked.job).model_copy(update={"results": hits, **fields})
    assert store.finish(walked.job, Answer.model_validate(made.model_dump()))
    return job_id


def asked(ramify: Ramify, store: JobStore, question: str, **options: object) -> str:
    return end(store, ramify.submit(question, **options))


def test_given_kept_jobs_when_taken_then_they_are_the_newest_that_can_be_asked_again(
    ramify: Ramify, store: JobStore
) -> None:
    first = asked(ramify, store, "first?", tenant="a")
    second = asked(ramify, store, "second?")
    asked(ramify, store, "third?")
    newest = asked(ramify, store, "third?", strategy="deep")
    asked(ramify, store, "mine", idempotency_key=f"{EVAL_KEY_PREFIX}1")
    asked(ramify, store, "symbol?", near_symbol="a.b")
    end(store, ramify.submit("half?"), partial=True)
    end(store, ramify.submit("list?"), route=route().model_copy(update={"planner": PlannerName.ENUMERATION}))
    end(store, ramify.submit("hi"), route=route().model_copy(update={"planner": PlannerName.NONE}))
    store.stop(WalkedJob(store, ramify.submit("fails?")).job, State.FAILED, "because")
    ramify.submit("open?")

    found = kept_jobs(store, 10)
    assert [question.id for question in found.questions] == [newest, second, first]
    assert found.left_out == {
        "queued": 1, "failed": 1, "nothing retrieved": 1, "a complete list": 1, "partial": 1, "about one symbol": 1,
        "asked by an evaluation": 1, "asked again by a newer job": 1,
    }  # fmt: skip
    assert found.answers[0].documents == PATHS["deep"]
    assert [question.id for question in kept_jobs(store, 2).questions] == [newest, second]
    assert [question.id for question in kept_jobs(store, 10, "a").questions] == [first]
    with pytest.raises(InputError, match="no kept job of tenant b can be asked again: ask a question first"):
        kept_jobs(store, 10, "b")


def test_given_no_jobs_when_run_then_one_sentence_says_so(
    ramify: Ramify, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAMIFY_REDIS__URL", settings.redis.url.get_secret_value())
    done = CliRunner().invoke(app, ["--data-dir", str(settings.data_dir), "eval", "--from-jobs", "3"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no kept job can be asked again: ask a question first" in " ".join(done.stderr.split())


@pytest.fixture
def worker(store: JobStore) -> Iterator[None]:
    """Answers every job that is queued, by its strategy."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            for raw in store.client.zrange(ACTIVE, 0, -1):
                job = store.job(raw.decode())
                if job is not None and job.state is State.QUEUED:
                    end(store, job.id)
            time.sleep(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    over.set()
    thread.join(timeout=30)


@pytest.mark.usefixtures("worker")
def test_given_kept_jobs_when_asked_again_then_agreement_times_and_differences_are_reported(
    ramify: Ramify, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAMIFY_REDIS__URL", settings.redis.url.get_secret_value())
    ids = [ramify.submit(question, tenant="a") for question in ("first?", "second?")]
    for job_id in ids:
        ramify.wait(job_id)
    page = tmp_path / "page.html"
    arguments = ["eval", "--from-jobs", "5", "-s", "adaptive", "-s", "deep", "--json", "--report", str(page)]
    for _ in range(2):
        done = CliRunner().invoke(app, ["--data-dir", str(settings.data_dir), *arguments])
        assert done.exit_code == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["questions"] == 2, "an evaluation's own jobs are not taken the next time"
    overlaps = {(one["a"], one["b"]): one["overlap"] for one in found["agreements"]}
    assert overlaps == {
        ("kept answer", "adaptive"): 1.0,
        ("kept answer", "deep"): 0.5,
        ("adaptive", "deep"): 0.5,
    }
    assert sorted(one["job_id"] for one in found["differences"]) == sorted(ids)
    assert found["differences"][0]["documents"]["deep"] == list(PATHS["deep"])
    assert found["left_out"] == {"asked by an evaluation": 4}
    assert ids[0] in page.read_text(encoding="utf-8")
    assert {job.tenant for job in ramify.jobs()} == {"a"}
