"""Files made to do harm: each gets a sentence, the good ones beside them are ingested, and nothing hangs or swells."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.errors import InputError
from shared.files.found import FoundFile
from shared.files.pieces import read
from shared.files.walk import discover
from shared.models import DocumentOutcome, RawDocument

LIMIT = 10_000_000
GIB = 1 << 30
#: MB and CPU seconds of the process that takes all of them in; 160 MB are there before the first file.
MOST_MEMORY, MOST_CPU_S = 900, 90

# Ingests a folder as the client and the index worker do, without the queue between them.
_CHILD = """
import json, resource, sys, time
from pathlib import Path
from shared.files.pieces import read
from shared.files.walk import discover
from shared.models import DocumentOutcome
from shared.settings import Settings
from tests.fakes.stores import open_store
from workers.index.pipeline import Indexer
settings = Settings(data_dir=Path(sys.argv[2]))
store = open_store(settings)
indexer = Indexer(store, None, settings)
found, passed = discover([Path(sys.argv[1])])
told = {}
for item in found:
    for raw in read(item, "default", "default", settings.chunking.max_document_bytes):
        began = time.process_time()
        outcomes = [raw] if isinstance(raw, DocumentOutcome) else indexer.index([raw])[0]
        for outcome in outcomes:
            seconds = time.process_time() - began
            told.setdefault(item.file.name, []).append([outcome.status.value, outcome.reason, seconds])
indexer.finish()
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"told": told, "passed": passed, "mb": used.ru_maxrss // 1024, "cpu": used.ru_utime}))
"""


def _sparse(size: int) -> Callable[[Path], None]:
    def make(file: Path) -> None:
        with file.open("wb") as handle:
            handle.truncate(size)

    return make


def _bytes(content: bytes) -> Callable[[Path], None]:
    return lambda file: (file.write_bytes(content), None)[1]


def _line(**fields: object) -> bytes:
    return json.dumps({"id": "x", "text": "text", **fields}).encode() + b"\n"


def _zip(file: Path) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.md", b"\0" * 5_000_000)


ANCHORS = b"---\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b]\n---\ntext\n"
#: name -> how it is made, and what is said of it; "" where it is simply taken in.
BAD: dict[str, tuple[Callable[[Path], None], str]] = {
    "gigabyte.md": (_sparse(GIB), f"has {GIB} bytes, more than"),
    "gigabyte.jsonl": (_sparse(GIB), "line 1: has more than"),
    "line50.txt": (_bytes(b"x" * 50_000_000), "has 50000000 bytes"),
    "line1.txt": (_bytes(b"lorem " * 200_000), ""),
    "tiny.md": (_bytes(b"# a\n\n" * 2_000_000), "lines, more than"),
    "many.md": (_bytes(b"# a\n\nb\n\n" * 24_000), "chunks, more than"),
    "bomb.md": (_zip, "holds NUL bytes"),
    "bomb.txt": (_bytes(gzip.compress(b"a" * 10_000_000)), "text file|is not UTF-8"),
    "quotes.md": (_bytes(b">" * 100_000 + b" deep\n"), ""),
    "lists.md": (_bytes(b"- " * 100_000 + b"deep\n"), ""),
    "brackets.md": (_bytes(b"[" * 100_000 + b"](" * 100_000), ""),
    "deep.jsonl": (_bytes(b'{"id": 1, "text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "nested too deep|not valid"),
    "flow.md": (_bytes(b"---\na: " + b"[" * 30_000 + b"]" * 30_000 + b"\n---\ntext"), "too deep|too large"),
    "anchors.md": (_bytes(ANCHORS), "anchor or alias"),
    "front.md": (_bytes(b"---\n" + b"a: b\n" * 300_000 + b"---\ntext"), "front matter is longer"),
    "latin.md": (_bytes("café".encode("latin-1")), "is not UTF-8"),
    "blank.txt": (_bytes(b" \n" * 1000), "is empty"),
    "out.jsonl": (_bytes(_line(path="../../etc/passwd")), "leads out of its folder"),
    "backwards.jsonl": (_bytes(_line(path="a\\..\\..\\b")), "leads out of its folder"),
    "half.jsonl": (_bytes(b'{"id": 1, "text": "\\ud800"}\n' + _line()), "half a surrogate"),
    "utf16.md": (_bytes(b"\xff\xfe" + b"\x00\xd8" * 1000), "is not UTF-16"),
    "overlong.md": (_bytes(b"# \xc0\xaf\xed\xa0\x80"), "is not UTF-8"),
    "deep.py": (_bytes(b"f(\n" * 30_000 + b")\n" * 30_000), ""),
    "nested.rs": (_bytes(b"mod a {\n" * 8000 + b"}\n" * 8000), ""),
    "minified.js": (_bytes(b"x" * 6000), "minified"),
    "deep.rst": (_bytes("".join(f"{'  ' * n}* a\n\n" for n in range(600)).encode()), ""),
    "tag.md": (_bytes(b"---\na: !!python/object/apply:os.system [id]\n---\ntext"), ""),
    "merge.md": (_bytes(b"---\na: &a {b: c}\nd:\n  <<: *a\n---\ntext"), "anchor or alias"),
    "many.jsonl": (
        _bytes(_line(path="/etc/passwd", id=1) + b"[" * 9 + b"\n" + b'{"id":' + b"9" * 5000 + b"}"),
        "not valid JSON",
    ),
    "good.md": (_bytes("# Good\n\n缓存雪崩 and vacuum".encode()), ""),
}


def _nest(folder: Path, deep: int) -> None:
    """Folders in one another. By relative names: the whole one may be too long for the system."""
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(deep):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


@pytest.mark.timeout(400)
def test_given_files_made_to_do_harm_when_ingested_then_each_is_told_and_nothing_hangs_or_swells(
    tmp_path: Path,
) -> None:
    root = tmp_path / "bad"
    root.mkdir()
    for name, (make, _) in BAD.items():
        make(root / name)
    (root / "loop").symlink_to(root)
    (root / "leaving.md").symlink_to("/etc/hostname")
    (root / "nowhere.md").symlink_to(root / "is-not-there.md")
    (root / "one.md").symlink_to(root / "other.md")
    (root / "other.md").symlink_to(root / "one.md")
    _nest(root / "folders", 1200)
    (root / "two\nlines\x1b[31m.md").write_text("text", encoding="utf-8")
    os.mkfifo(root / "pipe.md")

    command = [sys.executable, "-c", _CHILD, str(root), str(tmp_path / "data")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=350, check=False)
    finally:
        # pytest's own clean-up walks folders by recursion, too.
        subprocess.run(["rm", "-rf", str(root / "folders")], check=True)

    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    for name, (_, sentence) in BAD.items():
        said = report["told"][name]
        print(name, said[0][1][:90], f"{said[0][2]:.1f} s")
        if sentence:
            assert any(part in reason for _, reason, _ in said for part in sentence.split("|")), (name, said)
            assert all("\n" not in reason for _, reason, _ in said)
        else:
            assert [status for status, _, _ in said] == ["added"], (name, said)
    assert [status for status, _, _ in report["told"]["half.jsonl"]] == ["failed", "added"]
    for part in ("leaving.md: is a link", "nowhere.md: is a link", "pipe.md: is a pipe", "holds control characters"):
        assert any(part in sentence for sentence in report["passed"]), part
    for part in ("one.md: is a link", "other.md: is a link", "nested more than 100 deep"):
        assert any(part in sentence for sentence in report["passed"]), part
    assert not any("\n" in sentence or "\x1b" in sentence for sentence in report["passed"])
    print(f"{report['mb']} MB, {report['cpu']:.0f} CPU seconds")
    assert report["mb"] < MOST_MEMORY
    assert report["cpu"] < MOST_CPU_S


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.md.gz"])
def test_given_an_archive_when_named_then_there_is_no_reader(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"a" * 1_000_000))
    with pytest.raises(InputError, match="no reader"):
        discover([tmp_path / name])


def _only(items: object) -> DocumentOutcome:
    (outcome,) = items
    assert isinstance(outcome, DocumentOutcome)
    return outcome


def test_given_a_file_that_vanished_or_was_swapped_when_read_then_it_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    found = FoundFile(tmp_path, file)
    assert "No such file" in _only(read(found, "default", "default", LIMIT)).reason
    os.mkfifo(file)
    assert "pipe or a device" in _only(read(found, "default", "default", LIMIT)).reason
    file.unlink()
    file.symlink_to("/etc/hostname")
    assert "cannot be read" in _only(read(found, "default", "default", LIMIT)).reason


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_given_a_file_that_may_not_be_read_when_read_then_it_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("x", encoding="utf-8")
    file.chmod(0)
    assert "Permission denied" in _only(read(FoundFile(tmp_path, file), "default", "default", LIMIT)).reason


def test_given_one_line_over_the_limit_when_read_then_the_lines_around_it_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"one\n" + b"x" * 5000 + b"\nthree\n" + b"y" * 5000)
    items = list(read(FoundFile(file, file), "default", "default", 1000))
    contents = [(item.content, item.line_offset) for item in items if isinstance(item, RawDocument)]
    assert contents == [(b"one\n", 0), (b"three\n", 2)]
    faults = [item.reason for item in items if isinstance(item, DocumentOutcome)]
    assert [reason.partition(":")[0] for reason in faults] == ["line 2", "line 4"]


def test_given_a_limit_below_a_piece_when_read_then_no_piece_is_over_it(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"x" * 300 + b"\n" + (b"y" * 400 + b"\n") * 20)
    pieces = [item for item in read(FoundFile(file, file), "default", "default", 1000) if isinstance(item, RawDocument)]
    assert max(len(piece.content) for piece in pieces) <= 1000
    assert b"".join(piece.content for piece in pieces) == file.read_bytes()
