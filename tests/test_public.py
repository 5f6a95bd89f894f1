"""The package `ramify`: everything that a caller of the client meets, and no more."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import ramify
from orchestrator import client
from shared import models

PACKAGES = ("ramify", "shared", "orchestrator", "workers")
ROOT = Path(__file__).parents[1]


def _classes(hint: object) -> Iterator[type]:
    """The classes of this project that a type hint names."""
    if isinstance(hint, type) and hint.__module__.split(".")[0] in PACKAGES:
        yield hint
    for part in typing.get_args(hint):
        yield from _classes(part)


def test_every_name_of_all_is_there_once_and_in_order() -> None:
    assert list(ramify.__all__) == sorted(set(ramify.__all__))
    assert all(hasattr(ramify, name) for name in ramify.__all__)
    public = {name for name in vars(ramify) if not name.startswith("_")} - {"annotations"}
    assert public - set(ramify.__all__) <= {"shared", "orchestrator"}


def test_the_client_stays_where_it_is() -> None:
    assert ramify.Ramify is client.Ramify


def test_what_the_clients_methods_take_and_give_is_exported() -> None:
    members = [member for name, member in inspect.getmembers(client.Ramify) if not name.startswith("_")]
    functions = [member.fget if isinstance(member, property) else member for member in members]
    hints = {hint for function in functions for hint in typing.get_type_hints(function).values()}
    met = {found.__name__: found for hint in hints for found in _classes(hint)}
    assert {"Answer", "JobRequest", "JobStatus", "FindResult"} <= met.keys()
    assert not {name for name, found in met.items() if getattr(ramify, name, None) is not found}


def test_all_errors_that_the_client_names_are_exported() -> None:
    said = "".join(inspect.getdoc(member) or "" for _, member in inspect.getmembers(client.Ramify))
    named = {word.strip("`.,:;()") for word in said.split() if word.strip("`.,:;()").endswith("Error")}
    assert "NotFoundError" in named
    assert named <= set(ramify.__all__)


def test_a_request_can_be_written_with_it_alone() -> None:
    filters = ramify.Filters(tags=("incident",))
    request = ramify.JobRequest(question="why?", mode=ramify.SearchMode.HYBRID, lane=ramify.Lane.BATCH, filters=filters)
    assert isinstance(request, models.JobRequest)


def test_its_import_brings_in_no_command_line_no_monitor_and_no_store() -> None:
    heavy = "{'typer', 'flower', 'qdrant_client', 'qdrant_edge', 'grpc', 'numpy', 'workers'}"
    code = f"import sys, ramify; sys.exit(', '.join({heavy} & set(sys.modules)) or 0)"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
