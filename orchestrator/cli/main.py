"""`ramify`: the global options and the list of commands. Each command's work is in the file of its group."""

from __future__ import annotations

import errno
import inspect
import logging
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from orchestrator.cli import (
    ask,
    batch,
    cache,
    check,
    corpus,
    dead_letters,
    documents,
    evaluate,
    export,
    jobs,
    judge,
    keys,
    mcp,
    pools,
    reconcile,
    records,
    refresh,
    search,
    serve,
    stack,
    store,
    streams,
    watch,
    webhooks,
)
from orchestrator.cli.invocation import Invocation, invocation_of, parse_overrides
from orchestrator.operations.descriptions import description_of_command
from shared.errors import InputError, RamifyError
from shared.hidden import visible
from shared.release import release

#: Errors of a path that cannot be looked at at all, as one that is too long.
_BAD_PATH = frozenset({errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR, errno.EROFS})


class GuardedGroup(TyperGroup):
    """The root of all commands: an error becomes one line on stderr and an exit code, never a traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the global options."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            _clean(error)
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command, which may have a name of two words: `batch report ID` is no `batch FILE`."""
        two_words = " ".join(args[:2])
        return super().resolve_command(ctx, [two_words, *args[2:]] if two_words in self.commands else args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises: typer.Exit with the code that the error asks for."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except RamifyError as error:
            raise _failed(ctx, str(error), error.exit_code) from None
        except KeyboardInterrupt:
            streams.note("interrupted")
            raise typer.Exit(streams.INTERRUPTED) from None
        except BrokenPipeError:
            streams.stop_writing()
            raise typer.Exit(streams.FAILED) from None
        except OSError as error:
            raise _path_error(error) from None
        except Exception as error:
            if sentence := _redis_sentence(error):
                raise _failed(ctx, sentence, streams.FAILED) from None
            _clean(error)
            raise
        return result


def _failed(ctx: Any, sentence: str, code: int) -> typer.Exit:
    """Print the error, after its traceback with --debug."""
    if invocation_of(ctx).debug:
        traceback.print_exc()
    streams.fail(sentence)
    return typer.Exit(code)


def _path_error(error: OSError) -> Exception:
    """One of `_BAD_PATH` becomes exit code 2; other errors stay what they are."""
    if error.errno not in _BAD_PATH or not isinstance(error.filename, str):
        return error
    streams.fail(str(InputError("path", error.filename, f"{error.strerror}: name another")))
    return typer.Exit(InputError.exit_code)


def _clean(error: Exception) -> None:
    """Take control characters out of an error of usage: it repeats the words that were given."""
    message = getattr(error, "message", None)
    if isinstance(message, str):
        error.message = visible(message)  # type: ignore[attr-defined] # Click's, where there is one


def _redis_sentence(error: Exception) -> str | None:
    """A sentence for an error of Redis or of the broker that was handled nowhere below; None for other errors."""
    if type(error).__module__.partition(".")[0] not in {"redis", "kombu"}:
        return None
    from shared.connections.redis_errors import redis_fault, unforeseen_fault

    return f"Redis {redis_fault(error) or unforeseen_fault(error)}"


app = typer.Typer(
    name="ramify",
    cls=GuardedGroup,
    help="Research questions over your own corpus: a question branches, its leaves are searched and reranked, "
    "the tree is merged and answered with citations.",
    epilog="Exit codes: 0 done, 1 failed, 2 bad usage or input, 3 partial or degraded, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_COMMANDS: tuple[tuple[str, tuple[Callable[..., None], ...]], ...] = (
    ("Stack", (stack.up, stack.down, serve.serve, mcp.mcp, pools.pools, stack.doctor, stack.config)),
    ("Corpus", (corpus.ingest, search.find, search.search, documents.show)),
    ("Questions", (ask.ask, ask.plan, ask.route, batch.batch, check.check)),
    (
        "Jobs",
        (
            jobs.status,
            jobs.result,
            jobs.jobs,
            batch.batches,
            jobs.why,
            jobs.cancel,
            jobs.retry,
            refresh.refresh,
            judge.judge,
        ),
    ),
    ("Records", (records.manifest, records.replay, records.diff, export.export)),
)
for panel, commands in _COMMANDS:
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.command("batch report", rich_help_panel="Jobs")(batch.report)
app.command("jobs export", rich_help_panel="Jobs")(judge.export_jobs)
app.command("eval", rich_help_panel="Corpus")(evaluate.evaluate)
app.add_typer(documents.corpus, rich_help_panel="Corpus")
app.add_typer(search.sessions, rich_help_panel="Corpus")
app.add_typer(dead_letters.dead, rich_help_panel="Jobs")
app.add_typer(watch.watch, rich_help_panel="Questions")
app.add_typer(cache.cache, rich_help_panel="Stack")
app.add_typer(keys.keys, rich_help_panel="Stack")
store.store.command()(reconcile.reconcile)
app.add_typer(store.store, rich_help_panel="Stack")
app.add_typer(webhooks.webhooks, rich_help_panel="Jobs")


def _describe(group: typer.Typer, before: str = "") -> None:
    """Give every command that does an operation the operation's sentence; what it says itself comes behind that."""
    for one in group.registered_commands:
        own = one.callback.__doc__ if one.callback else None
        name = f"{before}{one.name or getattr(one.callback, '__name__', '')}"
        if told := description_of_command(name):
            one.help = f"{told}\n\n{inspect.cleandoc(own)}" if own else told
    for sub in group.registered_groups:
        if sub.typer_instance is not None:
            _describe(sub.typer_instance, f"{before}{sub.typer_instance.info.name} ")


_describe(app)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ramify {found}" if (found := release()) else "ramify, from its source folder")
        raise typer.Exit


@app.callback()
def _global(  # noqa: PLR0913 - the signature is the command line
    ctx: typer.Context,
    *,
    config: Annotated[
        Path | None, typer.Option(help="Settings file (default: ./ramify.toml)", show_default=False)
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the embedded stack (default: .ramify)")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.NAME=VALUE", help="One setting; repeatable.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", hidden=True)] = False,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    if config is not None:
        if not config.is_file():
            raise InputError("--config", str(config), "there is no such file")
        os.environ["RAMIFY_CONFIG"] = str(config.absolute())  # what the settings, and our child processes, read
    overrides = parse_overrides(set_ or [])
    if data_dir is not None:
        overrides["data_dir"] = data_dir
    ctx.obj = Invocation(overrides=overrides, debug=debug)


def run() -> None:
    """The console script. Ends the process with an exit code; an unforeseen error is one line as well."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character is no reason to fail
    # The error at the end says it; without a handler of its own Python prints every retry of a call on stderr.
    logging.getLogger("stamina").addHandler(logging.NullHandler())
    try:
        app(prog_name="ramify")
    except Exception as error:  # noqa: BLE001 - the last line of defence
        if "--debug" in sys.argv:
            traceback.print_exc()
        streams.fail(f"unforeseen: {type(error).__name__}: {error} (`ramify --debug ...` shows where)")
        sys.exit(1)


if __name__ == "__main__":
    run()
