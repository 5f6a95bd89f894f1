"""Operations as tools: what a model is told of each, its arguments read, its output as a view."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any, get_args

from mcp.types import Tool, ToolAnnotations
from pydantic import ValidationError

from orchestrator.access.caller import Scope
from orchestrator.checking import TextCheck
from orchestrator.mcp import shortened
from orchestrator.mcp.schemas import input_schema, output_schema
from orchestrator.mcp.views import (
    AnswerView,
    BatchView,
    CancelView,
    CheckView,
    DiffView,
    FindView,
    IngestView,
    SearchView,
    StatusView,
)
from orchestrator.operations.jobs import Cancelled
from orchestrator.operations.operation import Operation
from orchestrator.records.diff import AnswerDifference
from shared.errors import InputError
from shared.models import Answer, BatchStatus, JobStatus
from shared.models.base import Model
from shared.models.find import FindResult, SessionResult
from shared.settings.faults import request_fault

#: What a model gets of an operation's output: the type of the view, and how it is made within so many characters.
_VIEWS: Mapping[Any, tuple[type[Model], Callable[[Any, int], Model]]] = {
    FindResult: (FindView, shortened.find_view),
    SessionResult: (SearchView, shortened.search_view),
    Answer: (AnswerView, shortened.answer_view),
    TextCheck: (CheckView, shortened.check_view),
    JobStatus: (StatusView, shortened.status_view),
    BatchStatus: (BatchView, shortened.batch_view),
    Cancelled: (CancelView, shortened.cancel_view),
    AnswerDifference: (DiffView, shortened.diff_view),
}
#: Of those that make a job: what is given of it once it has ended, or after a while.
_OF_JOBS: Mapping[str, type[Model]] = {"ask": AnswerView, "refresh": AnswerView, "ingest": IngestView}


@dataclass(frozen=True)
class OperationTool:
    """An operation as a tool. `words`: its part of `tools.toml`; `filters`: descriptions of the fields of `filters`."""

    operation: Operation[Any]
    words: Mapping[str, Any]
    filters: Mapping[str, str]

    @property
    def name(self) -> str:
        """As clients call it."""
        return str(self.operation.tool)

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The types that the operation may give."""
        return get_args(self.operation.output) or (self.operation.output,)

    @property
    def views(self) -> tuple[type[Model], ...]:
        """The types of what a model gets. Raises: KeyError where an output has none."""
        if self.operation.long:
            return (_OF_JOBS[self.name],)
        return tuple(_VIEWS[output][0] for output in self.outputs)

    def waits(self, given: Model) -> bool:
        """True where a job is to be waited for before its answer is read."""
        return self.operation.output is Answer and not getattr(given, "partial", False)

    @cached_property
    def described(self) -> Tool:
        """What a client lists."""
        operation, arguments = self.operation, dict(self.words["arguments"])
        if "filters" in arguments:
            arguments |= {f"filters.{name}": text for name, text in self.filters.items()}
        return Tool(
            name=self.name,
            title=self.words["title"],
            description=f"{operation.description} {self.words['text'].strip()}",
            input_schema=input_schema(operation.input, arguments),
            output_schema=output_schema(self.views),
            annotations=ToolAnnotations(
                read_only_hint=operation.scope is Scope.READ,
                destructive_hint=bool(self.words.get("destructive")),
                idempotent_hint=operation.idempotent,
                open_world_hint=False,
            ),
        )

    def read(self, arguments: Mapping[str, Any]) -> Model:
        """The operation's input. Raises: InputError for arguments that are not offered, or cannot be used."""
        offered = self.described.input_schema["properties"]
        if unknown := next((name for name in arguments if name not in offered), None):
            raise InputError(unknown, arguments[unknown], f"there is no such argument; there are {', '.join(offered)}")
        fields = dict(self.words.get("fixed", {})) | {name: v for name, v in arguments.items() if v is not None}
        try:
            given: Model = self.operation.input.model_validate(fields)
        except ValidationError as error:
            raise request_fault(error) from None
        return given


def view_of(found: Any, most: int) -> Model:
    """What a model gets of an operation's output, within about `most` characters."""
    _, made = _VIEWS[type(found)]
    return made(found, most)


def tools_of(operations: Iterable[Operation[Any]]) -> dict[str, OperationTool]:
    """The operations that are tools, by name, as `tools.toml` has them. Raises: KeyError for another one."""
    words = tomllib.loads(resources.files(__package__ or "").joinpath("tools.toml").read_text("utf-8"))
    wanted = {str(one.tool): one for one in operations if one.tool}
    if unknown := wanted.keys() - words.keys():
        raise KeyError(*unknown)
    return {name: OperationTool(wanted[name], words[name], words["filters"]) for name in words if name in wanted}
