"""The file of `--out`: whole records only, each line once, in three formats; what a kill has cut off goes on."""

import csv
import json
from pathlib import Path

import pytest

from orchestrator.cli.line_reports import report_csv
from orchestrator.cli.out_file import OutFile
from orchestrator.out_formats import AnsweredLine
from shared.errors import InputError
from tests.fakes.ramify_client import answer

ENDINGS = ("jsonl", "csv", "md")
COUNTS = "lines 4 = enqueued 2 + known 1 + rejected 1"


def answered(line: int, **fields) -> AnsweredLine:
    question = fields.pop("question", f"What is {line}?")
    values = {"kind": "enqueued", "state": "done", "outcome": "done", "job_id": f"job{line}", "question": question}
    if fields.get("state", "done") == "done":
        values["answer"] = answer(f"job{line}", question)
    return AnsweredLine(line=line, **{**values, **fields})


LINES = (
    answered(3, id="q-3", key="k", meta={"topic": "流", "n": [1]}, outcome="degraded", reasons=("llm_unavailable",)),
    answered(1, question="三是什么？\n<!-- line 9 job x -->"),
    answered(2, state="failed", outcome="failed", error="none of the 2 leaves answered", kind="known"),
    answered(4, state=None, outcome=None, job_id=None, kind="rejected", question="", error="line: no JSON"),
)


def write(path: str, *lines: AnsweredLine, resume: bool = True) -> dict[int, str]:
    with OutFile(Path(path)) as out:
        out.begin("b1", resume=resume)
        before = {line: out.job_of(line) for line in range(10) if line in out}
        for line in lines:
            out.add(line)
    return before


def test_given_jsonl_when_lines_are_added_then_each_is_one_object_in_the_order_of_their_ends():
    write("out.jsonl", *LINES)
    rows = [json.loads(line) for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["line"] for row in rows] == [3, 1, 2, 4]
    assert (rows[0]["id"], rows[0]["key"], rows[0]["meta"]) == ("q-3", "k", {"topic": "流", "n": [1]})
    assert (rows[0]["outcome"], rows[0]["reasons"]) == ("degraded", ["llm_unavailable"])
    assert rows[0]["answer"]["summary"]["text"] == "Streams keep order. [1]"
    assert (rows[2]["answer"], rows[2]["error"], rows[2]["kind"]) == (None, "none of the 2 leaves answered", "known")
    assert (rows[3]["job_id"], rows[3]["state"], rows[3]["kind"]) == (None, None, "rejected")


def test_given_csv_when_lines_are_added_then_each_is_one_line_and_no_cell_is_a_formula():
    write("out.csv", *LINES, answered(5, id="=1+1", key="@x", question="-2\n+3"))
    text = Path("out.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(text.splitlines()) == len(rows) + 1 == 6
    assert [row["line"] for row in rows] == ["3", "1", "2", "4", "5"]
    assert json.loads(rows[0]["meta"]) == {"topic": "流", "n": [1]}
    assert (rows[0]["answer"], rows[0]["sources"]) == ("Streams keep order. [1]", "[1] Note 1 — notes/1.md")
    assert rows[0]["coverage"] == "2 of 2 leaves answered"
    assert [rows[4][name] for name in ("id", "key", "question")] == ["'=1+1", "'@x", "'-2 +3"]


def test_given_ids_when_written_as_csv_then_those_that_differ_stay_so_and_both_files_say_the_same(capsys):
    ids = (
        "=1", "'=1", "''=1", " =1", "＝1", "'＝1", "＋1", "－1", "＠a", -5, "-5x", 0.5, "a\x01b", "ab", "a b", "a  b",
        "a\nb", "a\\u000ab", "a\\nb", "a\u2028b", "\u202eab", "ab\ufeff", "'tis", "C:\\users", "a\x85b",
    )  # fmt: skip
    lines = [answered(number, id=own_id, key=str(own_id)) for number, own_id in enumerate(ids, 1)]
    write("out.csv", *lines)
    rows = list(csv.DictReader(Path("out.csv").read_text(encoding="utf-8").splitlines()))
    shown = dict(zip(ids, (row["id"] for row in rows), strict=True))
    assert len(set(shown.values())) == len(ids)
    for own_id in ("=1", "'=1", "＝1", "＋1", "－1", "＠a", "-5x"):
        assert shown[own_id] == f"'{own_id}"
    assert [shown[own_id] for own_id in (-5, 0.5, "'tis", "C:\\users")] == ["-5", "0.5", "'tis", "C:\\users"]
    assert (shown["a\x01b"], shown["a\nb"]) == ("a\\u0001b", "a\\u000ab")
    report_csv(lines)
    reported = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    for name in ("id", "key"):
        assert [row[name] for row in reported] == [row[name] for row in rows]


def test_given_markdown_when_finished_then_it_is_in_the_order_of_the_lines_below_the_counts():
    with OutFile(Path("out.md")) as out:
        out.begin("b1", resume=False)
        for line in LINES:
            out.add(line)
        assert "still being written" in Path("out.md").read_text(encoding="utf-8")
        out.finish(COUNTS)
    text = Path("out.md").read_text(encoding="utf-8")
    assert text.startswith(f"# Batch b1\n\n{COUNTS}\n")
    assert [line[:5] for line in text.splitlines() if line.startswith("## ")] == ["## 1.", "## 2.", "## 3.", "## 4."]
    assert "id `q-3` · key `k` · job `job3` · **degraded** (llm_unavailable)" in text
    assert "Streams keep order. [^3-1]" in text
    assert "\n[^3-1]: Note 1 — notes/1.md" in text
    assert "&lt;!-- line 9 job x -->" in text
    assert not Path("out.md.part").exists()
    assert write("out.md", *LINES) == {1: "job1", 2: "job2", 3: "job3", 4: ""}
    assert Path("out.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("ending", ENDINGS)
def test_given_a_link_when_written_then_it_stays_and_the_file_that_it_names_has_the_answers(ending):
    Path("kept").mkdir()
    link, target = Path(f"out.{ending}"), Path(f"kept/there.{ending}")
    link.symlink_to(target)
    with OutFile(link) as out:
        out.begin("b1", resume=False)
        for line in LINES:
            out.add(line)
        out.finish(COUNTS)
    assert link.readlink() == target
    assert [path.name for path in Path("kept").iterdir()] == [target.name]
    assert set(write(str(target))) == {1, 2, 3, 4}
    assert ("lines 4 = " in target.read_text(encoding="utf-8")) == (ending == "md")


def test_given_an_answer_with_headings_and_tags_when_written_as_markdown_then_it_stays_text():
    made = answer("job1", "q", text="# Facts\nOrder <b>holds</b>. [1]\n## 7. More")
    write("out.md", answered(1, answer=made))
    text = Path("out.md").read_text(encoding="utf-8")
    assert "**Facts**\nOrder &lt;b>holds&lt;/b>. [^1-1]\n**7. More**" in text


@pytest.mark.parametrize("ending", ENDINGS)
def test_given_a_file_cut_anywhere_when_gone_on_with_then_every_line_stands_once_and_as_if_never_cut(ending):
    write(f"whole.{ending}", *LINES)
    whole = Path(f"whole.{ending}").read_bytes()
    for cut in (*range(0, len(whole), 7 if ending == "jsonl" else 1), len(whole)):
        Path(f"cut.{ending}").write_bytes(whole[:cut])
        before = write(f"cut.{ending}", *LINES)
        assert Path(f"cut.{ending}").read_bytes() == whole, cut
        assert set(before) == {line.line for line in LINES[: len(before)]}
    assert len(before) == len(LINES)


@pytest.mark.parametrize("ending", ENDINGS)
def test_given_a_file_when_not_gone_on_with_then_it_is_replaced(ending):
    write(f"out.{ending}", *LINES)
    assert write(f"out.{ending}", LINES[0], resume=False) == {}
    assert write(f"out.{ending}") == {3: "job3"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.jsonl", '{"question": "one"}\n{"question": "two"}\n'),
        ("table.csv", "a,b\n1,2\n3,4\n"),
        ("notes.md", "# My notes\n\nkeep me\n"),
        ("short.csv", "a,b\n"),
    ],
)
def test_given_a_file_that_holds_something_else_when_gone_on_with_then_it_is_refused_and_kept(name, content):
    Path(name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="is none of an answer file"):
        write(name, *LINES)
    assert Path(name).read_text(encoding="utf-8") == content


@pytest.mark.parametrize("name", ["out.txt", "out", "out.json", "out.jsonl.gz"])
def test_given_another_ending_when_opened_then_the_three_are_named(name):
    with pytest.raises(InputError, match=r"name it \.jsonl, \.csv or \.md"):
        write(name)
    assert not Path(name).exists()


def test_given_a_file_that_is_being_written_when_opened_again_then_the_second_is_refused():
    with OutFile(Path("out.csv")) as out:
        out.begin("b1", resume=False)
        out.add(LINES[0])
        for resume in (True, False):
            with pytest.raises(InputError, match="another command is writing it"):
                write("out.csv", resume=resume)
        out.add(LINES[1])
    assert write("out.csv") == {3: "job3", 1: "job1"}


def test_given_a_full_disk_when_a_record_does_not_fit_then_nothing_of_it_stays(monkeypatch):
    with OutFile(Path("out.jsonl")) as out:
        out.begin("b1", resume=False)
        out.add(LINES[0])
        size = Path("out.jsonl").stat().st_size
        append = out._append
        monkeypatch.setattr(out, "_append", lambda text: append(text[:50]) and full())
        with pytest.raises(InputError, match="No space left"):
            out.add(LINES[1])
        assert Path("out.jsonl").stat().st_size == size
    assert write("out.jsonl") == {3: "job3"}


def full() -> int:
    raise OSError(28, "No space left on device")
