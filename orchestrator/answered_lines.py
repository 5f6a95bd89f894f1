"""The lines of a batch with their answers, streamed, through a client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from orchestrator.accounting import GONE
from orchestrator.client import Ramify
from orchestrator.out_formats import AnsweredLine
from shared.errors import NotRunningError, RamifyError
from shared.jobs.states import State
from shared.models import Answer

#: Answers that are held, for the lines behind that have the same job.
_HELD = 16


def answered_lines(client: Ramify, batch_id: str, numbers: Sequence[int] | None = None) -> Iterator[AnsweredLine]:
    """Every line that is not blank, or those of these `numbers`, in order; one whose job is open has no answer yet."""

    @lru_cache(_HELD)
    def answer_of(job_id: str) -> tuple[Answer | None, str | None]:
        return _answer(client, job_id)

    for found in client.batch_report(batch_id, numbers):
        is_done = found.job_id is not None and found.state == State.DONE
        answer, fault = answer_of(found.job_id or "") if is_done else (None, None)
        error = fault or found.error or ("it has expired" if found.state == GONE else None)
        yield AnsweredLine(**dict(found) | {"answer": answer, "error": error})


def _answer(client: Ramify, job_id: str) -> tuple[Answer | None, str | None]:
    """The answer of a job, or why it cannot be read. Raises: NotRunningError."""
    try:
        return client.result(job_id), None
    except NotRunningError:
        raise
    except RamifyError as error:
        return None, str(error)
