"""Standing questions over a corpus that streams in: what is announced, what of that is false, how many jobs it takes.

Run: pytest -m benchmark -s tests/benchmarks/bench_standing.py
Half of the corpus is there at first, the other half comes in steps. At each step all questions are asked anew as well:
what these answers cite for the first time is what can be announced. RAMIFY_TEST_QUESTIONS (25), RAMIFY_TEST_STEPS (40),
RAMIFY_TEST_RANKS (as `standing.ranks`).
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from orchestrator.client import Ramify
from orchestrator.evaluation.dataset import Dataset, load_dataset, objects
from orchestrator.standing.facts import changed, facts_of
from shared.models.standing import CitedFact
from shared.settings.standing import StandingSettings
from tests.acceptance.conftest import launched
from tests.benchmarks.bench_binding import SHARED

NAME = os.environ.get("RAMIFY_TEST_SET", "hotpotqa")
QUESTIONS, STEPS = (int(os.environ.get(f"RAMIFY_TEST_{one}", n)) for one, n in (("QUESTIONS", "25"), ("STEPS", "40")))
RANKS = int(os.environ.get("RAMIFY_TEST_RANKS", StandingSettings().ranks))
RECALL_AT_LEAST, FALSE_AT_MOST, JOBS_AT_MOST = 0.95, 0.10, 0.20

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(not (SHARED / "eval").is_dir(), reason="the evaluation sets are not beside the project"),
]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Ramify]:
    free = {"at_once": 100, "jobs_per_hour": 1_000_000, "sample": 0.02, "ranks": RANKS}
    yield from launched(tmp_path / "data", standing=free)


def put(client: Ramify, rows: list[Mapping[str, str]]) -> None:
    documents = (
        {"id": row["id"], "content": f"# {row['title']}\n\n{row['text']}\n", "path": f"{row['id']}.md"} for row in rows
    )
    assert client.wait(client.upsert(documents, source="stream")).state == "done"


def settled(client: Ramify, changes: int) -> None:
    """Until every standing question has seen so many changes and has no job under way."""
    before: list[object] = []
    while True:
        states = [one.state for one in client.standing.all()]
        if all(one.answer and not one.running and one.changes >= changes for one in states) and states == before:
            return
        before = list(states)
        time.sleep(3.5)


def asked_anew(client: Ramify, questions: list[str]) -> list[tuple[CitedFact, ...]]:
    taken = client.submit_many(questions, lane="batch")
    while client.batch_status(taken.batch_id).open:
        time.sleep(0.3)
    return [facts_of(client.result(job_id)) for job_id in taken.job_ids]


def passages_of(facts: tuple[CitedFact, ...]) -> set[str]:
    return {Path(fact.path).stem for fact in facts}


def half(dataset: Dataset) -> tuple[list[Mapping[str, str]], list[list[Mapping[str, str]]]]:
    rows = [row for _, row in objects(dataset.corpus.path)]
    random.Random(3).shuffle(rows)
    later = rows[len(rows) // 2 :]
    return rows[: len(rows) // 2], [later[at::STEPS] for at in range(STEPS)]


def test_what_first_becomes_reachable_is_announced_and_little_else_with_few_jobs(client: Ramify) -> None:
    dataset = load_dataset(SHARED / "eval" / NAME, limit=QUESTIONS)
    questions = [one.text for one in dataset.questions]
    relevant = [{doc for doc, grade in dataset.qrels[one.id].items() if grade} for one in dataset.questions]
    first, steps = half(dataset)
    put(client, first)
    ids = [client.watch(question).id for question in questions]
    settled(client, 0)
    began = sum(sum(client.standing.get(one).state.runs.values()) for one in ids)
    before = asked_anew(client, questions)
    seen = [passages_of(facts) for facts in before]
    told = dict.fromkeys(ids, 0)
    found = Counter[str]()
    for number, rows in enumerate(steps, 1):
        put(client, rows)
        settled(client, number)
        now = asked_anew(client, questions)
        for place, standing_id in enumerate(ids):
            notices = client.standing.notices(standing_id)
            new = notices[: client.standing.get(standing_id).state.notices - told[standing_id]]
            told[standing_id] += len(new)
            announced = {Path(fact.path).stem for notice in new for fact in notice.new}
            reachable = (passages_of(now[place]) - seen[place]) & relevant[place]
            found["reachable"] += len(reachable)
            found["announced"] += len(reachable & announced)
            differs = any(changed(before[place], now[place]))
            found["notices"] += len(new)
            found["false"] += 0 if differs else len(new)
            found["changed"] += differs
            found["told"] += differs and bool(new)
            found["of relevant"] += bool(announced & relevant[place])
            seen[place] |= passages_of(now[place])
        before = now
    states = [client.standing.get(one).state for one in ids]
    jobs = sum(sum(state.runs.values()) for state in states) - began
    kinds = sum((Counter(state.runs) for state in states), Counter[str]())
    samples, missed = sum(state.samples for state in states), sum(state.missed for state in states)
    print(f"\n{NAME}: {QUESTIONS} questions, {len(first)} passages and {STEPS} steps of {len(steps[0])}: {dict(found)}")
    share = jobs / QUESTIONS / STEPS
    print(f"jobs {jobs} of {QUESTIONS * STEPS} ({share:.1%}) {dict(kinds)}; missed {missed} of {samples}")
    recall = found["announced"] / max(1, found["reachable"])
    false = found["false"] / max(1, found["notices"])
    print(f"relevant passages announced {recall:.1%}, false notices {false:.1%}")
    assert recall >= RECALL_AT_LEAST
    assert false <= FALSE_AT_MOST
    assert share <= JOBS_AT_MOST
