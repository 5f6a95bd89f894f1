"""Whether the same run gives the same bytes, and whether each single change is named as the cause it is.

Run: RAMIFY_TEST_JOBS=1000 python -m pytest -m benchmark -s tests/benchmarks/bench_records.py
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.client import Ramify
from orchestrator.records.causes import Cause, compared
from orchestrator.records.diff import AnswerDifference
from shared.models.replay import ReplayStage
from tests.acceptance.conftest import NOTES, ingested, launched
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replies import Fault

JOBS = int(os.environ.get("RAMIFY_TEST_JOBS", "100"))
TOPICS = (
    "Redis Streams", "RabbitMQ", "vacuum", "the checkout slowdown", "blue-green releases", "库存扣减", "缓存雪崩",
    "慢查询", "倒排索引", "消息顺序", "reciprocal rank fusion", "the restore drill", "BM25", "connection pools",
)  # fmt: skip
FORMS = (
    "What is {} and what went wrong with it, part {}?", "Why was {} chosen, how is it run, and who owns it, part {}?",
    "{}的原因是什么，怎么处理，第{}部分？", "Compare {} with its alternatives, point {}.",
    "How do we use {} in step {}?",
)  # fmt: skip
QUESTION = "How should we choose between Redis Streams and RabbitMQ, and what went wrong with the first choice?"
#: One setting each, as a replay changes it. The order is that of the pools' rooms.
SETTINGS: tuple[dict[str, Any], ...] = (
    {"multi_query": {"max_total_results": 7, "min_per_leaf": 1}}, {"multi_query": {"top_n_per_leaf": 2}},
    {"multi_query": {"candidates_per_query": 5}}, {"decomposition": {"max_level": 1, "max_children": 2}},
    {"decomposition": {"max_total_leaves": 2}}, {"search": {"strategy": "bm25_only"}},
    {"search": {"excludes": ["queues/"]}}, {"routing": {"adaptive": False}},
    {"aggregators": {"reasoning": {"passages": 1}}}, {"search": {"source_boosts": {"queues/": 3.0}}},
)  # fmt: skip
PLANS = tuple([f"What is said of {topic}?", "What went wrong?"] for topic in TOPICS[:10])

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3000)]


def questions() -> list[str]:
    return [FORMS[n % len(FORMS)].format(TOPICS[n % len(TOPICS)], n) for n in range(JOBS)]


def ended(client: Ramify, job_ids: Iterable[str]) -> list[str]:
    waiting = list(job_ids)
    for job_id in waiting:
        assert client.wait(job_id, 300).state == "done"
    return waiting


def leaf_order(client: Ramify, job_id: str) -> tuple[str, ...]:
    return tuple(event.data["id"] for event in client.stream(job_id, 5) if event.data.get("status") == "done")


def test_the_same_questions_give_the_same_bytes_with_other_workers_orders_and_a_restart(tmp_path: Path) -> None:
    asked, digests, orders = questions(), dict[str, str](), dict[str, tuple[str, ...]]()
    of = dict[str, str]()
    for client in launched(tmp_path / "data"):
        ingested(client, NOTES)
        ids = client.submit_many(asked).job_ids
        for question, job_id in zip(asked, ended(client, ids), strict=True):
            digests[question], orders[question] = client.manifest(job_id).digest, leaf_order(client, job_id)
            of[question] = job_id
    shuffled = random.Random(3).sample(asked, len(asked))
    same, other_order, began = Counter[str](), 0, time.perf_counter()
    pools = {"pools": {"search": 1, "plan": 1, "rerank": 9, "merge": 2}}
    for client in launched(tmp_path / "data", **pools):
        stages = list(ReplayStage)
        made = [(question, stages[n % len(stages)]) for n, question in enumerate(shuffled)]
        ids = [client.replay(of[question], stage).job_id for question, stage in made]
        for (question, stage), job_id in zip(made, ended(client, ids), strict=True):
            equal = client.manifest(job_id).digest == digests[question]
            same[f"{stage} {'same' if equal else 'OTHER'}"] += 1
            if not stage.keeps_leaves:
                other_order += leaf_order(client, job_id) != orders[question]
    spent = time.perf_counter() - began
    total = sum(count for name, count in same.items() if name.endswith("same"))
    print(f"\n{total} of {JOBS} replays byte-identical after a restart with other worker counts, in {spent:.0f} s")
    print(f"{dict(sorted(same.items()))}; leaves ended in another order in {other_order} of them")
    assert total == JOBS


class Changes:
    """Makes single changes of a stack with models, and asks the same question before and after each."""

    def __init__(self, client: Ramify, corpus: Path, fake: FakeOpenAI) -> None:
        self.client, self.corpus, self.fake = client, corpus, fake

    def asked(self, **options: Any) -> str:
        job_id = self.client.submit(QUESTION, summary=True, deadline_s=60, **options)
        return ended(self.client, [job_id])[0]

    def differs(self, before: str, after: str) -> AnswerDifference:
        return compared(self.client.manifest(before), self.client.manifest(after))

    def documents(self) -> Iterator[tuple[str, AnswerDifference]]:
        """Ten changes of the corpus: edits of what was found, a deletion, new documents."""
        for number in range(10):
            before = self.asked()
            found = [one for one in self.client.manifest(before).record.documents if one.path.endswith(".md")]
            path = self.corpus.parent / found[number % len(found)].path
            if number % 5 == 3:
                path = self.corpus / f"new-{number}.md"
                path.write_text(f"# {QUESTION}\n\nWe chose Redis Streams and RabbitMQ by measurement {number}.\n")
            elif number % 5 == 4:
                path.unlink()
            else:
                path.write_text(path.read_text() + f"\n\nRedis Streams lost {number} messages to RabbitMQ in May.\n")
            for _ in self.client.ingest([self.corpus], prune=True):
                pass
            yield f"document {path.name}", self.differs(before, self.asked())

    def settings(self) -> Iterator[tuple[str, AnswerDifference]]:
        before = self.asked()
        for setting in SETTINGS:
            made = self.client.replay(before, ReplayStage.PLAN, settings=setting)
            yield f"setting {setting}", self.differs(before, ended(self.client, [made.job_id])[0])

    def plans(self) -> Iterator[tuple[str, AnswerDifference]]:
        before = self.asked()
        for plan in PLANS:
            yield f"plan {plan}", self.differs(before, self.asked(subqueries=plan))

    def outages(self) -> Iterator[tuple[str, AnswerDifference]]:
        """The LLM, the embedding server and the reranker fail in turn, in several ways."""
        for number in range(10):
            endpoint, status = ("chat", "embeddings", "rerank")[number % 3], (500, 503, 429, 401)[number % 4]
            before = self.asked()
            self.fake.handle(endpoint, lambda _, status=status: Fault(status))
            after = self.asked()
            self.fake.forget()
            yield f"outage {endpoint} {status}", self.differs(before, after)


def with_models(fake: FakeOpenAI, **other: Any) -> dict[str, Any]:
    server = {"provider": "endpoint", "base_url": fake.url, "timeout_s": 5}
    models: dict[str, Any] = {
        "llm_base_url": fake.url, "llm_model": "fake", "llm_timeout_s": 5, "llm_attempts": 1,
        "embedding": {**server, "model": "fake", "dim": 64}, "rerank": {**server, "model": "fake", "attempts": 1},
        "providers": {"breaker": {"failures": 0}}, "cache": {"enabled": False},
    }  # fmt: skip
    return models | other


def test_each_single_change_is_named_as_the_cause(tmp_path: Path) -> None:
    corpus, named, wrong = tmp_path / "notes", Counter[str](), list[str]()
    shutil.copytree(NOTES / "en" / "queues", corpus / "queues")
    shutil.copytree(NOTES / "en" / "decisions", corpus / "decisions")

    def count(cause: Cause, made: Iterable[tuple[str, AnswerDifference]]) -> None:
        for what, found in made:
            right = found.causes == (cause,) or (found.same and not found.causes)
            named[f"{cause} {'right' if right and not found.same else 'same' if right else 'WRONG'}"] += 1
            if not right or found.same:
                wrong.append(f"{what}: {found.sentence}")

    with FakeOpenAI() as fake:
        for client in launched(tmp_path / "data", **with_models(fake)):
            ingested(client, corpus)
            changes = Changes(client, corpus, fake)
            parts: tuple[tuple[Cause, Callable[[], Iterable[tuple[str, AnswerDifference]]]], ...] = (
                (Cause.SETTINGS, changes.settings), (Cause.PLAN, changes.plans), (Cause.OUTAGE, changes.outages),
                (Cause.CORPUS, changes.documents),
            )  # fmt: skip
            for cause, part in parts:
                count(cause, part())
            before = changes.asked()
        for number in range(10):
            other = {"llm_model": f"llm-{number}"} if number % 2 else {}
            if not other:
                rerank = with_models(fake)["rerank"] | {"model": f"rerank-{number}"}
                other = {"rerank": rerank}
            for client in launched(tmp_path / "data", **with_models(fake, **other)):
                made = Changes(client, corpus, fake)
                count(Cause.MODEL, [(f"model {other}", made.differs(before, made.asked()))])
    right = sum(number for name, number in named.items() if name.endswith("right"))
    print(
        f"\n{right} of {sum(named.values())} single changes named with the right cause\n{dict(sorted(named.items()))}"
    )
    print("\n".join(wrong))
    assert not wrong
