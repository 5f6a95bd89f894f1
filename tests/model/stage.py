"""Puts the real tasks, through their real steps, on the simulated broker, workers and clock. Patches nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import celery.canvas
from celery import Signature

from shared.tasks.result_backend import LAST

if TYPE_CHECKING:
    from tests.model.broker import Parcel
    from tests.model.world import World


def _whole(signature: Signature, options: dict[str, Any]) -> Signature:
    """The signature with what follows it: a member of a chord is sent as its first task and the rest of its chain."""
    rest = options.get("chain") or []
    return celery.canvas._chain(signature, *reversed(rest), app=signature.app) if rest else signature


class Running:
    """A task as the steps see it while it runs."""

    def __init__(self, world: World, app: Any, parcel: Parcel) -> None:
        self._world, self.app, self.name = world, app, parcel.task
        self.request = SimpleNamespace(
            id=parcel.task_id,
            chord=None if parcel.rest else parcel.chord,
            delivery_info={"priority": parcel.priority},
            chain=[task for task, _ in reversed(parcel.rest)],
            **parcel.headers,
        )

    def add_to_chord(self, signature: Signature) -> None:
        self._world.broker.send(signature, self.request.chord)


class Stage:
    """The two apps' tasks; `world` is the one that plays on it now."""

    def __init__(self) -> None:
        from orchestrator import tasks as plan
        from workers import app as pool
        from workers.enumerate import tasks as lists
        from workers.merge import tasks as merge
        from workers.rerank import tasks as rerank
        from workers.search import tasks as search

        self.world: World
        self.plan, self.search, self.lists, self.rerank, self.merge = plan, search, lists, rerank, merge
        self.registries = (plan.registry, pool.registry)
        self.app = plan.app

    def run(self, parcel: Parcel) -> Parcel:
        """One task, from its message to its return; the parcel with what its chain goes on with then."""
        app = self.registries[0].app if parcel.task.startswith("plan.") else self.registries[1].app
        task: Any = app.tasks[parcel.task]
        running = Running(self.world, app, parcel)
        told = task.run.__func__(running, parcel.raw)
        rest = parcel.rest[len(parcel.rest) - len(running.request.chain) :]
        return replace(parcel, rest=rest, last=LAST in told)

    @contextmanager
    def set(self) -> Iterator[Stage]:
        """While it lasts, tasks run in the world."""
        with ExitStack() as stack:
            for target, name, value in self._changes():
                stack.enter_context(patch.object(target, name, value))
            yield self

    def _changes(self) -> Iterator[tuple[Any, str, Any]]:
        from orchestrator.reaper import reaper, views
        from shared.jobs import work
        from shared.tasks import work_tracker

        for kind in (Signature, celery.canvas._chain, celery.canvas._chord):
            yield kind, "apply_async", lambda signature, *_, **options: self.world.send(_whole(signature, options))
        for module in (work, reaper):
            yield module, "worker_id", self._later("worker_id")
        for module in (views, work_tracker):
            yield module, "alive_workers", lambda _, ids, **__: self.world.living(ids)
        yield reaper, "queue_lengths", lambda *_, **__: self.world.broker.lengths()
        yield work_tracker, "time", SimpleNamespace(monotonic=lambda: self.world.true, sleep=self._later("sleep"))
        yield work_tracker, "Thread", lambda target, **_: self.world.thread(target)
        yield from self._labour()

    def _labour(self) -> Iterator[tuple[Any, str, Any]]:
        yield self.plan, "planner", lambda: self.world.labour
        for module in (self.search, self.rerank):
            yield module, "shared_cache", lambda: None
        for module in (self.search, self.lists):
            yield module, "search_resources", lambda: None
        yield self.lists, "read_shard", self._later("labour.read_shard")
        yield self.lists, "llm_of", lambda *_: object()
        yield self.lists, "fill_columns", self._later("labour.fill_columns")
        yield self.search, "run_search_stages", self._later("labour.run_search_stages")
        yield self.rerank, "_reranker", lambda: None
        yield self.rerank, "run_rerank_stages", self._later("labour.run_rerank_stages")
        yield self.merge, "run_aggregator", self._later("labour.run_aggregator")
        yield self.merge.tree, "merge_tree", self._later("labour.merge_tree", self.merge.tree.merge_tree)
        yield self.rerank, "rerank_pool", self._later("labour.rerank_pool", self.rerank.rerank_pool)

    def _later(self, name: str, *first: Any) -> Callable[..., Any]:
        """The method of that name, of whatever world plays when it is called."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return attrgetter(name)(self.world)(*first, *args, **kwargs)

        return call

    def enter(self, world: World) -> None:
        """`world` plays from now on: the steps of both sides use its job store."""
        from shared.jobs.budget import Ledger
        from shared.tasks.signatures import Dispatcher

        self.world = world
        world.jobs.endings.on_end = Dispatcher(self.app, world.jobs).try_run
        for registry in self.registries:
            registry.jobs, registry._tracker = world.jobs, world.watches
            registry._ledger = Ledger(world.jobs.client, world.jobs.settings)
