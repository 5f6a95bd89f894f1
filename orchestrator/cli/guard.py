"""Every command's last line of defence: an error becomes one line on stderr and an exit code, never a traceback."""

from __future__ import annotations

import errno
import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from orchestrator.cli import outcome, output
from orchestrator.cli.invocation import invocation_of
from orchestrator.cli.wording import clean
from shared.errors import InputError, RamifyError

_BAD_PATH = frozenset({errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR, errno.EROFS})


class GuardedGroup(TyperGroup):
    """The root of all commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the global options."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            _clean(error)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises: typer.Exit with the code that the error asks for."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except RamifyError as error:
            if invocation_of(ctx).debug:
                traceback.print_exc()
            output.fail(str(error))
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            output.note("interrupted")
            raise typer.Exit(outcome.INTERRUPTED) from None
        except BrokenPipeError:
            output.stop_writing()
            raise typer.Exit(outcome.FAILED) from None
        except OSError as error:
            raise _of_path(error) from None
        except Exception as error:
            if said := _of_redis(error):
                if invocation_of(ctx).debug:
                    traceback.print_exc()
                output.fail(said)
                raise typer.Exit(outcome.FAILED) from None
            _clean(error)
            raise
        return result


def _of_path(error: OSError) -> Exception:
    """A path that cannot be looked at at all, as one that is too long: exit code 2. Other faults stay what they are."""
    if error.errno not in _BAD_PATH or not isinstance(error.filename, str):
        return error
    output.fail(str(InputError("path", error.filename, f"{error.strerror}: name another")))
    return typer.Exit(InputError.exit_code)


def _clean(error: Exception) -> None:
    """Words that were given are repeated in errors of usage; what hides in them is not."""
    message = getattr(error, "message", None)
    if isinstance(message, str):
        error.message = clean(message)  # type: ignore[attr-defined] # Click's, where there is one


def _of_redis(error: Exception) -> str | None:
    """The sentence for an error of Redis or of the broker that nobody on the way here had one for; None for others."""
    if type(error).__module__.partition(".")[0] not in {"redis", "kombu"}:
        return None
    from shared.job_store.faults import fault, unknown  # noqa: PLC0415 - Redis' client is loaded by now

    return f"Redis {fault(error) or unknown(error)}"
