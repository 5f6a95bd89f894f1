"""Finding the files of an ingest: roots, links, suffixes, pieces of large JSON Lines files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shared.errors import InputError
from shared.files import pieces as file_pieces
from shared.files.found import FoundFile
from shared.files.pieces import read
from shared.files.walk import discover
from shared.models import DocumentOutcome, RawDocument
from shared.models.ingest import SUFFIXES
from workers.index.readers import READERS


def test_the_suffixes_are_those_with_a_reader() -> None:
    assert set(READERS) == SUFFIXES


def test_a_folder_gives_its_readable_files_sorted_without_hidden_ones_and_links(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    (root / "sub").mkdir(parents=True)
    (root / ".git").mkdir()
    for name in ("b.md", "sub/a.txt", "image.png", ".hidden.md", ".git/c.md"):
        (root / name).write_text("x", encoding="utf-8")
    (root / "loop").symlink_to(root)
    (root / "out.md").symlink_to("/etc/hostname")

    found, passed = discover([root, root / "b.md"])

    assert [item.shown for item in found] == ["notes/b.md", "notes/sub/a.txt"]
    assert sorted(passed) == sorted(
        [
            f"{root}/out.md: is a link, and links are not followed",
            f"{root}/loop: is a link, and links are not followed",
            "1 .png: no reader for them",
            "1 hidden: their names begin with a dot",
        ]
    )


@pytest.mark.parametrize(("name", "fix"), [("missing.md", "no such file"), ("image.png", "no reader")])
def test_a_path_that_cannot_be_taken_is_named(tmp_path: Path, name: str, fix: str) -> None:
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    with pytest.raises(InputError, match=fix):
        discover([tmp_path / name])


def test_a_pipe_is_passed_over_because_it_may_never_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    found, passed = discover([tmp_path])
    assert found == []
    assert "pipe.md: is a pipe" in passed[0]
    with pytest.raises(InputError, match="neither a file nor a folder"):
        discover([tmp_path / "pipe.md"])


def test_a_name_that_is_no_text_is_passed_over_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    odd = root / os.fsdecode(b"na\xffme.md")
    try:
        odd.write_text("x", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    (root / "good.md").write_text("x", encoding="utf-8")

    found, passed = discover([root])

    assert [item.shown for item in found] == ["notes/good.md"]
    why = "its name is not UTF-8 or holds control characters: rename it"
    assert passed == [f"{root}/na\N{REPLACEMENT CHARACTER}me.md: {why}"]
    with pytest.raises(InputError, match="not UTF-8"):
        discover([odd])


def test_a_file_over_the_limit_is_reported_and_not_read(tmp_path: Path) -> None:
    file = tmp_path / "big.md"
    file.write_text("x" * 2000, encoding="utf-8")
    (outcome,) = read(FoundFile(file, file), "default", "default", max_bytes=1000)
    assert isinstance(outcome, DocumentOutcome)
    assert "2000 bytes" in outcome.reason


def test_a_large_jsonl_travels_in_pieces_of_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_pieces, "PIECE_BYTES", 100)
    file = tmp_path / "many.jsonl"
    lines = [f'{{"id": "{n}", "text": "line {n}"}}\n'.encode() for n in range(50)]
    file.write_bytes(b"".join(lines))

    found = read(FoundFile(file, file), "default", "default", max_bytes=1000)
    pieces = [item for item in found if isinstance(item, RawDocument)]

    assert len(pieces) > 5
    assert b"".join(piece.content for piece in pieces) == b"".join(lines)
    before = 0
    for piece in pieces:
        assert piece.line_offset == before
        before += piece.content.count(b"\n")


def test_given_fetched_and_built_folders_when_found_then_they_are_passed_over_and_a_notes_folder_of_that_name_is_not(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"
    kept = ("src/a.py", "notes/build/how.md", "target/plan.md")
    for name in (*kept, "node_modules/x/index.js", "src/__pycache__/a.py", "web/dist/out.js", "web/main.ts"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x", encoding="utf-8")
    (root / "web" / "package.json").write_text("{}", encoding="utf-8")

    found, passed = discover([root])
    as_root, _ = discover([root / "web" / "dist"])

    assert [item.shown for item in found] == [
        f"project/{name}" for name in sorted((*kept, "web/main.ts", "web/package.json"))
    ]
    assert passed == [f"{root}/web/dist: is what a build made"]
    assert [item.shown for item in as_root] == ["dist/out.js"]


def test_given_files_without_a_reader_when_discovered_then_they_are_counted_by_suffix(tmp_path: Path) -> None:
    for name in ("a.po", "b.po", "c.svg", "LICENSE", ".hidden.po", "n.md"):
        (tmp_path / name).write_text("text")
    (tmp_path / "empty.md").touch()
    (tmp_path / "empty.txt").touch()
    (tmp_path / "other").symlink_to(tmp_path.parent)
    found, passed = discover([tmp_path])
    assert [one.file.name for one in found] == ["empty.md", "empty.txt", "n.md"], "the store may have them as they were"
    assert f"{tmp_path / 'other'}: is a link, and links are not followed" in passed
    assert f"{tmp_path / 'empty.md'} and 1 more: empty" in passed
    assert "2 .po, 1 without suffix, 1 .svg: no reader for them" in passed


def test_given_no_parser_for_a_format_when_discovered_then_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.pdf", "b.pdf", "n.md"):
        (tmp_path / name).write_text("text")
    monkeypatch.setattr("shared.files.passed_over.find_spec", lambda _: None)
    found, passed = discover([tmp_path])
    assert len(found) == 1
    assert passed == ["2 .pdf: pip install 'ramify[documents]'"]
    with pytest.raises(InputError, match=r"ramify\[documents\]"):
        discover([tmp_path / "a.pdf"])
