"""`up`, `down`, `doctor` and `config`: the machine's side. Nothing here asks a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, streams
from orchestrator.cli.invocation import invocation_of

if TYPE_CHECKING:
    from orchestrator.local.stack import StackEvent
    from orchestrator.local.state import StackState
    from shared.settings import Settings


def up(
    ctx: typer.Context,
    *,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return when it is ready; `ramify down` stops it.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Start the embedded stack: Redis, the worker pools, Flower. Ctrl-C stops all of it."""
    from orchestrator.local.state import login_file
    from shared.settings.sources import destinations

    settings = invocation_of(ctx).settings()
    for clause in destinations(settings):
        streams.note(clause)
    known = login_file(settings).exists()
    if detach:
        from orchestrator.local import background

        _show_state(settings, background.start(settings), show_login=not known, as_json=json)
        return
    from orchestrator.local.stack import Stack

    def ready(state: StackState) -> None:
        _show_state(settings, state, show_login=not known, as_json=json)
        streams.note("Ctrl-C stops it.")

    Stack(settings, on_event=_note).run(ready)


def _note(event: StackEvent) -> None:
    streams.note(f"{event.kind:<10} {event.name}{f': {event.detail}' if event.detail else ''}")


def _show_state(settings: Settings, state: StackState, *, show_login: bool, as_json: bool) -> None:
    """`show_login`: it is new, and shown this once."""
    from orchestrator.cli.render.system import draw_stack
    from orchestrator.local.state import log_dir, login_file, read_private

    login = read_private(login_file(settings)) if show_login and state.flower_login_file else ""
    streams.output(state, lambda state: draw_stack(state, log_dir(settings), login), as_json=as_json)
    if state.server_url and (waits := _waits_for_key(settings)):
        streams.warn(waits)


def _waits_for_key(settings: Settings) -> str:
    """Why the HTTP server does not answer yet, where callers need a key and there is none; else nothing."""
    from orchestrator.access.callers import Callers, why_keys
    from orchestrator.local.state import connection
    from shared.errors import NotRunningError, SettingsError
    from shared.jobs import connect

    if why_keys(settings) is None:
        return ""
    found = connection(settings)
    try:
        with connect(found) as client:
            Callers(client, found).check_start()
    except SettingsError as error:
        return f"HTTP waits for a key: {error}"
    except NotRunningError:
        pass  # the stack is stopped already
    return ""


def down(ctx: typer.Context, *, json: options.Json = False) -> None:
    """Stop the stack of this folder. Harmless when none runs."""
    from orchestrator.local.background import down as stop

    stopped = stop(invocation_of(ctx).settings())
    if json:
        streams.document(stopped)
        return
    outcome = f"stopped in {stopped.seconds:.1f} s" if stopped.was_running else "no stack was running here"
    typer.echo(f"{outcome}; killed: {', '.join(stopped.killed)}" if stopped.killed else outcome)


def doctor(ctx: typer.Context, *, json: options.Json = False) -> None:
    """Say what runs, what does not, why, and what to do about it. Exit code 1 when there is a fault."""
    from orchestrator.local.doctor import examine

    checks = examine(invocation_of(ctx).settings())
    if json:
        streams.document({"checks": checks})
    else:
        from orchestrator.cli.render.system import draw_checks

        streams.show(draw_checks(checks))
    if any(check.ok is False for check in checks):
        raise typer.Exit(streams.FAILED)


def config(ctx: typer.Context, *, json: options.Json = False) -> None:
    """List all settings: value, default and meaning. Secrets are shown as set or not set."""
    from orchestrator.cli.render.system import draw_settings, setting_rows
    from shared.settings import config_file

    rows = setting_rows(invocation_of(ctx).settings())
    file = config_file()
    shown = str(file.absolute()) if file else None
    if json:
        streams.document({"file": shown, "settings": rows})
    else:
        streams.show(draw_settings(rows, shown))
