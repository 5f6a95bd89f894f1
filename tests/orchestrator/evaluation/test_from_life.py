"""What people say of answers, and the labelled set that is made of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from orchestrator.client import Ramify
from orchestrator.evaluation.dataset import load_dataset
from orchestrator.evaluation.from_life import export_as_eval
from shared.errors import InputError, NotFoundError, RamifyError
from shared.jobs.keys import judged_answers
from shared.models.judgement import Judged
from shared.settings import Settings
from tests.fakes.kept_answers import KeptAnswers

PUMP = "# Pump P-100\n\nThe pump P-100 delivers 40 litres a minute.\n"
OTHER = "# Pump P-200\n\nThe pump P-200 delivers 90 litres a minute.\n"
BOTH = "How many litres do the pumps P-100 and P-200 deliver?"


@pytest.fixture
def kept(client: redis.Redis, settings: Settings) -> Iterator[KeptAnswers]:
    found = KeptAnswers(client, settings)
    found.put(check=False, pump=PUMP, other=OTHER)
    yield found
    found.close()


@pytest.fixture
def ramify(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ramify]:
    monkeypatch.setattr("orchestrator.documents.corpus.Corpus.text", lambda *_: PUMP)
    with Ramify(settings) as client:
        yield client


def test_the_last_word_counts_of_the_answer_and_of_its_documents(kept: KeptAnswers, ramify: Ramify) -> None:
    job = kept.ask(BOTH)
    ramify.judge(job, "bad")
    found = ramify.judge(job, "good")
    assert (found.answer, found.documents) == (Judged.GOOD, {})
    first, second = (one.doc_id for one in ramify.result(job).summary.citations)
    assert ramify.judge(job, "bad", documents=["2"]).documents == {second: Judged.BAD}
    assert ramify.judge(job, "good", documents=["2", first]).documents == dict.fromkeys((first, second), Judged.GOOD)
    (listed,) = ramify.judgements()
    assert (listed.job_id, listed.answer) == (job, Judged.GOOD)
    assert 0 < kept.jobs.client.ttl(judged_answers("default")) <= kept.settings.jobs.ttl_s


def test_what_cannot_be_judged_is_refused(kept: KeptAnswers, ramify: Ramify) -> None:
    job = kept.ask("How much does the pump P-100 deliver?")
    with pytest.raises(InputError, match="good or bad"):
        ramify.judge(job, "fine")
    with pytest.raises(InputError, match="by its number"):
        ramify.judge(job, "good", documents=["9"])
    with pytest.raises(NotFoundError):
        ramify.judge("0" * 21, "good")
    with pytest.raises(RamifyError):
        ramify.judge(ramify.submit("why?"), "good")


def test_judged_answers_become_a_set_that_eval_reads(kept: KeptAnswers, ramify: Ramify, tmp_path: Path) -> None:
    good, bad, rescued = (kept.ask(f"{BOTH} ({n})") for n in range(3))
    ramify.judge(good, "good")
    ramify.judge(bad, "bad")
    ramify.judge(rescued, "bad")
    ramify.judge(rescued, "good", documents=["1"])
    made = export_as_eval(ramify, ramify.judgements(), tmp_path / "set")
    assert (made.questions, made.documents, sum(made.left_out.values())) == (2, 2, 1)
    dataset = load_dataset(tmp_path / "set")
    assert {one.id for one in dataset.questions} == {good, rescued}
    cited = [one.doc_id for one in ramify.result(rescued).summary.citations]
    assert dataset.qrels[rescued] == {cited[0]: 1, cited[1]: 0}
    assert dataset.qrels[good] == dict.fromkeys(cited, 1)
    with pytest.raises(InputError, match="there already"):
        export_as_eval(ramify, ramify.judgements(), tmp_path / "set")


def test_without_a_judged_answer_nothing_is_written(ramify: Ramify, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no judged answer"):
        export_as_eval(ramify, [], tmp_path / "set")
    assert list(tmp_path.iterdir()) == []
