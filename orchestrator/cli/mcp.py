"""`mcp`: Ramify as an MCP server on stdin and stdout, as clients start it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from shared.errors import RamifyError


def mcp(ctx: typer.Context, *, tenant: options.Tenant = None) -> None:
    """Serve an MCP client on stdin and stdout: it starts this command itself. Over HTTP: `ramify serve`, at /mcp."""
    if find_spec("mcp") is None:
        raise RamifyError("MCP is not installed: `pip install 'ramify[mcp]'` adds what it needs")
    if sys.stdin.isatty():
        streams.note("MCP, on stdin and stdout: a client's configuration names this command. Ctrl-C ends it.")
    from orchestrator.mcp.stdio import serve_stdio

    serve_stdio(invocation_of(ctx).settings(), tenant)
