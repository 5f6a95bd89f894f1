"""What orchestrator and workers agree on: task names, queues, priorities and messages."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from pydantic import Field, ValidationError

from shared.errors import MessageVersionError
from shared.models import Lane
from shared.models.base import Model

#: The version of the messages that this release writes, and those that it reads. A version is read for one release
#: before it is written, and for one after (CONTRIBUTING.md, "A message, or a stored record").
MESSAGE_VERSION = 1
READ_VERSIONS = frozenset({MESSAGE_VERSION})
_NO_VERSION = 1_000_000
#: Redis serves 0 first; see kombu's `priority_steps`. Each lane has four: see `rank`.
PRIORITY_STEPS = (0, 1, 2, 3, 5, 6, 7, 8)
_PRIORITY = {Lane.INTERACTIVE: 0, Lane.BATCH: 5}
_LOWEST = 3
M = TypeVar("M", bound=Model)
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


def lane_of(rank: int | None) -> Lane:
    """The lane of messages with this priority; what has none is asked for by somebody who waits."""
    return Lane.BATCH if rank is not None and rank >= _PRIORITY[Lane.BATCH] else Lane.INTERACTIVE


def lane_queue(queue: Queue, lane: Lane) -> str:
    """The queue of a lane in a broker without priorities, as quorum queues of RabbitMQ before 4."""
    return queue.value if lane is Lane.INTERACTIVE else f"{queue.value}.{lane.value}"


def without_lane(name: str) -> str:
    """The queue that a queue of a lane is part of."""
    return name.removesuffix(f".{Lane.BATCH.value}")


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
    """Check a message from the queue. Fields that are not known are passed over: a newer release may have added them.

    Raises: MessageVersionError when it speaks a version that is not read here or is no message of ours.
    """
    version = raw.get("v")
    if not isinstance(version, int) or version not in READ_VERSIONS:
        said = str(version) if isinstance(version, int) and 0 <= version < _NO_VERSION else "of no number"
        read = ", ".join(map(str, sorted(READ_VERSIONS)))
        raise MessageVersionError(
            f"message version {said} is not spoken here (this is {read}): run the same release on every worker",
            other_release=said == str(version),
        )
    try:
        return TaskMessage.model_validate(raw, extra="ignore")
    except ValidationError as error:
        raise MessageVersionError(f"not a Ramify message: {error.errors()[0]['msg']}") from None


def read_request(kind: type[M], raw: Mapping[str, object]) -> M:
    """Check what a client asks a pool outside of any job.

    Fields that are not known are refused: without a newer release's filter a pool would give what was not asked for.
    Clients send only what differs from the defaults. Raises: MessageVersionError.
    """
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            said = f"{name} is not known to this worker, whose release is older: run the same release on every worker"
            raise MessageVersionError(said, other_release=True) from None
        raise MessageVersionError(f"not a request of Ramify: {name}: {first['msg']}") from None
