"""What an operation is: its name, what it takes and gives, who may call it, and where HTTP has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from pydantic import ValidationError

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.operations.descriptions import description
from shared.models.base import Model
from shared.settings.faults import request_fault

Given = TypeVar("Given", bound=Model)


@dataclass(frozen=True)
class HttpRoute:
    """One way to an operation over HTTP.

    What `path` names in braces, and what `headers` name, comes from there; what else the input has comes from the body
    of a POST, else from the query. `fixed` are fields that this path says. `output` is given where it is narrower than
    the operation's. `location`: the address of what was made, with fields of the output in braces.
    `by_hand`: the handler is written in the server's room, because it streams what it takes or gives.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    status: int = 200
    output: Any = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    location: str = ""
    by_hand: bool = False


@dataclass(frozen=True)
class Operation(Generic[Given]):
    """One thing that can be asked of Ramify.

    `run` gets a client bound to the caller's tenant, of scope `admin` one of all tenants; it raises RamifyErrors.
    `rows`: it yields any number of `output` instead of giving one. `idempotent`: again is as once. `long`: it makes a
    job, whose id it gives. `waits`: for a worker pool, a model or a job, so that it holds a thread for seconds.
    `local_only`: it reads or writes files of this machine, so no remote caller may.
    `command` is the command of `ramify` that does it, `tool` the name of the MCP tool; None: there is none.
    """

    name: str
    input: type[Given]
    output: Any
    run: Callable[[Ramify, Given], Any]
    scope: Scope = Scope.READ
    routes: tuple[HttpRoute, ...] = ()
    command: str | None = None
    tool: str | None = None
    rows: bool = False
    idempotent: bool = True
    long: bool = False
    waits: bool = False
    local_only: bool = False

    @property
    def description(self) -> str:
        """What it does, in one sentence."""
        return description(self.name)

    def ask(self, client: Ramify, given: Mapping[str, Any]) -> Any:
        """Run it with these fields of its input. Raises: InputError, and what it raises itself."""
        try:
            taken = self.input(**given)
        except ValidationError as error:
            raise request_fault(error) from None
        return self.run(client, taken)

    def parameters(self) -> frozenset[str]:
        """The names of its input's fields, without what only a path says."""
        return frozenset(self.input.model_fields) - {name for route in self.routes for name in route.fixed}


def by_name(operations: Iterable[Operation[Any]]) -> dict[str, Operation[Any]]:
    """The operations by name. Raises: ValueError where two have the same name, tool, or method and path."""
    found: dict[str, Operation[Any]] = {}
    taken = set[str]()
    for one in operations:
        ways = [f"{route.method} {route.path}" for route in one.routes]
        for name in (f"name {one.name}", *([f"tool {one.tool}"] if one.tool else ()), *ways):
            if name in taken:
                raise ValueError(f"two operations have the {name}")
            taken.add(name)
        found[one.name] = one
    return found
