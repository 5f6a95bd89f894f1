"""Documents over HTTP: files, lines and JSON are handed over as they come; what cannot be taken is told."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Iterator

import pytest
from fastapi.testclient import TestClient

from orchestrator.client import Ramify
from orchestrator.documents.feeding import Feeding, PushedDocument
from orchestrator.operations.push import MOST_REJECTS
from orchestrator.server.multipart import UploadedFiles, file_name
from shared.errors import InputError

PROBLEM = "application/problem+json"
LINES = {"content-type": "application/jsonl"}
CUT_OFF = b'--b\r\nContent-Disposition: form-data; name="f"; filename="a.md"\r\n\r\nx'


class Handed:
    """What `upsert` was given, in place of a job: the hand-over itself has tests of its own."""

    def __init__(self) -> None:
        self.documents, self.removed = list[PushedDocument](), list[str]()
        self.source = self.namespace = self.tenant = ""

    def upsert(
        self,
        client: Ramify,
        documents: Iterable[PushedDocument],
        *,
        source: str,
        removed: Iterable[str],
        namespace: str,
    ) -> str:
        self.documents.extend(documents)
        self.removed.extend(removed)
        self.source, self.namespace, self.tenant = source, namespace, client.tenant or ""
        return "660e1b7"


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> Handed:
    handed = Handed()

    def upsert(client: Ramify, documents: Iterable[PushedDocument], **more: object) -> str:
        return handed.upsert(client, documents, **more)

    monkeypatch.setattr(Feeding, "upsert", upsert)
    return handed


def test_files_are_taken_by_their_last_names(http: TestClient, handed: Handed):
    files = [
        ("file", ("../../etc/passwd.md", b"# a", "text/markdown")),
        ("file", ("C:\\notes\\\u202eb.TXT", b"b" * 100_000, "text/plain")),
        ("file", ("b.txt", b"", "text/plain")),
        ("other", ("no_reader.xyz", b"x", "text/plain")),
        ("file", ("passwd.md", b"again", "text/plain")),
        ("file", ("..", b"x", "text/plain")),
    ]
    taken = http.post("/v1/ingests?namespace=wiki", files=files, data={"title": "no file"})
    assert (taken.status_code, taken.headers["location"]) == (202, "/v1/jobs/660e1b7")
    assert [(one.id, one.path, one.suffix, len(one.content)) for one in handed.documents] == [
        ("passwd.md", "passwd.md", ".md", 3),
        ("b.TXT", "b.TXT", ".txt", 100_000),
        ("b.txt", "b.txt", ".txt", 0),
    ]
    assert (handed.source, handed.namespace, handed.tenant) == ("uploads", "wiki", "default")
    found = taken.json()
    assert (found["documents"], found["rejected"]) == (3, 3)
    assert [(one["number"], one["name"]) for one in found["rejects"]] == [
        (4, "no_reader.xyz"),
        (5, "passwd.md"),
        (6, ".."),
    ]


def test_lines_put_in_and_remove(http: TestClient, handed: Handed):
    lines = [
        {"id": "a", "text": "文本", "metadata": {"tags": ["x"]}},
        {"id": "b", "content": base64.b64encode(b"%PDF").decode(), "suffix": ".pdf", "path": "b/b.pdf"},
        {"id": "c", "delete": True},
        {"id": "c", "delete": True},
        {"id": "d"},
        {"id": "e", "text": "x", "content": "eA=="},
        {"id": "f", "content": "?"},
        {"id": "g", "text": "x", "suffix": ".xyz"},
        {"id": "h", "text": "x", "unknown": 1},
    ]
    body = b"\n".join(json.dumps(line).encode() for line in lines) + b"\n\n{\n\xff\n[1]\n"
    taken = http.post("/v1/ingests?source=crm", content=body, headers=LINES)
    assert taken.status_code == 202
    assert [(one.id, one.content, one.path) for one in handed.documents] == [
        ("a", "文本", ""),
        ("b", b"%PDF", "b/b.pdf"),
    ]
    assert (handed.documents[0].metadata, handed.removed, handed.source) == ({"tags": ["x"]}, ["c"], "crm")
    found = taken.json()
    assert (found["documents"], found["removed"], found["rejected"]) == (2, 1, 8)
    assert [one["number"] for one in found["rejects"]] == [5, 6, 7, 8, 9, 10, 11, 12]
    assert "base64" in found["rejects"][2]["reason"]


def test_a_document_of_json_is_as_its_line(http: TestClient, handed: Handed):
    taken = http.post("/v1/ingests", json={"source": "crm", "documents": [{"id": "a", "text": "x"}]})
    assert (taken.status_code, handed.source, handed.documents[0].id) == (202, "crm", "a")


def test_too_large_ones_are_refused_one_by_one(http: TestClient, handed: Handed, monkeypatch: pytest.MonkeyPatch):
    client = http.app.state.ramify
    small = client.settings.chunking.model_copy(update={"max_document_bytes": 2_000})
    monkeypatch.setattr(client, "settings", client.settings.model_copy(update={"chunking": small}))
    large = "x" * 200_000
    body = "".join(
        json.dumps({"id": name, "text": text}) + "\n" for name, text in (("a", large), ("b", "x"), ("c", large))
    )
    lines = http.post("/v1/ingests", content=body.encode(), headers=LINES).json()
    files = http.post("/v1/ingests", files=[("f", ("a.md", large.encode())), ("f", ("b.md", b"x"))]).json()
    assert (lines["documents"], lines["rejected"], files["documents"], files["rejected"]) == (1, 2, 1, 1)
    assert "max_document_bytes" in files["rejects"][0]["reason"]


def test_rejects_are_listed_up_to_a_bound(http: TestClient, handed: Handed):
    body = b'{"id": "a", "text": "x"}\n' + b"{\n" * (MOST_REJECTS + 5)
    found = http.post("/v1/ingests", content=body, headers=LINES).json()
    assert (len(found["rejects"]), found["rejects_left_out"], found["rejected"]) == (MOST_REJECTS, 5, MOST_REJECTS + 5)


REFUSED = (
    (b"", LINES, "no document"),
    (b"{\n", LINES, "nothing of it"),
    (b"x", {"content-type": "text/html"}, "multipart/form-data"),
    (b"x", {"content-type": "multipart/form-data"}, "boundary"),
    (b"x", {"content-type": "multipart/form-data; boundary=b"}, "multipart"),
    (CUT_OFF, {"content-type": "multipart/form-data; boundary=b"}, "middle"),
    (b"[]", {"content-type": "application/json"}, "documents"),
    (b'{"documents": []}', {"content-type": "application/json"}, "documents"),
    (b'{"documents": [{"id": "a"}]}', {"content-type": "application/json"}, "one of text"),
)


def test_what_cannot_be_taken_is_one_problem(http: TestClient, handed: Handed):
    for body, headers, said in REFUSED:
        refused = http.post("/v1/ingests", content=body, headers=headers)
        assert (refused.status_code, refused.headers["content-type"]) == (422, PROBLEM)
        assert said in refused.json()["detail"]


class Slowly(io.BytesIO):
    """Gives a byte at a time."""

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(1)


def test_parts_may_be_cut_anywhere():
    body = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="f"; filename="%d.md"\r\n\r\n-\r\n--c\r\n%d\r\n' % (n, n)
        for n in range(3)
    )
    found = list(UploadedFiles(Slowly(body + b"--b--\r\n"), "multipart/form-data; boundary=b", 1000))
    assert [(one.name, one.document and one.document.content) for one in found] == [
        (f"{n}.md", f"-\r\n--c\r\n{n}".encode()) for n in range(3)
    ]


def test_no_more_than_one_file_is_held():
    head, held = b'--b\r\nContent-Disposition: form-data; name="f"; filename="%d.md"\r\n\r\n', []

    class Body:
        def __init__(self) -> None:
            self.parts = self._parts()

        def _parts(self) -> Iterator[bytes]:
            for number in range(5):
                yield head % number
                yield b"x" * 1000 + b"\r\n"
                held.append(number)
            yield b"--b--\r\n"

        def read1(self, size: int = -1) -> bytes:
            return next(self.parts, b"")

    for number, _ in enumerate(UploadedFiles(Body(), "multipart/form-data; boundary=b", 2000)):
        assert len(held) <= number + 2


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("a.md", "a.md"), ("/etc/passwd", "passwd"), ("..\\..\\a.md", "a.md"), ("a\x00\r\n.md", "a.md"), ("a/", ""),
        ("...", ""), ("x" * 300, ""), ("说明\u200b.md", "说明.md"), ("e\u0301.md", "é.md"),
    ],
)  # fmt: skip
def test_names_are_cut_to_what_is_one(given: str, name: str):
    assert file_name(given) == name


def test_no_base64_and_no_reader_raise_for_programs(ramify: Ramify):
    with pytest.raises(InputError):
        ramify.upsert([{"id": "a", "content": "x", "suffix": ".xyz"}], source="crm")


def test_lines_whose_metadata_cannot_be_handed_over_are_rejected_and_the_others_taken(http: TestClient, handed: Handed):
    deep = '{"a":' * 900 + "1" + "}" * 900
    lines = [
        '{"id": "a", "text": "x", "metadata": {"title": "whole"}}',
        r'{"id": "b", "text": "x", "metadata": {"title": "\ud800"}}',
        r'{"id": "c", "text": "x", "metadata": {"tags": [{"\udfff": 1}]}}',
        f'{{"id": "d", "text": "x", "metadata": {deep}}}',
        r'{"id": "\ud800", "text": "x"}',
        r'{"id": "f", "text": "x", "\ud800": 1}',
        '{"id": "g", "text": "x", "metadata": {"a": [[[["deep"]]]]}}',
    ]
    taken = http.post("/v1/ingests", content="\n".join(lines).encode(), headers=LINES)
    assert (taken.status_code, [one.id for one in handed.documents]) == (202, ["a", "g"])
    found = taken.json()["rejects"]
    assert [one["number"] for one in found] == [2, 3, 4, 5, 6]
    assert "half a surrogate pair" in found[0]["reason"]
    assert "50 levels at most" in found[2]["reason"]
