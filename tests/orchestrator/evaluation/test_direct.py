"""The search process: what is said to it, what is kept of it, and each way that it can go wrong. It is a stand-in."""

import fcntl
import sys
from pathlib import Path

import pytest

from orchestrator.evaluation import direct as module
from orchestrator.evaluation.dataset import load_dataset
from orchestrator.evaluation.direct import direct
from orchestrator.evaluation.eval_folder import eval_dir, index_folder, index_key
from orchestrator.evaluation.runner import ArmQuestion
from shared.errors import RamifyError
from shared.settings import load_settings
from tests.fakes.labelled import DOCUMENTS, write_set

STAND_IN = Path(__file__).parents[2] / "fakes" / "direct_search.py"


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "COMMAND", (sys.executable, str(STAND_IN)))
    return load_settings(data_dir=tmp_path / "data")


@pytest.fixture
def corpus(tmp_path):
    return load_dataset(write_set(tmp_path / "set", packed=True)).corpus


def asked(*texts, strategy="default", **fields):
    return [ArmQuestion(question_id=f"q{n}", text=text, strategy=strategy, **fields) for n, text in enumerate(texts, 1)]


def found(corpus, settings, questions, **options):
    with direct(corpus, settings, lambda *_: None, **options) as runner:
        return list(runner.answers(questions))


def test_given_questions_when_asked_then_documents_come_once_each_with_cost_and_warnings(corpus, settings):
    one, other = found(corpus, settings, asked("redis streams order", "queues", limit=3))
    assert one.documents == ("d1", "d3")
    assert one.relevance == {"d1": 0.3, "d3": 0.1}
    assert (one.ms, one.cost.rerank_documents, one.warnings) == (2.5, 50, ("Keyword search only.",))
    assert (other.question_id, other.documents, other.error) == ("q2", ("d2",), None)


def test_given_a_plan_when_asked_then_its_subquestions_are_searched(corpus, settings):
    (one,) = found(corpus, settings, asked("queues", subqueries=("fresh water lake",)))
    assert set(one.documents) == {"d2", "d3"}


def test_given_an_index_when_opened_again_then_it_is_kept_unless_it_is_to_be_built_anew(corpus, settings):
    seen = []
    for rebuild in (False, False, True):
        with direct(corpus, settings, lambda done, total: seen.append((done, total)), rebuild=rebuild) as runner:
            seen.append(runner.opened.built)
    assert seen == [(1, 4), True, False, (1, 4), True]


def test_given_a_build_that_was_interrupted_when_opened_then_it_is_built_anew(corpus, settings):
    (eval_dir(settings) / index_key(corpus, settings)).mkdir()
    with direct(corpus, settings, lambda *_: None) as runner:
        assert runner.opened.built


def test_given_other_settings_when_keyed_then_only_those_that_shape_the_index_count(corpus, settings, tmp_path):
    key = index_key(corpus, settings)
    model = {"provider": "fastembed", "model": "m"}
    other = load_settings(embedding=model)
    assert len({key, index_key(corpus, other), index_key(corpus, load_settings(chunking={"target_chars": 900}))}) == 3
    assert index_key(corpus, load_settings(search={"strategy": "hybrid"}, rerank={"provider": "none"})) == key
    assert index_key(corpus, load_settings(embedding={**model, "timeout_s": 9})) == index_key(corpus, other)
    rows = [{"id": "d9", "text": "another"}, *({"id": name, "text": text} for name, _, text in DOCUMENTS)]
    changed = load_dataset(write_set(tmp_path / "changed", documents=rows)).corpus
    assert index_key(changed, settings) != key


def test_given_another_evaluation_of_the_corpus_when_opened_then_it_says_so(corpus, settings):
    with index_folder(corpus, settings), pytest.raises(RamifyError, match="another evaluation uses the index"):
        found(corpus, settings, asked("queues"))
    with (eval_dir(settings) / f"{index_key(corpus, settings)}.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it was given back


def test_given_a_question_that_fails_when_asked_then_the_others_are_answered(corpus, settings):
    failed, fine = found(corpus, settings, asked("FAIL now", "queues"))
    assert (failed.error, failed.documents) == ("no such stage", ())
    assert fine.documents == ("d2",)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("DIE now", r"ended with code 7: the store is on fire \(its log is .*direct\.log\)"),
        ("GARBAGE now", "answered 'loading ...', which is no JSON object"),
        ("ODD now", r"in a form that is not known here \(documents: "),
    ],
)
def test_given_a_process_that_breaks_when_asked_then_one_sentence_says_how(corpus, settings, question, said):
    with pytest.raises(RamifyError, match=said):
        found(corpus, settings, asked(question))


def test_given_a_process_that_hangs_when_asked_then_it_is_stopped(corpus, tmp_path, settings):
    hasty = settings.model_copy(update={"jobs": settings.jobs.model_copy(update={"deadline_s": 0.2})})
    with pytest.raises(RamifyError, match="has been silent for 0 s and was stopped"):
        with_short_end(found, corpus, hasty, asked("HANG now"))


def with_short_end(call, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestrator.evaluation.direct._END_S", 0.2)
        return call(*arguments)


def test_given_a_corpus_that_is_refused_when_opened_then_the_reason_and_the_exit_code_are_passed_on(tmp_path, settings):
    rows = [{"id": "d1", "text": "REFUSE this"}]
    folder = write_set(tmp_path / "bad", documents=rows, qrels=[("q1", "d1", 1)])
    with pytest.raises(RamifyError, match="the corpus cannot be indexed: the model is gone") as caught:
        found(load_dataset(folder).corpus, settings, asked("x"))
    assert caught.value.exit_code == 2


def test_given_no_program_when_opened_then_it_says_how_it_ended(corpus, settings, monkeypatch):
    monkeypatch.setattr(module, "COMMAND", (sys.executable, "-m", "no_such_program"))
    with pytest.raises(RamifyError, match=r"ended with code 1: .*No module named no_such_program"):
        found(corpus, settings, asked("x"))
