"""The search pool's answer to what exists under a filter, outside of any job."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import ValidationError

from shared.contract import TaskName
from shared.errors import RamifyError
from shared.models.enumeration import ValuesReply, ValuesRequest
from shared.steps import remote
from workers.app import app
from workers.corpus import corpus
from workers.enumerate.scan import KnownValues, counted
from workers.steps import steps


@cache
def _known() -> KnownValues:
    return KnownValues(steps.settings.enumeration.max_values)


@remote(app, TaskName.SEARCH_VALUES, ignore_result=False)
def values(raw: dict[str, Any]) -> str:
    """Values or a count, as a ValuesReply in JSON; faults are told in it, never raised."""
    try:
        request = ValuesRequest.model_validate(raw)
        store = corpus().store(request.tenant)
        found = counted(store, request.scan) if request.scan else _known().of(store, request.filters)
        return ValuesReply(values=found).model_dump_json()
    except (RamifyError, ValidationError) as error:
        return ValuesReply(error=str(error)).model_dump_json()
