"""A batch of answers over 1,000 documents of several sections, ten of which change: what runs again, and what it gives.

Run: pytest -m benchmark -s tests/benchmarks/bench_refresh.py
RAMIFY_TEST_ANSWERS is the number of answers (1,000). After the refresh every answer is held against a run of all anew.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.client import Ramify
from orchestrator.evaluation.dataset import objects
from shared.connections.clock import ServerClock
from shared.jobs.stale import StaleAnswers
from shared.models import Answer
from tests.acceptance.conftest import ingested, launched
from tests.benchmarks.bench_binding import SHARED

DOCUMENTS, CHANGED, SECTIONS = 1000, 10, 8
ANSWERS = int(os.environ.get("RAMIFY_TEST_ANSWERS", "1000"))
SETS = ("musique", "hotpotqa", "2wiki", "scifact")
RUN_AGAIN_AT_MOST = 0.15

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(not (SHARED / "eval").is_dir(), reason="the evaluation sets are not beside the project"),
]


def passages(name: str) -> list[tuple[str, str]]:
    return [
        (str(row.get("title", "")), str(row["text"])) for _, row in objects(SHARED / "eval" / name / "corpus.jsonl.gz")
    ]


def questions() -> list[str]:
    """As many from each set."""
    rows = [[str(row["text"]) for _, row in objects(SHARED / "eval" / one / "queries.jsonl.gz")] for one in SETS]
    mixed = [
        rows[at % len(rows)][at // len(rows)]
        for at in range(4 * max(map(len, rows)))
        if at // len(rows) < len(rows[at % len(rows)])
    ]
    return list(dict.fromkeys(mixed))[:ANSWERS]


def written(folder: Path, chance: random.Random) -> list[Path]:
    """1,000 files of eight passages, two of each set."""
    pools = [passages(name) for name in SETS]
    for pool in pools:
        chance.shuffle(pool)
    files = []
    for number in range(DOCUMENTS):
        parts = [
            pool[(SECTIONS // len(pools) * number + at) % len(pool)]
            for pool in pools
            for at in range(SECTIONS // len(pools))
        ]
        files.append(folder / f"{number:04}.md")
        files[-1].write_text(text_of(number, parts), encoding="utf-8")
    return files


def text_of(number: int, parts: list[tuple[str, str]]) -> str:
    return f"# Volume {number}\n\n" + "".join(f"## {title or 'Abstract'}\n\n{text}\n\n" for title, text in parts)


def change(file: Path, kind: int, quote: str = "") -> None:
    """One section, that with the quote: a sentence more, other numbers, a sentence less, or another text."""
    head, *sections = file.read_text(encoding="utf-8").split("\n## ")
    place = next((at for at, one in enumerate(sections) if quote and quote in one), kind % len(sections))
    title, _, text = sections[place].partition("\n\n")
    sentences = text.strip().split(". ")
    changed = {
        0: f"{text.strip()} This was revised in 2026.",
        1: "".join(str(9 - int(c)) if c.isdecimal() and c.isascii() else c for c in text.strip())
        + " (numbers corrected)",
        2: ". ".join(sentences[1:]) or "Nothing is left of it.",
        3: "This section was withdrawn by its authors.",
    }[kind % 4]
    sections[place] = f"{title}\n\n{changed}\n"
    file.write_text("\n## ".join([head, *sections]), encoding="utf-8")


def waited(client: Ramify, batch_id: str) -> None:
    while (status := client.batch_status(batch_id)).open:
        time.sleep(0.5)
    assert status.done + status.degraded == status.enqueued, status


def shown(answer: Answer) -> dict[str, object]:
    """What a reader sees of an answer, part by part."""
    return {
        "text": answer.summary.text,
        "citations": [(one.path, one.quote) for one in answer.summary.citations],
        "first five": [hit.chunk_id for hit in answer.results[:5]],
        "results": [hit.chunk_id for hit in answer.results],
    }


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Ramify]:
    yield from launched(tmp_path / "data")


def test_only_touched_leaves_run_again_and_every_answer_is_that_of_a_full_run(client: Ramify, tmp_path: Path) -> None:
    chance = random.Random(7)
    folder = tmp_path / "volumes"
    folder.mkdir()
    files = written(folder, chance)
    ingested(client, folder)
    asked = questions()
    began = time.monotonic()
    first = client.submit_many(asked, lane="batch")
    waited(client, first.batch_id)
    print(f"\n{len(asked)} answers over {DOCUMENTS} documents in {time.monotonic() - began:.0f} s")

    cited = {
        Path(citation.path).name: citation.quote
        for one in first.job_ids[:50]
        for citation in client.result(one).summary.citations
    }
    of_cited = [file for file in files if file.name in cited]
    others = [file for file in files if file.name not in cited]
    for kind, file in enumerate([*chance.sample(of_cited, 5), *chance.sample(others, 5)]):
        change(file, kind, cited.get(file.name, ""))
    began = time.monotonic()
    ingested(client, folder)
    held = StaleAnswers(client.redis, client.settings, ServerClock(client.redis))
    while held.tenants_with_late():  # what there was no time for at the end of the ingest
        time.sleep(1)
    stale = client.stale_jobs(10_000)
    by = sorted(mark.by.value for job in stale for mark in job.stale)
    counts = {one: by.count(one) for one in dict.fromkeys(by)}
    print(f"ingest and check {time.monotonic() - began:.1f} s, {len(stale)} stale answers, {counts}")

    total = sum(row.leaves_total for row in client.batch_report(first.batch_id))
    began = time.monotonic()
    made = client.refresh(first.batch_id)
    waited(client, made.batch_id or "")
    again = made.taken_over.leaves_total - made.taken_over.leaves
    print(f"refresh {time.monotonic() - began:.1f} s: {again} of {total} leaves ran again ({again / total:.1%})")

    newest = {line.line: line.job_id for line in client.batch_lines(first.batch_id)}
    newest |= {line.line: line.job_id for line in client.batch_lines(made.batch_id or "")}
    full = client.submit_many(asked, lane="batch")
    waited(client, full.batch_id)
    differ: dict[str, list[str]] = {}
    for line in client.batch_lines(full.batch_id):
        refreshed, anew = (shown(client.result(one or "")) for one in (newest[line.line], line.job_id))
        before = shown(client.result(first.job_ids[line.line - 1]))
        for part, value in anew.items():
            if refreshed[part] != value:
                differ.setdefault(part, []).append(f"{line.line}: {asked[line.line - 1]}")
            if before[part] != value:
                differ.setdefault(f"{part} before the refresh", []).append("")
    for part, lines in differ.items():
        print(f"{part}: {len(lines)} of {len(asked)} differ from a full run", *filter(None, lines[:5]), sep="\n    ")
    assert again / total <= RUN_AGAIN_AT_MOST
    assert "text" not in differ
    assert "citations" not in differ
