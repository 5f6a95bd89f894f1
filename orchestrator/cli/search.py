"""`search`: a question in a conversation; `session`: conversations that are kept."""
# ruff: noqa: PLC0415 - what a command needs is imported when it runs: `--help` must not wait for Celery and Qdrant

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from shared.errors import InputError

if TYPE_CHECKING:
    from orchestrator.client import Ramify

TargetUri = Annotated[
    str | None,
    typer.Option(help="Only what is under ramify://NAMESPACE/FOLDER/, or paths that begin so.", show_default=False),
]
Plan = Annotated[bool, typer.Option("--plan", help="Show the queries and what each found.")]
Related = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=5,
        help="Related contexts of each hit: pages linked to and from it, siblings. (default: 5)",
        show_default=False,
    ),
]
SessionId = Annotated[str, typer.Argument(metavar="ID", help="A name of your own for the conversation.")]


def search(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question; - reads it from stdin.")],
    *,
    session: Annotated[
        Path | None,
        typer.Option(help="The conversation: a JSON object, or one message a line.", show_default=False),
    ] = None,
    session_id: Annotated[
        str | None, typer.Option(help="The conversation kept under that id.", show_default=False)
    ] = None,
    remember: Annotated[
        bool, typer.Option("--remember", help="Add the question to the conversation of --session-id.")
    ] = False,
    plan: Plan = False,
    related: Related = None,
    target_uri: TargetUri = None,
    mode: options.Mode = None,
    strategy: options.Strategy = None,
    explain: options.Explain = False,
    top: options.Top = None,
    after: options.After = None,
    before: options.Before = None,
    tag: options.Tag = None,
    kind: options.Kind = None,
    path: options.PathPrefix = None,
    namespace: options.Namespace = None,
    deadline: options.Deadline = None,
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    """Search with a conversation in mind: the question becomes up to five typed queries, or none."""
    from orchestrator.cli.streams import text_argument

    if session is not None and session_id is not None:
        raise InputError("--session-id", session_id, "--session is given beside it: give one of them")
    if remember and session_id is None:
        raise InputError("--remember", "without --session-id", "name the conversation that is to keep the question")
    chosen = options.given(
        plan=plan or None, related=related, target_uri=target_uri, mode=mode, strategy=strategy,
        explain=explain or None, top_n=top, deadline_s=deadline, tenant=tenant,
    ) | options.filters(after=after, before=before, tags=tag, kinds=kind, paths=path, namespace=namespace)  # fmt: skip
    text = text_argument("QUESTION", question)
    with invocation_of(ctx).client() as client:
        said = _conversation(client, session, session_id, tenant)
        found = client.search(text, said, **chosen)
        if remember and session_id is not None:
            client.session(session_id, tenant or "default").append("user", text)
    if json:
        streams.document(found)
    else:
        from orchestrator.cli.render.grouped import draw_session

        streams.show(draw_session(found))
    for warning in found.warnings:
        streams.warn(warning)
    raise typer.Exit(streams.PARTIAL if found.partial else streams.DONE)


def _conversation(client: Ramify, file: Path | None, session_id: str | None, tenant: str | None) -> Any:
    if file is not None:
        from orchestrator.sessions import read_session

        return read_session(file)
    return client.session(session_id, tenant or "default") if session_id is not None else None


sessions = typer.Typer(
    name="session", help="Conversations kept for `ramify search --session-id`.", no_args_is_help=True
)


@sessions.command()
def add(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    session_id: SessionId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; - reads it from stdin.")],
    *,
    role: Annotated[str, typer.Option(help="Whose: user, assistant, system or tool.")] = "user",
    summary: Annotated[bool, typer.Option("--summary", help="TEXT sums up what was said before.")] = False,
    tenant: options.Tenant = None,
    json: options.Json = False,
) -> None:
    """Add a message, or set the summary. The newest 100 messages are kept."""
    from orchestrator.cli.streams import text_argument

    said = text_argument("TEXT", text)
    with invocation_of(ctx).client() as client:
        kept = client.session(session_id, tenant or "default")
        if summary:
            kept.summarise(said)
        else:
            kept.append(role, said)
        held = kept.load()
    if json:
        streams.document({"session_id": session_id, "messages": len(held.messages), "summary": bool(held.summary)})


@sessions.command()
def show(
    ctx: typer.Context, session_id: SessionId, *, tenant: options.Tenant = None, json: options.Json = False
) -> None:
    """Show a conversation, oldest message first."""
    with invocation_of(ctx).client() as client:
        held = client.session(session_id, tenant or "default").load()
    if json:
        streams.document(held)
    elif held:
        from orchestrator.cli.render.tables import pairs

        summary = [("summary", held.summary)] if held.summary else []
        for role, text in (*summary, *((message.role, message.content) for message in held.messages)):
            streams.show(pairs({role: text}))
    else:
        streams.note(f"session {session_id} holds nothing")


@sessions.command()
def drop(
    ctx: typer.Context, session_id: SessionId, *, tenant: options.Tenant = None, json: options.Json = False
) -> None:
    """Forget a conversation."""
    with invocation_of(ctx).client() as client:
        dropped = client.session(session_id, tenant or "default").drop()
    if json:
        streams.document({"session_id": session_id, "dropped": dropped})
    elif not dropped:
        streams.note(f"session {session_id} holds nothing")
