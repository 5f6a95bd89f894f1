"""Files of this machine, put in by name. What comes over the network brings its bytes: see the server's room."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.operations.operation import Operation
from shared.errors import InputError
from shared.models.base import Model
from shared.models.request import Name

_Path = Annotated[str, Field(min_length=1, max_length=4096)]


class FilesInput(Model):
    """Files and folders of this machine. `prune`: what was put in from them and is gone there is removed."""

    paths: tuple[_Path, ...] = Field(min_length=1, max_length=100, description="absolute names of files and folders")
    prune: bool = Field(default=False, description="remove documents whose files are gone from these paths")
    namespace: Name = Field(default="default", description="the corpus that they go to")


class FilesTaken(Model):
    """Files are put in: the job that does it."""

    job_id: str


def _ingest(client: Ramify, given: FilesInput) -> FilesTaken:
    """Names are absolute: the process that serves a caller may stand in any folder."""
    if relative := next((path for path in given.paths if not Path(path).is_absolute()), None):
        raise InputError("paths", relative, "give absolute names")
    return FilesTaken(job_id=client.start_ingest(given.paths, prune=given.prune, namespace=given.namespace))


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "ingest", FilesInput, FilesTaken, _ingest, Scope.WRITE, command="ingest", tool="ingest", long=True,
        local_only=True,
    ),
)  # fmt: skip
