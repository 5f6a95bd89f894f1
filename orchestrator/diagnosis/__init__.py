"""`ramify why`: reads what is known of a job or a batch and says what it waits for. Changes nothing.

Reads only the keys of that one job, the bounded lists of what is under way, and the workers: milliseconds, however many
jobs wait.
"""

from orchestrator.diagnosis.batch import why_batch
from orchestrator.diagnosis.job import why_job

__all__ = ["why_batch", "why_job"]
