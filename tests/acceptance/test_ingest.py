"""`ramify ingest` on the embedded stack: what has not changed is not read again, and everything is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from orchestrator.client import Ramify
from orchestrator.documents.ingest import Progress


def told(steps: Sequence[Progress]) -> dict[str, list[str]]:
    by_status: dict[str, list[str]] = {}
    for outcome in sorted((out for step in steps for out in step.outcomes), key=lambda out: out.path):
        by_status.setdefault(outcome.status.value, []).append(outcome.path)
    return by_status


def test_given_a_corpus_when_ingested_again_then_only_what_changed_is_read_and_all_is_told(
    bare: Ramify, tmp_path: Path
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
    assert (steps[-1].read, steps[-1].total) == (42, 42)
    assert steps[-1].seconds > 0
    assert {"reading", "chunking", "keyword vectors", "writing", "looking up"} <= set(steps[-1].parts)

    assert bare.status(steps[-1].job_id).partial, "a file could not be read"
    assert bare.reads_by_name()

    again = list(bare.ingest(root, prune=True))
    assert told(again) == {"unchanged": [*pages, *records], "failed": ["notes/bad.md"]}
    assert not {"keyword vectors", "writing", "links"} & again[-1].parts.keys(), "nothing was read but what is bad"

    (root / "07.md").write_text("# Page 7\n\nother", encoding="utf-8")
    (root / "08.md").unlink()
    (root / "lines.jsonl").write_text(lines.replace("line 1", "line one"), encoding="utf-8")
    job_id = bare.start_ingest(root, prune=True)
    third = told(list(bare.follow_ingest(job_id)))
    assert third["changed"] == ["notes/07.md", records[1]]
    assert third["removed"] == ["notes/08.md"]
    assert third["unchanged"] == [path for path in pages if path[-5:-3] not in {"07", "08"}] + [records[0], records[2]]
    assert bare.find("one", top_n=1, mode="bm25_only").hits[0].path == records[1]
