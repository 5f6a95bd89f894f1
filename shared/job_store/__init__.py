"""The truth about jobs, in Redis: one Lua script per transition, a key layout that a plain client can read."""

from shared.job_store.batches import Batches
from shared.job_store.connect import connect, reachable
from shared.job_store.job import Job
from shared.job_store.keys import new_id
from shared.job_store.reader import JobReader
from shared.job_store.states import STOPPED, TERMINAL, TRANSITIONS, State
from shared.job_store.store import JobStore

__all__ = [
    "STOPPED", "TERMINAL", "TRANSITIONS", "Batches", "Job", "JobReader", "JobStore", "State",
    "connect", "new_id", "reachable",
]  # fmt: skip
