"""Runs what a client asks for: an operation for the caller, and what comes of it as a view. Long work is waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from anyio import CancelScope, CapacityLimiter, get_cancelled_exc_class, to_thread

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.mcp.desk import Desk
from orchestrator.mcp.shortened import ingest_view, pending_view
from orchestrator.mcp.tools import OperationTool, tools_of, view_of
from orchestrator.mcp.views import IngestView
from orchestrator.mcp.waiting import Tell, Waiting, cancel_unheard, taken
from orchestrator.operations.registry import OPERATIONS
from shared.errors import NotFoundError, NotRunningError
from shared.models.base import Model
from shared.settings.services import McpSettings

T = TypeVar("T")


class DeskCalls:
    """Serves the requests of one desk. The client's methods wait for Redis and pools, so they run on threads."""

    def __init__(self, desk: Desk, settings: McpSettings) -> None:
        self._desk, self._settings = desk, settings
        self._waiting = Waiting(settings.wait_s, settings.waiting)
        self._threads = CapacityLimiter(settings.waiting)
        self._tools = tools_of(one for one in OPERATIONS.values() if not (desk.remote and one.local_only))

    def tools(self) -> list[OperationTool]:
        """Those that the caller may use."""
        scopes = self._desk.caller().scopes
        return [tool for tool in self._tools.values() if tool.operation.scope in scopes]

    async def call(self, name: str, arguments: Mapping[str, Any], tell: Tell) -> Model:
        """Call a tool; `tell` is given its steps. Raises: RamifyError."""
        tool = self._tools.get(name)
        if tool is None:
            raise NotFoundError("tool", name, f"there are {', '.join(one.name for one in self.tools())}")
        given: Any = tool.read(arguments)
        client = await self.client(tool.operation.scope)
        if tool.operation.long:
            return await self._started(client, tool, given, tell)
        if tool.waits(given):
            return await self._come_to(client, tool, given.id, tell)
        if "deadline_s" in type(given).model_fields and given.deadline_s is None:
            # It waits for a job without telling its id: a client that gives up would leave it to nobody.
            given = given.model_copy(update={"deadline_s": max(1.0, self._settings.wait_s)})
        return view_of(await self.asked(tool.operation.run, client, given), self._settings.max_chars)

    async def client(self, scope: Scope) -> Ramify:
        """The client of whoever asks now. Raises: NotAllowedError without `scope`, NotRunningError."""
        caller = self._desk.caller()
        caller.check(scope)
        return await self.asked(self._desk.client, caller)

    async def asked(self, ask: Callable[..., T], *given: Any) -> T:
        """What `ask` gives, from a thread that is left alone where the client cancels the call."""
        try:
            return await to_thread.run_sync(ask, *given, abandon_on_cancel=True, limiter=self._threads)
        except NotRunningError:
            self._desk.lost()
            raise

    async def _started(self, client: Ramify, tool: OperationTool, given: Any, tell: Tell) -> Model:
        """What a job that is made now has come to when it has ended, or after a while."""
        with CancelScope(shield=not tool.operation.local_only):  # what it makes meanwhile has to be ended
            made = await self.asked(tool.operation.run, client, given)
        try:
            await tell(taken(made.job_id))
            return await self._come_to(client, tool, made.job_id, tell, getattr(made, "warning", None))
        except get_cancelled_exc_class():
            if getattr(given, "idempotency_key", None) is None:  # else others may wait for the same job
                await cancel_unheard(client, made.job_id)
            raise
        except NotRunningError as error:
            self._desk.lost()
            raise NotRunningError(f"{error}; it was taken as job {made.job_id}: ask for that later") from None

    async def _come_to(
        self, client: Ramify, tool: OperationTool, job_id: str, tell: Tell, note: str | None = None
    ) -> Model:
        waited = await self._waiting.for_end(client, job_id, tell)
        status = await self.asked(client.status, job_id)
        if IngestView in tool.views:
            return ingest_view(status, await self.asked(client.ingest_result, job_id))
        if not status.terminal:
            return pending_view(status, waited, note)
        return view_of(await self.asked(client.result, job_id), self._settings.max_chars)
