"""`find` and `search`: passages for a query, or for a question in a conversation; `session`: kept conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Unpack

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of
from shared.errors import InputError

SessionId = Annotated[str, typer.Argument(metavar="ID", help="A name of your own for the conversation.")]
sessions = typer.Typer(
    name="session", help="Conversations kept for `ramify search --session-id`.", no_args_is_help=True
)


@options.shared
def find(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to search for; - reads it from stdin.")],
    *,
    json: options.Json = False,
    **given: Unpack[options.FindOptions],
) -> None:
    from orchestrator.cli.render.grouped import draw_found

    text = streams.text_argument("QUERY", query)
    with invocation_of(ctx).client(given["tenant"]) as client:
        found = client.find(text, **options.request_fields(given))
        differ = client.settings_differ()
    streams.output(found, draw_found, as_json=json)
    streams.warn_all((*found.warnings, differ))


@options.shared
def search(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question; - reads it from stdin.")],
    *,
    session: Annotated[
        Path | None, typer.Option(help="The conversation: a JSON object, or one message a line.")
    ] = None,
    session_id: Annotated[str | None, typer.Option(help="The conversation kept under that id.")] = None,
    remember: Annotated[
        bool, typer.Option("--remember", help="Add the question and the results to the conversation of --session-id.")
    ] = False,
    json: options.Json = False,
    **given: Unpack[options.ConversationOptions],
) -> None:
    from orchestrator.cli.render.grouped import draw_session
    from orchestrator.sessions import read_session

    if session is not None and session_id is not None:
        raise InputError("--session-id", session_id, "--session is given beside it: give one of them")
    if remember and session_id is None:
        raise InputError("--remember", "without --session-id", "name the conversation that is to keep the question")
    text = streams.text_argument("QUESTION", question)
    with invocation_of(ctx).client(given["tenant"]) as client:
        kept = client.session(session_id) if session_id is not None else None
        conversation = kept if session is None else read_session(session)
        found = client.search(text, conversation, **options.request_fields(given))
        differ = client.settings_differ()
        if remember and kept is not None:
            kept.remember(text, found)
    streams.output(found, draw_session, as_json=json)
    streams.warn_all((*found.warnings, differ))
    raise typer.Exit(streams.PARTIAL if found.partial or found.degraded else streams.DONE)


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
    message = streams.text_argument("TEXT", text)
    with invocation_of(ctx).client(tenant) as client:
        session = client.session(session_id)
        if summary:
            session.summarise(message)
        else:
            session.append(role, message)
        kept = session.load()
    if json:
        streams.document({"session_id": session_id, "messages": len(kept.messages), "summary": bool(kept.summary)})


@sessions.command()
def show(
    ctx: typer.Context, session_id: SessionId, *, tenant: options.Tenant = None, json: options.Json = False
) -> None:
    with invocation_of(ctx).client(tenant) as client:
        kept = client.session(session_id).load()
    if json:
        streams.document(kept)
    elif kept:
        from orchestrator.cli.text import pairs

        summary = [("summary", kept.summary)] if kept.summary else []
        for role, text in (*summary, *((message.role, message.content) for message in kept.messages)):
            streams.show(pairs({role: text}))
    else:
        streams.note(f"session {session_id} holds nothing")


@sessions.command()
def drop(
    ctx: typer.Context, session_id: SessionId, *, tenant: options.Tenant = None, json: options.Json = False
) -> None:
    with invocation_of(ctx).client(tenant) as client:
        dropped = client.session(session_id).drop()
    if json:
        streams.document({"session_id": session_id, "dropped": dropped})
    elif not dropped:
        streams.note(f"session {session_id} holds nothing")
