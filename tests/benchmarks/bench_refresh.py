"""A batch of answers over 1,000 documents of several sections, ten of which change: what runs again, and what it gives.

Run: pytest -m benchmark -s tests/benchmarks/bench_refresh.py
After the refresh every answer is held against a run of all anew. By default the jobs run in this process, by the code
of the pools; RAMIFY_TEST_STACK=1 takes a stack as users start it. RAMIFY_TEST_ANSWERS and RAMIFY_TEST_DOCUMENTS (1000).
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
import redis

from orchestrator.client import Ramify
from orchestrator.evaluation.dataset import objects
from orchestrator.retries.refresh import Refreshing
from orchestrator.submitting import Submitter
from shared.connections.clock import ServerClock
from shared.jobs.stale import StaleAnswers
from shared.models import Answer
from shared.settings import load_settings
from tests.acceptance.conftest import ingested, launched
from tests.benchmarks.bench_binding import SHARED
from tests.benchmarks.in_process import TENANT, InProcess

CHANGED, SECTIONS = 10, 8
ANSWERS, DOCUMENTS = (int(os.environ.get(f"RAMIFY_TEST_{one}", "1000")) for one in ("ANSWERS", "DOCUMENTS"))
STACK = bool(os.environ.get("RAMIFY_TEST_STACK"))
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


def shown(answer: Answer) -> dict[str, object]:
    """What a reader sees of an answer, part by part."""
    return {
        "text": answer.summary.text,
        "citations": [(one.path, one.quote) for one in answer.summary.citations],
        "first five": [hit.chunk_id for hit in answer.results[:5]],
        "results": [hit.chunk_id for hit in answer.results],
    }


class World(Protocol):
    """Where documents are put in, questions asked, and stale answers refreshed."""

    def put(self, files: Sequence[Path]) -> None:
        """Put documents in, and have all kept answers held against them."""

    def ask(self, questions: Sequence[str]) -> list[str]:
        """The jobs of the answers."""

    def answer(self, job_id: str) -> Answer: ...

    def refresh(self) -> tuple[dict[str, str], int]:
        """Each stale answer -> the new one, and how many leaves ran again."""

    def anew(self, questions: Sequence[str]) -> list[Answer]:
        """What a full run gives now."""


class OneProcess:
    """The store, the checks and the jobs in this process."""

    def __init__(self, client: redis.Redis, folder: Path, redis_url: str) -> None:
        settings = load_settings(redis={"url": redis_url}, data_dir=folder, staleness={"check_s": 600, "close_s": 600})
        self.pools = InProcess(client, settings)
        self._refreshing = Refreshing(self.pools.jobs, Submitter(self.pools.app, self.pools.jobs))

    def put(self, files: Sequence[Path]) -> None:
        began = time.process_time()
        print(self.pools.change({file.stem: file.read_text(encoding="utf-8") for file in files}))
        print(f"ingest and check {time.process_time() - began:.1f} s of processor time", end=", ")
        self.pools.look_closely()
        print(f"with the close look {time.process_time() - began:.1f} s")

    def ask(self, questions: Sequence[str]) -> list[str]:
        return [self.pools.submit(question) for question in questions]

    def answer(self, job_id: str) -> Answer:
        return self.pools.jobs_answer(job_id)

    def refresh(self) -> tuple[dict[str, str], int]:
        made, again = dict[str, str](), 0
        for job_id in list(self._refreshing.stale(TENANT)):
            again += len({leaf for mark in self.pools.marks(job_id) for leaf in mark.leaves})
            made[job_id] = self._refreshing.job(job_id).job_id or ""
            self.pools.run(made[job_id])
        return made, again

    def anew(self, questions: Sequence[str]) -> list[Answer]:
        return [self.pools.anew(question) for question in questions]


class Stack:
    """A stack with every pool as a process of its own."""

    def __init__(self, client: Ramify) -> None:
        self.client, self._batch_id = client, ""

    def put(self, files: Sequence[Path]) -> None:
        ingested(self.client, files[0].parent)
        held = StaleAnswers(self.client.redis, self.client.settings, ServerClock(self.client.redis))
        while held.tenants_with_rechecks():  # what there was no time for at the end of the ingest
            time.sleep(1)

    def ask(self, questions: Sequence[str]) -> list[str]:
        taken = self.client.submit_many(questions, lane="batch")
        self._waited(taken.batch_id)
        self._batch_id = taken.batch_id
        return list(taken.job_ids)

    def _waited(self, batch_id: str) -> None:
        while (status := self.client.batch_status(batch_id)).open:
            time.sleep(0.5)
        assert status.done + status.degraded == status.enqueued, status

    def answer(self, job_id: str) -> Answer:
        return self.client.result(job_id)

    def refresh(self) -> tuple[dict[str, str], int]:
        made = self.client.refresh(self._batch_id)
        self._waited(made.batch_id or "")
        new = self.client.statuses(self.client.batch_jobs(made.batch_id or ""))
        again = made.taken_over.leaves_total - made.taken_over.leaves
        return {one.retry_of or "": one.job_id for one in new}, again

    def anew(self, questions: Sequence[str]) -> list[Answer]:
        return [self.answer(job_id) for job_id in self.ask(questions)]


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if STACK:
        for client in launched(tmp_path / "data"):
            yield Stack(client)
        return
    made = OneProcess(request.getfixturevalue("client"), tmp_path / "data", request.getfixturevalue("redis_url"))
    yield made
    made.pools.close()


def test_only_touched_leaves_run_again_and_every_answer_is_that_of_a_full_run(world: World, tmp_path: Path) -> None:
    chance, folder, asked = random.Random(7), tmp_path / "volumes", questions()
    folder.mkdir()
    files = written(folder, chance)
    world.put(files)
    first = world.ask(asked)
    before = {job_id: world.answer(job_id) for job_id in first}
    cited = {Path(one.path).stem: one.quote for job_id in first[:50] for one in before[job_id].summary.citations}
    of_cited = [file for file in files if file.stem in cited]
    others = [file for file in files if file.stem not in cited]
    chosen = [*chance.sample(of_cited, CHANGED // 2), *chance.sample(others, CHANGED - CHANGED // 2)]
    for kind, file in enumerate(chosen):
        change(file, kind, cited.get(file.stem, ""))
    world.put(chosen)
    made, again = world.refresh()
    total = sum(len(answer.leaves) for answer in before.values())
    print(f"{len(made)} of {len(asked)} answers refreshed, {again} of {total} leaves ran again ({again / total:.1%})")
    differ = Counter[str]()
    for question, job_id, full in zip(asked, first, world.anew(asked), strict=True):
        old, new = shown(before[job_id]), shown(world.answer(made.get(job_id, job_id)))
        for part, value in shown(full).items():
            differ[part] += new[part] != value
            differ[f"{part} before the refresh"] += old[part] != value
        if new["text"] != full.summary.text:
            print(f"another text: {question}")
    print(f"differ from a full run: {dict(differ)}")
    assert again / total <= RUN_AGAIN_AT_MOST
    assert not differ["text"]
    assert not differ["citations"]
