"""The server: lists and calls tools, lists and reads documents, for the caller of each request. Knows no transport."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import Any

from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import (
    ResourceError,
    ResourceNotFoundError,
    UnexpectedResourceError,
    UnexpectedToolError,
)
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    ListResourcesResult,
    PaginatedRequestParams,
    ResourceTemplate,
    TextContent,
    Tool,
)

from orchestrator.access.caller import Scope
from orchestrator.mcp import documents
from orchestrator.mcp.calls import DeskCalls
from orchestrator.mcp.desk import Desk
from orchestrator.mcp.texts import as_text
from orchestrator.mcp.waiting import Step
from orchestrator.operations.wording import for_models
from shared.errors import InputError, RamifyError
from shared.hidden import visible
from shared.release import release
from shared.settings.services import McpSettings

_UNFORESEEN = "unforeseen: the log of the server says what went wrong"


class CorpusServer(MCPServer):
    """An MCP server over one Ramify; it keeps nothing between two requests.

    The SDK's own handlers list all resources at once, and word errors themselves: these are replaced.
    """

    def __init__(
        self,
        desk: Desk,
        settings: McpSettings,
        *,
        auth: AuthSettings | None = None,
        token_verifier: TokenVerifier | None = None,
    ) -> None:
        super().__init__(
            "ramify",
            title="Ramify",
            description="Questions over your own documents, answered with sources.",
            instructions=resources.files(__package__ or "").joinpath("instructions.md").read_text("utf-8").strip(),
            version=release() or "0",
            auth=auth,
            token_verifier=token_verifier,
            subscriptions=False,
            log_level="WARNING",
        )
        self._calls, self._own = DeskCalls(desk, settings), settings

    async def list_tools(self) -> list[Tool]:
        """The tools that the caller may call."""
        return [tool.described for tool in self._calls.tools()]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult:
        """Call a tool. What goes wrong is told in the result, so that the model can read it."""

        async def tell(step: Step) -> None:
            if context is not None:
                await context.report_progress(step.done, step.total, step.said)

        try:
            view = await self._calls.call(name, arguments, tell)
        except RamifyError as error:
            return CallToolResult(content=[_text(visible(for_models(error, str(error))))], is_error=True)
        except Exception as error:
            raise UnexpectedToolError(_UNFORESEEN) from error
        structured = view.model_dump(mode="json", exclude_defaults=True)
        return CallToolResult(content=[_text(as_text(view))], structured_content=structured)

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """How addresses of documents and passages are made."""
        return list(documents.TEMPLATES)

    async def _handle_list_resources(
        self, _: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """A page of the caller's documents."""
        cursor = params.cursor if params else None
        try:
            client = await self._calls.client(Scope.READ)
            return await self._calls.asked(documents.page, client, cursor, self._own.page)
        except RamifyError as error:
            code = INVALID_PARAMS if isinstance(error, InputError) else INTERNAL_ERROR
            raise MCPError(code, visible(for_models(error, str(error)))) from None

    async def read_resource(self, uri: Any, context: Any = None) -> Iterable[ReadResourceContents]:  # noqa: ARG002
        """The text of a document, or of a passage with its surroundings."""
        try:
            client = await self._calls.client(Scope.READ)
            found = await self._calls.asked(documents.read, client, str(uri), self._own.max_chars)
        except RamifyError as error:
            kind = ResourceNotFoundError if isinstance(error, InputError) else ResourceError
            raise kind(visible(for_models(error, str(error)))) from None
        except Exception as error:
            raise UnexpectedResourceError(_UNFORESEEN) from error
        return [ReadResourceContents(found.text, "text/plain", found.facts)]


def _text(text: str) -> TextContent:
    return TextContent(text=text)
