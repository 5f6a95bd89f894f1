"""Standing questions over a corpus that streams in: what is announced, what of that is false, how many jobs it takes.

Run: pytest -m benchmark -s tests/benchmarks/bench_standing.py
Passages of several sets, English and Chinese, lookups and questions of several hops, stand in one corpus: half of it
is there at first, the other half comes in steps. At each step all questions are asked anew as well: what these answers
cite for the first time is what can be announced, and a notice is false where they cite what they did before. By default
the jobs run in this process, by the code of the pools; RAMIFY_TEST_STACK=1 takes a stack as users start it.
RAMIFY_TEST_SETS; of each set RAMIFY_TEST_QUESTIONS (25) and RAMIFY_TEST_PASSAGES (1600); RAMIFY_TEST_STEPS (20).
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest
import redis

from orchestrator.client import Ramify
from orchestrator.evaluation.dataset import load_dataset, objects
from orchestrator.local.state import make_folders
from orchestrator.standing.runner import StandingRunner
from shared.cited_facts import changed, facts_of
from shared.connections.clock import ServerClock
from shared.jobs.stale import StaleAnswers
from shared.models.standing import CitedFact
from shared.settings import load_settings
from tests.acceptance.conftest import launched
from tests.benchmarks.bench_binding import SHARED
from tests.benchmarks.in_process import InProcess

SETS = os.environ.get("RAMIFY_TEST_SETS", "hotpotqa,musique,2wiki,scifact,cmrc2018,t2ranking_mini").split(",")
QUESTIONS, PASSAGES, STEPS = (
    int(os.environ.get(f"RAMIFY_TEST_{name}", number))
    for name, number in (("QUESTIONS", "25"), ("PASSAGES", "1600"), ("STEPS", "20"))
)
STACK = bool(os.environ.get("RAMIFY_TEST_STACK"))
RECALL_AT_LEAST, FALSE_AT_MOST, JOBS_AT_MOST = 0.95, 0.10, 0.20
FREE = {"at_once": 100, "jobs_per_hour": 1_000_000, "most_questions": 10_000, "sample": 0.02}

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(not (SHARED / "eval").is_dir(), reason="the evaluation sets are not beside the project"),
]


class Watched(NamedTuple):
    """A question, and the names of the passages that answer it."""

    of: str
    text: str
    relevant: frozenset[str]


class World(Protocol):
    """Where documents come in and standing questions are looked at."""

    client: Ramify

    def put(self, texts: Mapping[str, str]) -> None: ...

    def settle(self, changes: int) -> None: ...

    def anew(self, questions: Sequence[str]) -> list[tuple[CitedFact, ...]]: ...


class OneProcess:
    """The store, the checks and the looks in this process."""

    def __init__(self, client: redis.Redis, folder: Path, redis_url: str) -> None:
        settings = load_settings(redis={"url": redis_url}, data_dir=folder, standing=FREE, staleness={"check_s": 600})
        make_folders(settings)
        self.pools, self.client = InProcess(client, settings), Ramify(settings)
        self._runner = StandingRunner(self.pools.app, self.pools.jobs)
        self._redis = client
        self.check_s, self.anew_s = 0.0, 0.0

    def put(self, texts: Mapping[str, str]) -> None:
        began = time.process_time()
        checked = self.pools.change(texts)
        self.check_s += time.process_time() - began
        assert not checked.left

    def settle(self, changes: int) -> None:
        for _ in range(3):
            self._runner.run()
            states = [one.state for one in self.client.standing.all()]
            for job_id in filter(None, (state.running for state in states)):
                if not self.pools.jobs.job(job_id).terminal:  # type: ignore[union-attr]
                    self.pools.run(job_id)
            self._runner.run()
            self.pools.check.run_rechecks("default")
        for queue in ("plan", "search", "rerank", "merge"):
            self._redis.delete(queue)

    def anew(self, questions: Sequence[str]) -> list[tuple[CitedFact, ...]]:
        began = time.process_time()
        found = [facts_of(self.pools.anew(question)) for question in questions]
        self.anew_s += time.process_time() - began
        return found

    def close(self) -> None:
        print(f"processor time: ingest and check {self.check_s:.0f} s, all questions anew {self.anew_s:.0f} s")
        self.client.close()
        self.pools.close()


class Stack:
    """A stack with every pool as a process of its own."""

    def __init__(self, client: Ramify) -> None:
        self.client = client

    def put(self, texts: Mapping[str, str]) -> None:
        documents = ({"id": name, "content": text, "path": f"{name}.md"} for name, text in texts.items())
        assert self.client.wait(self.client.upsert(documents, source="stream")).state == "done"

    def settle(self, changes: int) -> None:
        """Until every standing question has seen so many changes, all looks are through, and no job is under way."""
        before: list[object] = []
        held = StaleAnswers(self.client.redis, self.client.settings, ServerClock(self.client.redis))
        while True:
            states = [one.state for one in self.client.standing.all()]
            seen = all(one.answer and not one.running and one.changes >= changes for one in states)
            if seen and states == before and not held.tenants_with_rechecks():
                return
            before = list(states)
            time.sleep(3.5)

    def anew(self, questions: Sequence[str]) -> list[tuple[CitedFact, ...]]:
        taken = self.client.submit_many(questions, lane="batch")
        while self.client.batch_status(taken.batch_id).open:
            time.sleep(0.3)
        return [facts_of(self.client.result(job_id)) for job_id in taken.job_ids]


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if STACK:
        for client in launched(tmp_path / "data", standing=FREE):
            yield Stack(client)
        return
    made = OneProcess(request.getfixturevalue("client"), tmp_path / "data", request.getfixturevalue("redis_url"))
    yield made
    made.close()


def stream() -> tuple[list[Watched], dict[str, str], list[dict[str, str]]]:
    """The questions, what is there at first, and what comes in each step."""
    chance, asked, rows = random.Random(3), list[Watched](), list[tuple[str, str]]()
    for of in SETS:
        dataset = load_dataset(SHARED / "eval" / of, limit=QUESTIONS)
        for one in dataset.questions:
            relevant = {name for name, grade in dataset.qrels[one.id].items() if grade}
            asked.append(Watched(of, one.text, frozenset(_name(of, name) for name in relevant)))
        wanted = frozenset().union(*(one.relevant for one in asked))
        passages = [
            (_name(of, row["id"]), f"# {row['title']}\n\n{row['text']}\n") for _, row in objects(dataset.corpus.path)
        ]
        chance.shuffle(passages)
        passages.sort(key=lambda one: one[0] not in wanted)
        rows += passages[:PASSAGES]
    chance.shuffle(rows)
    later = rows[len(rows) // 2 :]
    return asked, dict(rows[: len(rows) // 2]), [dict(later[at::STEPS]) for at in range(STEPS)]


def _name(of: str, passage: str) -> str:
    return f"{of}-{passage}"


def cited(facts: Sequence[CitedFact]) -> set[str]:
    return {Path(fact.path).stem for fact in facts}


class Account:
    """What was found of each set."""

    def __init__(self, asked: Sequence[Watched], first: Sequence[Sequence[CitedFact]]) -> None:
        self.asked, self.before, self.seen = asked, list(first), [cited(facts) for facts in first]
        self.found: dict[str, Counter[str]] = {of: Counter() for of in SETS}

    def step(self, place: int, now: Sequence[CitedFact], told: Sequence[set[str]]) -> str:
        """One question behind one step; a line about what went wrong."""
        watched, found = self.asked[place], self.found[self.asked[place].of]
        announced = set().union(*told)
        reachable = (cited(now) - self.seen[place]) & watched.relevant
        differs = any(changed(self.before[place], now))
        found.update({
            "reachable": len(reachable), "announced": len(reachable & announced), "notices": len(told),
            "false": 0 if differs else len(told), "changed": differs, "told": differs and bool(told),
            "of relevant": bool(announced & watched.relevant),
        })  # fmt: skip
        self.seen[place] |= cited(now)
        self.before[place] = now
        if bool(told) == differs and reachable <= announced:
            return ""
        return (
            f"{watched.of} told {len(told)}, differs {differs}, missed {sorted(reachable - announced)}: {watched.text}"
        )

    def total(self) -> Counter[str]:
        return sum(self.found.values(), Counter[str]())


def test_what_first_becomes_reachable_is_announced_and_little_else_with_few_jobs(world: World) -> None:
    asked, first, steps = stream()
    world.put(first)
    ids = [world.client.watch(one.text).id for one in asked]
    world.settle(0)
    standing = world.client.standing
    began = sum(sum(standing.get(one).state.runs.values()) for one in ids)
    account = Account(asked, world.anew([one.text for one in asked]))
    told = dict.fromkeys(ids, 0)
    for number, rows in enumerate(steps, 1):
        world.put(rows)
        world.settle(number)
        now = world.anew([one.text for one in asked])
        for place, standing_id in enumerate(ids):
            count = standing.get(standing_id).state.notices
            notices = standing.notices(standing_id)[: count - told[standing_id]]
            told[standing_id] = count
            if line := account.step(place, now[place], [cited(notice.new) for notice in notices]):
                print(f"step {number}: {line}")
    states = [standing.get(one).state for one in ids]
    jobs = sum(sum(state.runs.values()) for state in states) - began
    kinds = sum((Counter(state.runs) for state in states), Counter[str]())
    samples, missed = sum(state.samples for state in states), sum(state.missed for state in states)
    for of, found in account.found.items():
        print(f"{of}: {dict(found)}")
    total, share = account.total(), jobs / len(asked) / STEPS
    print(f"{len(asked)} questions, {len(first)} passages and {STEPS} steps of {len(steps[0])}: {dict(total)}")
    print(f"jobs {jobs} of {len(asked) * STEPS} ({share:.1%}) {dict(kinds)}; missed {missed} of {samples}")
    recall = total["announced"] / max(1, total["reachable"])
    false = total["false"] / max(1, total["notices"])
    print(f"relevant passages announced {recall:.1%}, false notices {false:.1%}")
    assert recall >= RECALL_AT_LEAST
    assert false <= FALSE_AT_MOST
    assert share <= JOBS_AT_MOST
