"""The plan pool and the index pool of a test: takes their messages off real queues and runs the real tasks."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from orchestrator.documents.ingest import plan_ingest
from orchestrator.local.state import make_folders, make_path_key
from shared.connections.heartbeat import Heartbeat
from shared.contract import Queue, TaskName, queue_keys
from shared.settings import Settings
from shared.tasks.app import make_app
from shared.tasks.task_run import TaskRegistry, TaskRun, fail_job
from tests.fakes.stores import open_store
from workers.index.item_tasks import ItemTasks
from workers.index.pipeline import Indexer

_QUEUES = [key for queue in (Queue.PLAN, Queue.INDEX) for key in queue_keys(queue)]


class IndexPool:
    """`reads`: it has the key of the data folder, so that clients name files to it."""

    def __init__(self, client: redis.Redis, settings: Settings, *, reads: bool = True) -> None:
        self.client, self.settings = client, settings
        make_folders(settings)
        if reads:
            make_path_key(settings)
        self.app = make_app(settings)
        registry = TaskRegistry(self.app)
        self.jobs = registry.jobs
        self.store = open_store(settings)
        indexer = Indexer(self.store, None, settings)
        tasks = ItemTasks(self.app, settings.chunking, lambda _: indexer)
        self._tasks = {
            "plan.job": registry(TaskName.PLAN_JOB, fail_job)(self._plan),
            "index.documents": registry(TaskName.INDEX_DOCUMENTS, tasks.failed, tasks.about_document)(tasks.documents),
            "index.finish": registry(TaskName.INDEX_FINISH, fail_job)(tasks.finish),
        }
        self._beat = Heartbeat(client, settings, (Queue.INDEX.value,))
        self._beat._beat()
        self._beat.start()
        self._over = threading.Event()

    def _plan(self, run: TaskRun) -> None:
        if run.jobs.start_planning(run.job.id, run.claimant):
            plan_ingest(run, self.app)

    def take(self) -> tuple[str, dict[str, object]] | None:
        """The next message off the queues: task, arguments."""
        for key in _QUEUES:
            if raw := self.client.rpop(key):
                message = json.loads(raw)
                (arguments, *_) = json.loads(base64.b64decode(message["body"]))
                return message["headers"]["task"], arguments[0]
        return None

    def step(self) -> bool:
        """Run the next message's task. False when there is none."""
        if (found := self.take()) is None:
            return False
        self.run(*found)
        return True

    def run(self, name: str, message: dict[str, object]) -> None:
        """Run a task of this name."""
        self._tasks[name].apply(args=(message,), throw=True)

    def run_all(self) -> None:
        """Run tasks until no message is left."""
        while self.step():
            pass

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Run tasks on a thread meanwhile."""
        thread = threading.Thread(target=self._serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join(10)

    def _serve(self) -> None:
        while not self._over.is_set():
            if not self.step():
                self._over.wait(0.005)

    def paths(self) -> list[str]:
        """What is stored, document by document."""
        hits = [hit for page in self.store.scroll(None) for hit in page]
        return sorted(hit.path for hit in hits if hit.ordinal == 0 and hit.part not in {"abstract", "overview"})

    def close(self) -> None:
        self._beat.stop()
        self.store.close()
        self.app.close()
