"""Operations, commands of `ramify`, routes of HTTP and tools of MCP are held to each other, by name and parameters."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from pydantic import create_model

from orchestrator.access.caller import Scope
from orchestrator.cli.main import app as command_line
from orchestrator.client import Ramify
from orchestrator.mcp.tools import tools_of
from orchestrator.operations.descriptions import description_of_command
from orchestrator.operations.operation import HttpRoute, Operation, by_name
from orchestrator.operations.registry import OPERATIONS
from orchestrator.server.app import make_app
from shared.models.base import Model

#: Commands that are no operation, with the reason.
LOCAL = {
    "up": "starts processes of this machine", "down": "stops them", "serve": "is the HTTP server itself",
    "mcp": "is the MCP server itself", "doctor": "looks at this machine, also where nothing runs",
    "config": "shows the settings of this machine", "eval": "reads files of labels and writes reports",
    "corpus export": "writes files", "jobs export": "writes files",
    "store status": "is for who runs the store", "store init": "as it", "store migrate": "takes hours",
    "store snapshot create": "writes files", "store snapshot list": "lists them",
    "store snapshot download": "writes files", "store snapshot restore": "reads files",
    "store snapshot delete": "removes them",
    "store reconcile": "is run after a restore",
}  # fmt: skip
#: Operations without a command, with the reason.
NO_COMMAND = {
    "tree": "`status --watch` draws it", "events": "`status --watch` follows them",
    "batch_lines": "`batch report` shows them", "documents": "`corpus` counts them, `corpus export` writes them",
    "corpus_text": "`show` prints it", "chat": "is for OpenAI's clients", "models": "is for OpenAI's clients",
    "model": "is for OpenAI's clients", "push": "`ingest` reads files; programs push over HTTP or with the client",
}  # fmt: skip
#: How a command shows and waits, which decides nothing of what is done; and `tenant`, which a key decides elsewhere.
SHOWN = {"json", "tenant", "watch", "wait", "detach", "csv", "out", "width", "yes", "poll"}
#: Of a command: its own name of a parameter -> the operation's.
RENAMED = {
    "id_": "id", "early": "partial", "documents": "document", "dead_letter_ids": "dead_letter_id", "drop_": "drop",
    "job_id": "id", "key_id": "id", "endpoint_id": "id", "delivery_ids": "id", "a": "id", "b": "other",
    "every": "every_s", "doc": "documents", "rate": "requests_per_minute", "scope": "scopes", "form": "format",
} | dict.fromkeys(("after", "before", "tags", "kinds", "paths", "namespace"), "filters")  # fmt: skip
#: What only the command has, with the reason.
COMMAND_ONLY = {
    ("ask", "plan"): "a file; over HTTP its entries are `subqueries`",
    ("plan", "file"): "a file; over HTTP its entries are `subqueries`",
    ("check", "file"): "a file of claims",
    ("result", "rows"): "the operation `rows`",
    ("refresh", "stale"): "the operation `refresh_stale`",
    ("jobs", "stale"): "the operation `stale_jobs`",
    ("ingest", "dry_run"): "of this machine's own user",
    ("watch add", "on_change"): "what happens without `every_s`",
    ("watch add", "notify"): "files and programs are of this machine; over HTTP `webhook`",
    ("dead quarantine", "drop_"): "the operation `quarantine_clear`",
    ("dead replay", "all_"): "one after the other",
    ("dead drop", "all_"): "one after the other",
    ("ingest", "deadline_s"): "of this machine's own user",
    ("batch", "file"): "over HTTP the body, `questions`",
    ("batch", "resume"): "over HTTP the same key goes on",
    ("batch", "rejects"): "a file",
    ("manifest", "file"): "a file",
    ("replay", "file"): "a file",
    ("replay", "assignments"): "of this machine's own user",
}
#: What only the operation has, with the reason.
OPERATION_ONLY = {
    ("ask", "subqueries"): "the command reads a file with --plan",
    ("ask", "lane"): "the command is interactive",
    ("watch add", "webhook"): "the command has --notify",
    ("batch", "questions"): "the command reads a file",
    ("batch", "options"): "the command has them as flags",
    ("batch", "budget"): "the command has them as flags, --batch-max-calls and so on",
    ("batch", "name"): "the command has the file's name",
    ("batch", "idempotency_key"): "the command goes on with --resume",
    ("batch", "webhook"): "the command has it as --notify-url",
}


class Nil(Model):
    """No parameter at all."""


def commands(group: Any = None, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by its whole name; a group that does something itself is one too."""
    group = group or typer.main.get_command(command_line)
    for name, command in group.commands.items():
        if not hasattr(command, "commands"):
            yield f"{before}{name}", command
            continue
        if command.invoke_without_command:
            yield f"{before}{name}", command
        yield from commands(command, f"{before}{name} ")


COMMANDS = dict(commands())


def of_command(name: str) -> list[Operation[Any]]:
    return [operation for operation in OPERATIONS.values() if operation.command == name]


def test_every_command_is_an_operation_or_has_a_reason_not_to_be() -> None:
    assert {operation.command for operation in OPERATIONS.values() if operation.command} == COMMANDS.keys() - LOCAL
    assert NO_COMMAND.keys() == {operation.name for operation in OPERATIONS.values() if operation.command is None}


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - LOCAL))
def test_a_command_has_the_sentence_and_the_parameters_of_its_operations(name: str) -> None:
    command, operations = COMMANDS[name], of_command(name)
    told = description_of_command(name)
    assert told, "its first operation is named after it"
    own_tenant = {"tenant"} & {one for operation in operations for one in operation.parameters()}
    assert name == "corpus" or inspect.cleandoc(command.help).startswith(told)
    own = {param.name for param in command.params} - (SHOWN - own_tenant)
    if name in {"batch", "plan"}:  # what holds for each line, and what a question may have besides
        own = {one for one in own if (name, one) in COMMAND_ONLY}
    theirs = {field for operation in operations for field in operation.parameters()}
    if name == "plan":
        theirs = set()
    named = {one if one in theirs else RENAMED.get(one, one) for one in own if (name, one) not in COMMAND_ONLY}
    assert named == {one for one in theirs if (name, one) not in OPERATION_ONLY}


def test_every_operation_has_its_routes_and_every_route_an_operation(ramify: Ramify) -> None:
    document = make_app(ramify.settings, ramify).openapi()
    told = {
        f"{method.upper()} {path}": found
        for path, methods in document["paths"].items()
        for method, found in methods.items()
        if path.startswith("/v1/")
    }
    routes = {
        f"{route.method} {route.path.replace(':path', '')}": (operation, route)
        for operation in OPERATIONS.values()
        for route in operation.routes
    }
    assert told.keys() == routes.keys()
    for name, (operation, route) in routes.items():
        found = told[name]
        assert found["summary"] == operation.description, name
        assert str(route.status) in found["responses"], name
        if route.by_hand:
            continue
        named = {one["name"] for one in found.get("parameters", [])}
        if "requestBody" in found:
            schema = found["requestBody"]["content"]["application/json"]["schema"]
            named |= document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"].keys()
        assert named - set(route.headers.values()) == operation.parameters(), name
        assert found["x-scope"] == operation.scope


def test_every_tool_is_an_operation_with_no_other_parameters() -> None:
    tools = tools_of(OPERATIONS.values())
    assert tools.keys() == {operation.tool for operation in OPERATIONS.values() if operation.tool}
    for tool in tools.values():
        assert set(tool.described.input_schema["properties"]) <= set(tool.operation.input.model_fields), tool.name
        assert tool.described.description
        assert tool.described.description.startswith(tool.operation.description)


def test_what_is_local_has_no_route_and_what_changes_nothing_is_asked_by_get() -> None:
    for operation in OPERATIONS.values():
        if operation.local_only:
            assert not operation.routes, operation.name
        for route in operation.routes:
            if route.method == "GET":
                assert operation.idempotent or route.fixed, operation.name
                assert operation.scope in {Scope.READ, Scope.ADMIN}, operation.name
            if operation.long:
                assert route.status == 202, operation.name


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"name": "ask"}, "two operations have the name ask"),
        ({"name": "why", "tool": "ask"}, "two operations have the tool ask"),
        ({"name": "why", "routes": (HttpRoute("GET", "/v1/a"),)}, "two operations have the GET /v1/a"),
    ],
)
def test_given_two_of_a_name_when_registered_then_they_are_refused(second: dict[str, Any], message: str) -> None:
    def nothing(_client: Ramify, _given: Nil) -> None:
        return None

    first = Operation("ask", Nil, Nil, nothing, tool="ask", routes=(HttpRoute("GET", "/v1/a"),))
    with pytest.raises(ValueError, match=message):
        by_name(
            [
                first,
                Operation(**{"input": create_model("Other", __base__=Nil), "output": Nil, "run": nothing, **second}),
            ]
        )
