"""Pages of PDFs as pictures: the right file, for callers of this machine alone, drawn in a process of its own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.access.caller import Caller
from orchestrator.server.page.passages import original
from orchestrator.server.page.pdf_page import page_image
from shared.models.corpus import StoredDocument
from tests.support.pdf import pdf

_PDF = pdf([["First"], ["Second page", "with a line"]])


def document(source: Path | str, path: str, namespace: str = "default") -> StoredDocument:
    return StoredDocument(doc_id="d", path=path, title="t", source=str(source), namespace=namespace)


def of(found: StoredDocument, *, remote: bool = False) -> Path | None:
    visitor: Any = SimpleNamespace(caller=Caller(remote=remote))
    return original(visitor, found)


def test_only_files_below_what_was_ingested_are_shown_and_only_to_this_machine(tmp_path: Path) -> None:
    root, outside = tmp_path / "notes", tmp_path / "secret.pdf"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.pdf").write_bytes(_PDF)
    outside.write_bytes(_PDF)
    (root / "link.pdf").symlink_to(outside)
    file = root / "sub" / "a.pdf"
    assert of(document(root, "notes/sub/a.pdf")) == file
    assert of(document(f"mine:{root}", "notes/sub/a.pdf", "mine")) == file
    assert of(document(file, "a.pdf")) == file
    assert of(document(root, "notes/sub/a.pdf"), remote=True) is None
    for path in (
        "notes/../secret.pdf",
        "notes/link.pdf",
        "notes/none.pdf",
        "notes/sub",
        "notes/sub/a.txt",
        "notes/\0.pdf",
    ):
        assert of(document(root, path)) is None, path
    assert of(document("connector", "connector/a.pdf")) is None


def test_a_page_is_drawn_with_its_box(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    file = tmp_path / "a.pdf"
    file.write_bytes(_PDF)
    plain, framed = page_image(file, 2, None), page_image(file, 2, (72, 740, 300, 792))
    assert plain is not None
    assert framed is not None
    assert plain.size == framed.size == (900, 1274)
    assert plain.png != framed.png
    assert page_image(file, 2, None) is plain, "kept"
    assert page_image(file, 9, None) is None
    file.write_bytes(b"%PDF-1.7 nonsense")
    assert page_image(file, 2, None) is None, "a file that has changed is read again"
