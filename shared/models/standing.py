"""Standing questions: asked again when the corpus changes or by the clock, and told of when what they cite changes."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from shared.models.base import Model
from shared.models.request import JobRequest

MIN_EVERY_S, MAX_EVERY_S = 60.0, 30 * 86_400.0


class NotifyBy(StrEnum):
    """How a notice is given beside the list of notices, which always has it."""

    WEBHOOK = "webhook"
    FILE = "file"
    COMMAND = "command"


class Notify(Model):
    """Where a notice goes: a URL, the path of a file that it is added to, or the name of a command of the settings.

    `seal`: of a file, proof that who named it may read the stack's data folder.
    """

    by: NotifyBy
    target: str = Field(min_length=1, max_length=2000)
    seal: str = ""


class StandingQuestion(Model):
    """What is asked, for whom, how often. `every_s` None: whenever the corpus changes what its answer rests on.

    Times are Unix seconds.
    """

    id: str
    request: JobRequest
    every_s: float | None = Field(default=None, ge=MIN_EVERY_S, le=MAX_EVERY_S)
    notify: Notify | None = None
    created_at: float

    @property
    def tenant(self) -> str:
        """Whose it is."""
        return self.request.tenant


class RunKind(StrEnum):
    """Why a job of a standing question runs."""

    FIRST = "first"
    REFRESH = "refresh"  # a change touches what its answer is written from: only the touched leaves run
    FULL = "full"  # by the clock, or since its answer has expired
    SAMPLE = "sample"  # a change touches nothing: whether that is so


class StandingState(Model):
    """How far a standing question is. `answer`: the job of its newest answer; `running`: the job that is under way.

    `changes`: how often its corpus has changed since it stands; `runs`: its jobs by kind; `samples`: those that have
    looked whether a change that seemed to touch nothing has, and `missed`: how many of these have found that it had.
    `notices`: how many were given. `waits_for`: what keeps the next job back, as a sentence.
    """

    answer: str | None = None
    running: str | None = None
    kind: RunKind | None = None
    number: int = 0
    next_at: float | None = None
    changes: int = 0
    checks: int = 0
    runs: dict[str, int] = Field(default_factory=dict)
    failed: int = 0
    failures: int = Field(default=0, description="in a row")
    samples: int = 0
    missed: int = 0
    notices: int = 0
    waits_for: str = ""
    error: str = ""

    @property
    def miss_rate(self) -> float | None:
        """The share of samples that have found something; None before there is one."""
        return self.missed / self.samples if self.samples else None


class StandingStatus(Model):
    """A standing question, how far it is, and the share of what its rule misses."""

    question: StandingQuestion
    state: StandingState
    miss_rate: float | None = None


class CitedFact(Model):
    """Words that an answer rests on, and the document that says them."""

    path: str
    text: str


class Notice(Model):
    """What has changed of what an answer cites: what is said now and was not, and what is said no more.

    `id` is made of the question and the job that found it out.
    """

    id: str
    standing_id: str
    question: str
    tenant: str
    at: float
    job_id: str
    before: str | None = None
    kind: RunKind
    new: tuple[CitedFact, ...] = ()
    gone: tuple[CitedFact, ...] = ()
