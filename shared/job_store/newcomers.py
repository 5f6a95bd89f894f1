"""The fields of a new job's hash. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from shared.job_store.ledger import budget_fields, within
from shared.models import JobRequest, Lane
from shared.settings import Settings


def deadline_of(request: JobRequest, settings: Settings) -> float:
    """Seconds that a job has, from its submission."""
    jobs = settings.jobs
    usual = jobs.deadline_s if request.lane is Lane.INTERACTIVE else jobs.batch_deadline_s
    deadline = request.deadline_s or usual
    return min(deadline, within(request, settings).max_seconds or deadline)


def new_fields(
    job_id: str, request: JobRequest, settings: Settings, deadline_at: float, more: Mapping[str, str | None]
) -> list[str]:
    """Field, value pairs. `more` are fields of this job alone; those that are None or empty are left out."""
    request = within(request, settings)
    fields = {
        "id": job_id,
        "question": request.question,
        "lane": request.lane.value,
        "tenant": request.tenant,
        "deadline_at": f"{deadline_at:.3f}",
        "request": request.model_dump_json(exclude_defaults=True),
        "leaves_total": "0",
        "leaves_done": "0",
        "leaves_failed": "0",
        **budget_fields(request),
        **{name: value for name, value in more.items() if value},
    }
    return [item for pair in fields.items() for item in pair]
