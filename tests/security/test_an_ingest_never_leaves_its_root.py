"""A folder that is swapped for a link while an ingest walks or reads leads nowhere: only what was walked to is read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.files.found import FoundFile
from shared.files.pieces import groups, read
from shared.files.walk import discover
from shared.models import DocumentOutcome, RawDocument

SECRET = b"a secret of the user"
MAX = 100_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_bytes(SECRET)
    (outside / "key.md").write_bytes(SECRET)
    sub = tmp_path / "parent" / "root" / "sub"
    sub.mkdir(parents=True)
    (sub / "a.md").write_text("# a", encoding="utf-8")
    return sub.parent


def swap(folder: Path) -> None:
    """What an attacker does who may write in the folder's parent."""
    folder.rename(folder.with_name("moved"))
    outside = next(parent / "outside" for parent in folder.parents if (parent / "outside").is_dir())
    inner = outside / "root" / "sub" if folder.name == "parent" else outside / "sub" if folder.name == "root" else None
    if inner:
        inner.mkdir(parents=True)
        (inner / "a.md").write_bytes(SECRET)
    folder.symlink_to(outside)


@pytest.mark.parametrize("swapped", ["sub", "root", "parent"])
def test_a_folder_swapped_before_it_is_read_leads_nowhere(root: Path, swapped: str) -> None:
    found, passed = discover([root])
    assert [file.shown for file in found] == ["root/sub/a.md"]
    swap({"sub": root / "sub", "root": root, "parent": root.parent}[swapped])
    assert [type(document) for document in read(found[0], "default", "default", MAX)] == [DocumentOutcome]
    group = next(groups(found, "default", MAX))
    assert group.hashes.files == ()
    assert group.unhashed == {str(found[0].file)}
    assert passed == []


def test_a_folder_swapped_while_it_is_walked_leads_nowhere(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Callable[..., int] = os.open

    def attack(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if Path(os.fsdecode(path)).name == "sub" and not (root / "sub").is_symlink():
            swap(root / "sub")
        return opened(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", attack)
    found, passed = discover([root])
    assert found == []
    assert len(passed) == 1
    assert passed[0].startswith(str(root / "sub"))


def test_a_file_swapped_for_a_link_is_not_read(root: Path) -> None:
    found, _ = discover([root])
    found[0].file.unlink()
    found[0].file.symlink_to(root.parents[1] / "outside" / "key.md")
    assert isinstance(next(iter(read(found[0], "default", "default", MAX))), DocumentOutcome)


def test_a_root_that_is_a_link_is_followed_once(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    found, _ = discover([link])
    document = next(iter(read(found[0], "default", "default", MAX)))
    assert isinstance(document, RawDocument)
    assert hashlib.sha256(document.content).digest() == hashlib.sha256(b"# a").digest()


def test_a_file_named_by_itself_is_read(root: Path) -> None:
    found, _ = discover([root / "sub" / "a.md"])
    assert found == [FoundFile(root / "sub" / "a.md", root / "sub" / "a.md")]
    assert isinstance(next(iter(read(found[0], "default", "default", MAX))), RawDocument)
