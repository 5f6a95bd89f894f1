"""`ramify ingest` on the embedded stack: what has not changed does not travel, and everything is told all the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.client import Ramify
from orchestrator.ingest import Progress
from shared.jobs.inbox import DocumentBatch, FinishOrder, Inbox

Sent = list[DocumentBatch | FinishOrder]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What the client puts into its inbox."""
    contents: Sent = []
    put = Inbox.put

    def noting(inbox: Inbox, batch: int, content: DocumentBatch | FinishOrder) -> None:
        contents.append(content)
        put(inbox, batch, content)

    monkeypatch.setattr(Inbox, "put", noting)
    return contents


def travelled(sent: Sent) -> list[str]:
    batches = [content for content in sent if isinstance(content, DocumentBatch)]
    return sorted(Path(document.path).name for batch in batches for document in batch.documents)


def told(steps: Sequence[Progress]) -> dict[str, list[str]]:
    by_status: dict[str, list[str]] = {}
    for outcome in sorted((out for step in steps for out in step.outcomes), key=lambda out: out.path):
        by_status.setdefault(outcome.status.value, []).append(outcome.path)
    return by_status


def test_given_a_corpus_when_ingested_again_then_only_what_changed_travels_and_all_is_told(
    bare: Ramify, tmp_path: Path, sent: Sent
) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(40):
        (root / f"{number:02}.md").write_text(f"# Page {number}\n\n缓存 vacuum {number}", encoding="utf-8")
    lines = "".join(json.dumps({"id": n, "text": f"line {n}"}) + "\n" for n in range(3))
    (root / "lines.jsonl").write_text(lines, encoding="utf-8")
    (root / "bad.md").write_bytes(b"\xff\xff")

    steps = list(bare.ingest(root))
    pages = [f"notes/{number:02}.md" for number in range(40)]
    records = [f"notes/lines.jsonl#{n}" for n in range(3)]
    assert told(steps) == {"added": [*pages, *records], "failed": ["notes/bad.md"]}
    assert len(travelled(sent)) == 42
    assert (steps[-1].read, steps[-1].total) == (42, 42)
    assert steps[-1].seconds > 0
    assert {"reading", "chunking", "keyword vectors", "writing", "looking up"} <= set(steps[-1].parts)

    sent.clear()
    again = list(bare.ingest(root, prune=True))
    assert told(again) == {"unchanged": [*pages, *records], "failed": ["notes/bad.md"]}
    assert travelled(sent) == ["bad.md"]
    assert isinstance(sent[-1], FinishOrder)
    assert not sent[-1].written

    sent.clear()
    (root / "07.md").write_text("# Page 7\n\nother", encoding="utf-8")
    (root / "08.md").unlink()
    (root / "lines.jsonl").write_text(lines.replace("line 1", "line one"), encoding="utf-8")
    third = told(list(bare.ingest(root, prune=True)))
    assert third["changed"] == ["notes/07.md", records[1]]
    assert third["removed"] == ["notes/08.md"]
    assert third["unchanged"] == [path for path in pages if path[-5:-3] not in {"07", "08"}] + [records[0], records[2]]
    assert travelled(sent) == ["07.md", "bad.md", "lines.jsonl"]
    assert bare.find("one", top_n=1, mode="bm25_only").hits[0].path == records[1]


def test_given_a_message_that_is_lost_when_silent_then_it_is_sent_again(
    bare: Ramify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.md").write_text("text", encoding="utf-8")
    monkeypatch.setattr("orchestrator.ingest.RESEND_S", 1.5)
    monkeypatch.setattr("orchestrator.ingest._POLL_S", 0.5)
    app, lost = bare._app, []
    send = app.send_task

    def losing(name: str, **options: object) -> object:
        if not lost:
            lost.append(name)
            return None
        return send(name, **options)

    monkeypatch.setattr(app, "send_task", losing)
    assert told(list(bare.ingest(tmp_path)))["added"] == [f"{tmp_path.name}/a.md"]
    assert lost == ["index.documents"]
