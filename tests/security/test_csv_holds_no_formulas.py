"""No cell of a CSV is a formula to a spreadsheet, in whatever width its sign is written, and none parts in two."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from orchestrator.cli.line_reports import report_csv
from orchestrator.cli.out_file import OutFile
from orchestrator.out_formats import AnsweredLine

SIGNS = "=+-@＝＋－＠﹦﹢﹣﹫"
FORMULAS = (
    *(f"{before}{sign}HYPERLINK(0)" for sign in SIGNS for before in ("", " ", "\t", "\r", "\n", "'", "\u3000")),
    "x;=1+1",
    '",=1+1',
    "a\n=1+1",
)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def attack(line: int, text: str) -> AnsweredLine:
    return AnsweredLine(
        line=line, kind="rejected", question=text, error=text, id=text, key=text, reasons=(text,), meta={text: text}
    )


def written(form: str, capsys: pytest.CaptureFixture[str]) -> str:
    lines = [attack(number, text) for number, text in enumerate(FORMULAS, 1)]
    if form == "report":
        report_csv(lines)
        return capsys.readouterr().out
    with OutFile(Path("out.csv")) as out:
        out.begin("b1", resume=False)
        for line in lines:
            out.add(line)
    with OutFile(Path("out.csv")) as out:
        out.begin("b1", resume=True)
        assert all(line.line in out for line in lines), "a file that was cut off goes on"
    return Path("out.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["report", "out"])
def test_no_cell_is_a_formula(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = written(form, capsys)
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) == len(FORMULAS) + 1 == len(text.splitlines())
    for row in rows[1:]:
        assert [
            cell for cell in row if re.match(rf"[\s\']*[{re.escape(SIGNS)}]", cell) and not cell.startswith("'")
        ] == []


@pytest.mark.parametrize("form", ["report", "out"])
def test_every_cell_is_quoted(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    for line in written(form, capsys).splitlines():
        assert re.fullmatch(r'"(?:[^"]|"")*"(?:,"(?:[^"]|"")*")*', line)
