"""What a command writes is a fresh file of its own, which nobody else can read: a planted name leads to no other."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli import output_files, streams
from orchestrator.cli.batch_intake import RejectsFile
from orchestrator.cli.evaluate import _write
from orchestrator.cli.main import app
from orchestrator.cli.out_file import OutFile
from orchestrator.evaluation.report import Evaluation
from orchestrator.intake import Rejected
from shared.errors import InputError, RamifyError
from tests.orchestrator.cli.test_out_file import LINES
from tests.support.other_user import as_root

SECRET = "secret of the user\n"
OTHER_UID = 12_345


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "kept").write_text(SECRET, encoding="utf-8")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def kept() -> str:
    return Path("../home/kept").read_text(encoding="utf-8")


def names(folder: str) -> list[str]:
    return [path.name for path in Path(folder).iterdir()]


def plan(name: str) -> None:
    done = CliRunner().invoke(app, ["plan", "What is a stream?", "--no-llm", "--out", name])
    assert done.exit_code == 0, done.output


def rejects(name: str) -> None:
    with RejectsFile(Path(name)) as file:
        file.add(Rejected(line=1, reason="no", text="x"))


def report(name: str) -> None:
    _write(Path(name), Evaluation.model_construct())


def sorted_out(name: str) -> None:
    """`name` is the temporary file of an earlier version, beside the file itself."""
    with OutFile(Path(name).with_suffix("")) as out:
        out.begin("b1", resume=False)
        out.add(LINES[0])
        out.finish("lines 1")


@pytest.fixture(autouse=True)
def _page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.cli.render.eval_page.evaluation_page", lambda _: "<html>")


WRITERS: dict[str, tuple[Callable[[str], None], str]] = {
    "plan --out": (plan, "plan.toml"),
    "--rejects": (rejects, "questions.jsonl.rejects.jsonl"),
    "--report": (report, "report.html"),
    "--out": (sorted_out, "answers.md.part"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_planted_link_leads_nowhere(name: str) -> None:
    write, file = WRITERS[name]
    Path(file).symlink_to("../home/kept")
    write(file)
    assert kept() == SECRET


@pytest.mark.parametrize("name", WRITERS)
def test_a_planted_hard_link_leads_nowhere(name: str) -> None:
    write, file = WRITERS[name]
    os.link("../home/kept", file)
    write(file)
    assert kept() == SECRET


@pytest.mark.parametrize("name", ["plan --out", "--rejects", "--report"])
def test_nobody_else_can_read_what_is_written(name: str) -> None:
    write, file = WRITERS[name]
    Path(file).touch()
    Path(file).chmod(0o666)
    old = os.umask(0)
    try:
        write(file)
    finally:
        os.umask(old)
    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o600
    assert Path(file).stat().st_size > 1
    assert names(".") == [file]


def test_a_new_file_of_answers_is_closed_and_one_that_is_there_keeps_its_mode() -> None:
    with OutFile(Path("new.md")):
        assert stat.S_IMODE(Path("new.md").stat().st_mode) == 0o600
    Path("shared.md").touch(0o640)
    Path("shared.md").chmod(0o640)
    with OutFile(Path("shared.md")) as out:
        out.begin("b1", resume=False)
        out.finish("lines 0")
    assert stat.S_IMODE(Path("shared.md").stat().st_mode) == 0o640


def test_a_file_of_answers_has_one_name() -> None:
    os.link("../home/kept", "out.jsonl")
    with pytest.raises(InputError, match="another name"):
        OutFile(Path("out.jsonl"))
    assert kept() == SECRET


@as_root
def test_a_file_of_answers_follows_no_link_of_another_user_and_is_no_file_of_theirs() -> None:
    Path("mine.jsonl").symlink_to("../home/kept")
    os.chown("mine.jsonl", OTHER_UID, -1, follow_symlinks=False)
    Path("folder").symlink_to("../home")
    os.chown("folder", OTHER_UID, -1, follow_symlinks=False)
    Path("theirs.jsonl").touch(0o666)
    os.chown("theirs.jsonl", OTHER_UID, -1)
    for name in ("mine.jsonl", "folder/out.jsonl", "theirs.jsonl"):
        with pytest.raises(InputError, match="another user"):
            OutFile(Path(name))
    with pytest.raises(InputError, match="another user"):
        streams.writable("--report", Path("folder/report.html"))
    assert names("../home") == ["kept"]


@as_root
@pytest.mark.parametrize("name", WRITERS)
def test_a_link_of_ones_own_leads_through_none_of_another_user(name: str) -> None:
    write, file = WRITERS[name]
    Path("theirs").symlink_to("../home")
    Path("mine").symlink_to("theirs")
    write(f"mine/{file}")
    (Path("../home") / file.removesuffix(".part")).unlink()
    os.chown("theirs", OTHER_UID, -1, follow_symlinks=False)
    before = names("../home")
    with pytest.raises((RamifyError, OSError, AssertionError), match="another user"):
        write(f"mine/{file}")
    assert names("../home") == before


def test_a_pipe_is_written_as_it_is() -> None:
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        output_files.replace("--out", Path("pipe"), "page")
        assert os.read(reader, 10) == b"page"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)
    with pytest.raises(InputError, match="No space"):
        output_files.replace("--out", Path("/dev/full"), "page")
    with pytest.raises(InputError):
        OutFile(Path("pipe.jsonl").absolute().parent / "pipe")


def test_a_write_that_fails_leaves_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("report.html").write_text("old", encoding="utf-8")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"--report.*No space"):
        output_files.replace("--report", Path("report.html"), "new")
    assert Path("report.html").read_text(encoding="utf-8") == "old"
    assert names(".") == ["report.html"]
