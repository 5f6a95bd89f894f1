"""What orchestrator and workers agree on: task names, queues, priorities and messages."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, ValidationError

from shared.errors import MessageVersionError
from shared.models import Lane
from shared.models.base import Model

MESSAGE_VERSION = 1
_NO_VERSION = 1_000_000
#: Redis serves 0 first; see kombu's `priority_steps`. Each lane has four: see `rank`.
PRIORITY_STEPS = (0, 1, 2, 3, 5, 6, 7, 8)
_PRIORITY = {Lane.INTERACTIVE: 0, Lane.BATCH: 5}
_LOWEST = 3
#: The Celery app of each pool of `ramify up`.
POOL_APPS = {
    "plan": "orchestrator.app",
    "ops": "orchestrator.app",
    "search": "workers.app",
    "rerank": "workers.app",
    "merge": "workers.app",
}


class Queue(StrEnum):
    """One queue per kind of work. No task runs on `ops`: its workers run what goes by the clock, such as the reaper."""

    PLAN = "plan"
    SEARCH = "search"
    RERANK = "rerank"
    MERGE = "merge"
    INDEX = "index"
    OPS = "ops"


def queue_keys(queue: Queue) -> list[str]:
    """The lists in Redis that hold a queue, as kombu names them: one for each priority step."""
    return [queue.value if step == 0 else f"{queue.value}\x06\x16{step}" for step in PRIORITY_STEPS]


class TaskName(StrEnum):
    """Every task; the part before the dot is the queue that it runs on."""

    PLAN_JOB = "plan.job"
    PLAN_REFINE = "plan.refine"
    PLAN_INTENT = "plan.intent"
    SEARCH_LEAF = "search.leaf"
    SEARCH_SHARD = "search.shard"
    SEARCH_FIND = "search.find"
    SEARCH_RELATED = "search.related"
    SEARCH_INFO = "search.info"
    SEARCH_VALUES = "search.values"
    SEARCH_DOCUMENTS = "search.documents"
    SEARCH_PASSAGE = "search.passage"
    RERANK_LEAF = "rerank.leaf"
    RERANK_COLUMNS = "rerank.columns"
    RERANK_ROOT = "rerank.root"
    MERGE_TREE = "merge.tree"
    MERGE_SUMMARISE = "merge.summarise"
    MERGE_EARLY = "merge.early"
    INDEX_DOCUMENTS = "index.documents"
    INDEX_FINISH = "index.finish"
    INDEX_REMOVE = "index.remove"
    INDEX_CHECK = "index.check"
    INDEX_STORE = "index.store"

    @property
    def queue(self) -> Queue:
        """The queue that this task runs on."""
        return Queue(self.value.split(".", 1)[0])


#: The tasks of a leaf that is a shard of a list, by those of other leaves; on the same queues.
OF_SHARD = {TaskName.SEARCH_LEAF: TaskName.SEARCH_SHARD, TaskName.RERANK_LEAF: TaskName.RERANK_COLUMNS}
#: The queues of each pool of `ramify up`. Embedded, `search` and `index` share the process
#: that owns the store.
POOL_QUEUES: dict[str, tuple[Queue, ...]] = {
    "plan": (Queue.PLAN,),
    "search": (Queue.SEARCH, Queue.INDEX),
    "rerank": (Queue.RERANK,),
    "merge": (Queue.MERGE,),
    "ops": (Queue.OPS,),
}


def priority(lane: Lane) -> int:
    """Broker priority of a lane on Redis: 0 is served first."""
    return _PRIORITY[lane]


def ranks(lane: Lane) -> list[int]:
    """Priorities of the messages of a job whose tenant has 0, 1, 2... others under way, the last one for more.

    Who has few is served first.
    """
    return [_PRIORITY[lane] + others.bit_length() for others in range(2 ** (_LOWEST - 1) + 1)]


class _Message(Model):
    v: int = MESSAGE_VERSION

    def wire(self) -> dict[str, object]:
        """As put into the Celery message."""
        return {"v": self.v, **self.model_dump(exclude_defaults=True)}


class TaskMessage(_Message):
    """The message of a job's task: ids only, the job store holds the rest.

    `v` is the message version; `force` lets the merge run with leaves still open (at the deadline). `traceparent`: of
    the span that sent it, while jobs are traced.
    """

    job_id: str = Field(pattern=r"^[0-9a-z\-]{8,40}$")
    node_id: str | None = Field(default=None, max_length=200)
    force: bool = False
    traceparent: str | None = Field(default=None, max_length=55)


def read_message(raw: dict[str, object]) -> TaskMessage:
    """Check a message from the queue.

    Raises: MessageVersionError when it speaks another version or is no message of ours.
    """
    version = raw.get("v")
    if version != MESSAGE_VERSION:
        said = str(version) if isinstance(version, int) and 0 <= version < _NO_VERSION else "of no number"
        raise MessageVersionError(
            f"message version {said} is not spoken here (this is {MESSAGE_VERSION}): "
            "run the same release on every worker"
        )
    try:
        return TaskMessage.model_validate(raw)
    except ValidationError as error:
        raise MessageVersionError(f"not a Ramify message: {error.errors()[0]['msg']}") from None
