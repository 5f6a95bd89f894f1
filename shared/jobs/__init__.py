"""The state of jobs, in Redis: one Lua script per transition, a key layout that a plain client can read."""

from shared.connections.connect import connect, reachable
from shared.jobs.batches import Batches
from shared.jobs.job import Job
from shared.jobs.keys import new_id
from shared.jobs.reader import JobReader
from shared.jobs.states import STOPPED, TERMINAL, TRANSITIONS, Outcome, State
from shared.jobs.store import JobStore

__all__ = [
    "STOPPED", "TERMINAL", "TRANSITIONS", "Batches", "Job", "JobReader", "JobStore", "Outcome", "State",
    "connect", "new_id", "reachable",
]  # fmt: skip
