"""A question for a list, asked as a user asks it: the whole filter is read, through the real stack."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.client import Ramify
from shared.errors import RamifyError
from shared.models import Answer
from shared.models.enumeration import ListTable
from tests.acceptance.conftest import ingested
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Reply

pytestmark = pytest.mark.timeout(300)
MEMBERS = 60


@pytest.fixture(scope="module")
def corpus(ramify: Ramify, tmp_path_factory: pytest.TempPathFactory) -> Ramify:
    """The sample notes and a planted category in them."""
    folder = tmp_path_factory.mktemp("planted")
    for number in range(MEMBERS):
        head = f"title: Sighting {number}\ndate: 2026-03-{number % 28 + 1:02}\ntags: [zebra, 斑马]\nkind: sighting"
        said = f"Sighting {number}.\n\nOwner: keeper {number % 3}\n\nA quokka 短尾矮袋鼠 was seen."
        (folder / f"s{number}.md").write_text(f"---\n{head}\n---\n\n{said}\n", encoding="utf-8")
    (folder / "herd.py").write_text(
        "import time\n\ndef count_herd():\n    return 1\n\ndef report():\n    return count_herd()\n\n"
        "def later():\n    time.sleep(1)\n",
        encoding="utf-8",
    )
    return ingested(ramify, folder)


def asked(client: Ramify, question: str, **options: object) -> tuple[Answer, ListTable]:
    job_id = client.submit(question, **options)
    client.wait(job_id)
    answer = client.result(job_id)
    assert answer.table is not None, answer.warnings
    return answer, answer.table


@pytest.mark.parametrize(
    ("question", "understood"),
    [
        ("List all notes tagged zebra", "tag = zebra"),
        ("列出所有带斑马标签的笔记", "tag = 斑马"),
        ("List all sightings from March 2026", "kind = sighting, dated 2026-03-01 to 2026-03-31"),
        ("How many notes mention a quokka?", 'containing "quokka"'),
        ("列出所有提到短尾矮袋鼠的笔记", 'containing "短尾矮袋鼠"'),
    ],
)
def test_given_a_planted_category_when_asked_for_then_all_of_it_comes(
    corpus: Ramify, question: str, understood: str
) -> None:
    answer, table = asked(corpus, question)
    assert table.understood == understood
    assert (answer.state, answer.aggregator, answer.partial) == ("done", "enumeration", False)
    assert table.scanned == table.planned
    rows = list(corpus.rows(answer.job_id))
    assert sorted(row.title for row in rows) == sorted(f"Sighting {number}" for number in range(MEMBERS))
    assert table.matched == MEMBERS
    assert str(MEMBERS) in answer.summary.text


@pytest.mark.parametrize(
    ("question", "understood", "count"),
    [
        ("How many notes are owned by keeper 1?", "owner = keeper 1", 20),
        ("列出负责人不是keeper 1的所有sightings", "kind = sighting, not owner = keeper 1", 40),
        ("List all sightings without an owner", "kind = sighting, no owner", 0),
    ],
)
def test_given_fields_of_documents_when_a_list_names_them_then_they_are_filters(
    corpus: Ramify, question: str, understood: str, count: int
) -> None:
    answer, table = asked(corpus, question)
    assert (table.understood, table.matched, table.planned) == (understood, count, count)
    assert str(count) in answer.summary.text


def test_given_columns_when_written_as_csv_then_a_spreadsheet_has_them(corpus: Ramify) -> None:
    answer, _ = asked(corpus, "List all notes tagged zebra with their owner")
    runner = CliRunner(env={"RAMIFY_REDIS__URL": corpus.settings.redis.url.get_secret_value()})
    options = ["--data-dir", str(corpus.settings.data_dir), "result", answer.job_id]
    written = runner.invoke(app, [*options, "--csv"])
    assert written.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(written.stdout)))
    assert {row["owner"] for row in rows} == {"keeper 0", "keeper 1", "keeper 2"}
    lines = runner.invoke(app, [*options, "--rows"]).stdout.splitlines()
    assert [json.loads(line)["path"] for line in lines] == [row["path"] for row in rows]
    assert len(rows) == MEMBERS


def test_given_columns_that_no_line_names_when_listed_then_the_llm_reads_them_in_a_task_of_the_one_chord(
    with_models: Ramify, fake: FakeOpenAI, tmp_path: Path
) -> None:
    for name in ("Ada", "Bo"):
        said = f"---\ntitle: Sighting of {name}\ntags: [zebra]\n---\n\nThe herd was run by {name}.\n"
        (tmp_path / f"{name}.md").write_text(said, encoding="utf-8")
    ingested(with_models, tmp_path)
    rows = [f'<row id="{number}"><field column="1">{name}</field></row>' for number, name in ((1, "Ada"), (2, "Bo"))]
    reply = Reply(text=f"<rows>{''.join(rows)}</rows>")
    fake.handle("chat", lambda _: reply)
    answer, table = asked(with_models, "List all notes tagged zebra with their keeper")
    fake.handle("chat", lambda _: Reply())
    assert [(row.title, row.fields) for row in table.rows] == [
        ("Sighting of Ada", {"keeper": "Ada"}),
        ("Sighting of Bo", {"keeper": "Bo"}),
    ]
    assert (table.by, answer.partial, answer.coverage) == ("llm", False, "2 of 2 leaves answered")
    assert answer.cost.llm_calls == 1
    told = [event.data for event in with_models.stream(answer.job_id, 60) if event.type == "leaf"]
    assert [event["status"] for event in told if event["id"] == "0.1"] == ["searched", "done"]
    assert not [event for event in with_models.stream(answer.job_id, 60) if event.type == "redriven"]


def test_given_another_namespace_when_a_list_is_asked_for_then_nothing_of_this_one_is_in_it(corpus: Ramify) -> None:
    _, table = asked(corpus, "List all notes tagged zebra", filters={"namespace": "elsewhere"})
    assert (table.matched, table.planned) == (0, 0)


def test_given_a_question_that_is_no_list_when_its_rows_are_asked_for_then_that_is_said(corpus: Ramify) -> None:
    job_id = corpus.submit("What is a quokka?", decompose=False)
    corpus.wait(job_id)
    with pytest.raises(RamifyError, match="has no list"):
        list(corpus.rows(job_id))


def test_given_callers_when_asked_for_then_they_are_followed_where_the_corpus_has_the_definition_else_listed(
    corpus: Ramify,
) -> None:
    _, table = asked(corpus, "Which functions call time.sleep?")
    assert [row.title for row in table.rows] == ["later"]
    for question in ("Which functions call count_herd?", "哪些函数调用了 count_herd？"):
        job_id = corpus.submit(question)
        corpus.wait(job_id)
        answer = corpus.result(job_id)
        assert [hit.symbol.rpartition(".")[2] for hit in answer.results[:2] if hit.symbol] == ["count_herd", "report"]
        assert (answer.table, answer.route and answer.route.by) == (None, "corpus")
        assert [hit.chunk_id for hit in corpus.find(question).hits[:2]] == [hit.chunk_id for hit in answer.results[:2]]
