"""The answers of many jobs, in order; a job without one is a line that says why. Prints nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from orchestrator.cli import output
from orchestrator.client import Ramify
from shared.errors import InputError, NotFoundError, RamifyError
from shared.models import Answer
from shared.models.base import Model


class NoAnswer(Model):
    """A job that has no answer: where it stands, and why."""

    job_id: str
    question: str = ""
    state: str
    error: str | None = None


def answers(client: Ramify, job_ids: Iterable[str]) -> Iterator[Answer | NoAnswer]:
    """One for each id, in the order of the ids."""
    for job_id in job_ids:
        try:
            status = client.status(job_id)
        except NotFoundError:
            yield NoAnswer(job_id=job_id, state="unknown", error="it has expired")
            continue
        if status.state == "done":
            try:
                yield client.result(job_id)
                continue
            except NotFoundError as error:
                gone = str(error)
            except RamifyError as error:
                gone = str(error)
            yield NoAnswer(job_id=job_id, question=status.question, state=status.state, error=gone)
        else:
            yield NoAnswer(job_id=job_id, question=status.question, state=status.state, error=status.error)


def complete(found: Answer | NoAnswer) -> bool:
    """True for an answer to which every leaf has given its part."""
    return isinstance(found, Answer) and not found.partial


def row(found: Answer | NoAnswer) -> tuple[str, str, bool, str, str]:
    """Job id, state, partial, question, and the summary or the error: a line for `draw_answers`."""
    if isinstance(found, Answer):
        return found.job_id, found.state, found.partial, found.question, found.summary.text
    return found.job_id, found.state, False, found.question, found.error or ""


def write_answers(client: Ramify, job_ids: Iterable[str], path: Path) -> None:
    """One JSON line a job. The file appears under its name when it is whole. Raises: InputError when it cannot."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as handle:
            for found in answers(client, job_ids):
                handle.write(f"{output.encoded(found)}\n")
        part.replace(path)
    except OSError as error:
        raise InputError("--out", str(path), f"it cannot be written ({error.strerror})") from None
