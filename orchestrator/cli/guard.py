"""Every command's last line of defence: an error becomes one line on stderr and an exit code, never a traceback."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from orchestrator.cli import outcome, output
from orchestrator.cli.session import session_of
from shared.errors import RamifyError


class Guarded(TyperGroup):
    """The root of all commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises: typer.Exit with the code that the error asks for."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except RamifyError as error:
            if session_of(ctx).debug:
                traceback.print_exc()
            output.fail(str(error))
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            output.note("interrupted")
            raise typer.Exit(outcome.INTERRUPTED) from None
        except BrokenPipeError:
            output.stop_writing()
            raise typer.Exit(outcome.FAILED) from None
        return result
