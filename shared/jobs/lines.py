"""The lines of a batch on their way into Redis: a page of them is entered in one step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic_core import to_json

from shared.jobs.admission import KEY_OF_ANOTHER, AdmissionQueues, EnqueueResult, NewJob
from shared.jobs.keys import ACTIVE, RECENT, BatchKeys
from shared.models import Lane
from shared.models.batch import LineId, LineKind, LineRecord

_LANES = tuple(Lane)
_REJECTED = len(_LANES)


class NewLine(NamedTuple):
    """A line to be entered, with its job, or with the reason why it has none. The rest as in LineRecord."""

    line: int
    job: NewJob | None = None
    id: LineId | None = None
    meta: dict[str, Any] | None = None
    key: str | None = None
    reason: str | None = None
    text: str | None = None

    @property
    def ending(self) -> str:
        """The end of its record's JSON."""
        if self.job and self.id is None and self.meta is None and self.key is None:
            return ""
        return _ending(id=self.id, meta=self.meta, key=self.key, reason=self.reason, text=self.text)

    def enqueued(self) -> LineRecord:
        """Its record, once its own job waits."""
        own = self.job.job_id if self.job else None
        return LineRecord.of_valid({
            "line": self.line, "kind": LineKind.ENQUEUED, "job_id": own, "id": self.id, "meta": self.meta,
            "key": self.key, "reason": None, "text": None,
        })  # fmt: skip


@dataclass(frozen=True)
class Page:
    """Lines that follow those read before, and how many `blank` ones are between them.

    `read`, `digest`: how many lines were read with them, and the digest of all these.
    """

    read_before: int
    digest_before: str
    read: int
    digest: str
    lines: Sequence[NewLine]
    blank: int = 0


def _ending(**fields: object) -> str:
    given = {name: value for name, value in fields.items() if value is not None}
    return f",{json.dumps(given, ensure_ascii=False, allow_nan=False)[1:-1]}" if given else ""


def script_input(batch_id: str, page: Page, admission: AdmissionQueues) -> tuple[list[str], list[Any]]:
    """Keys and arguments of `enter_lines.lua`."""
    of_batch = BatchKeys(batch_id)
    places, given = admission.given(line.job for line in page.lines if line.job)
    lines = [(line.line, _LANES.index(line.job.lane) if line.job else _REJECTED, line.ending) for line in page.lines]
    keys = [ACTIVE, RECENT, of_batch.batch, of_batch.members, of_batch.lines, of_batch.known, *places]
    args = [*admission.head(), to_json({**given, "lines": lines})]
    args += [page.read_before, page.digest_before, page.read, page.digest, page.blank]
    for lane in _LANES:
        for result in (EnqueueResult.LANE_FULL, EnqueueResult.TENANT_FULL):
            args.append(_ending(reason=admission.refusal(result, lane)))
    args.append(_ending(reason=KEY_OF_ANOTHER))
    return keys, args
