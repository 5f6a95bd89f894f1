"""The worker that takes over a retried job is killed between two leaves: the reaper brings the job to its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.client import Ramify
from shared.jobs import connect
from tests.acceptance.conftest import NOTES, ingested, launched
from tests.support.spoilt import fail_leaf

PATIENCE_S = 100
_SOURCE = """
import importlib.abc, importlib.util, os, signal, sys

FLAG = {flag!r}

class Deadly(tuple):
    def __iter__(self):
        for number, leaf in enumerate(tuple.__iter__(self)):
            if number == 1 and not os.path.exists(FLAG):
                open(FLAG, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            yield leaf

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "orchestrator.retries.resume":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        real = spec.loader.exec_module
        def exec_module(module):
            import dataclasses
            real(module)
            resumed_tree = module.resumed_tree
            def deadly(*given):
                found = resumed_tree(*given)
                return dataclasses.replace(found, kept=Deadly(found.kept))
            module.resumed_tree = deadly
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""


@pytest.fixture(scope="module")
def flag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flag") / "killed"


@pytest.fixture(scope="module")
def ramify(tmp_path_factory: pytest.TempPathFactory, flag: Path) -> Iterator[Ramify]:
    folder = tmp_path_factory.mktemp("deadly")
    (folder / "sitecustomize.py").write_text(_SOURCE.format(flag=str(flag)), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        for client in launched(tmp_path_factory.mktemp("stack")):
            yield ingested(client, NOTES / "en" / "queues")


@pytest.mark.timeout(2 * PATIENCE_S)
def test_a_kill_in_the_middle_of_a_takeover_costs_nothing_but_work(ramify: Ramify, flag: Path) -> None:
    plan = ["What is a visibility timeout?", "What is a dead letter?"]
    old = ramify.submit("How do queues lose work?", subqueries=plan)
    assert ramify.wait(old, PATIENCE_S).state == "done"
    client = connect(ramify.settings)
    fail_leaf(client, old, "0.2")
    client.close()
    new = ramify.retry(old).job_id or ""
    status = ramify.wait(new, PATIENCE_S)
    assert flag.exists(), "the plan worker was killed"
    assert (status.state, status.partial, status.leaves_done, status.leaves_total) == ("done", False, 3, 3)
    kinds = [event.data.get("state", event.type) for event in ramify.stream(new)]
    assert kinds.count("searching") == kinds.count("done") == 1
    assert "redriven" in kinds
    recorded = [event.data["id"] for event in ramify.stream(new) if event.data.get("status") == "done"]
    assert sorted(recorded) == ["0.0", "0.1", "0.2"], "each once"
