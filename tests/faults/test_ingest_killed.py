"""Kill -9 in the middle of an ingest, wherever it is: the next run leaves what a fresh ingest would have.

Real processes: the client, the worker that owns the store, Redis. RAMIFY_TEST_SEED and RAMIFY_TEST_ROUNDS choose
another run and a longer one; both are printed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.exceptions import RedisError

from orchestrator.client import Ramify
from orchestrator.local.state import read_state
from shared.errors import RamifyError
from shared.settings import Settings, load_settings
from tests.acceptance.conftest import launched
from tests.fakes.stores import open_store
from tests.support.waiting import until
from workers.index.pipeline import Indexer

SEED = int(os.environ.get("RAMIFY_TEST_SEED", "1"))
ROUNDS = int(os.environ.get("RAMIFY_TEST_ROUNDS", "1"))
FILES = 60
PATIENCE_S = 60
_RUN = "import sys; from orchestrator.cli.main import run; sys.argv[0] = 'ramify'; run()"

Content = dict[str, tuple[object, ...]]


def write_corpus(root: Path, dice: random.Random) -> None:
    """Write every file, or, where there are some, other words into a third of them; drop a few and bring them back."""
    for number in range(FILES):
        file = root / f"part{number % 5}" / f"page{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and dice.random() < 0.6:
            continue
        if dice.random() < 0.1:
            file.unlink(missing_ok=True)
            continue
        sections = "\n\n".join(
            f"## Part {n}\n\nvacuum 缓存 {dice.randrange(10_000)} " + "some more words " * dice.randrange(40)
            for n in range(dice.randrange(1, 6))
        )
        file.write_text(f"# Page {number}\n\n[[Page {dice.randrange(FILES)}]]\n\n{sections}\n", encoding="utf-8")
    lines = [json.dumps({"id": n, "text": f"line {dice.randrange(99)}"}) for n in range(40)]
    (root / "lines.jsonl").write_text("\n".join(lines), encoding="utf-8")


def stored(settings: Settings) -> Content:
    """Every chunk: what it is made of, and what the end of an ingest joins to it. Once each, or the test fails."""
    store = open_store(settings)
    try:
        hits = [hit for page in store.scroll(None) for hit in page]
    finally:
        store.close()
    assert [chunk_id for chunk_id, times in Counter(hit.chunk_id for hit in hits).items() if times > 1] == []
    return {
        hit.chunk_id: (hit.path, hit.ordinal, hit.text, hit.backlinks, hit.refs, hit.mentions, hit.defines)
        for hit in hits
    }


def fresh(root: Path, folder: Path) -> Content:
    """What an ingest gives that nobody disturbs, into an empty store, in this process."""
    from shared.files.pieces import read
    from shared.files.walk import discover
    from shared.models import RawDocument

    settings = Settings(data_dir=folder)
    store = open_store(settings)
    indexer = Indexer(store, None, settings)
    found, _ = discover([root])
    raw = [piece for item in found for piece in read(item, "default", "default", 10**7)]
    indexer.index([piece for piece in raw if isinstance(piece, RawDocument)])
    indexer.finish()
    store.close()
    return stored(settings)


class Run:
    """One `ramify ingest --prune --json` as a process of its own."""

    def __init__(self, ramify: Ramify, root: Path) -> None:
        folder = str(ramify.settings.data_dir)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _RUN, "--data-dir", folder, "ingest", "--prune", "--json", str(root)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._watch = threading.Timer(PATIENCE_S, self.process.kill)
        self._watch.start()

    def until(self, lines: int) -> None:
        """Read that many lines of outcomes, fewer if it ends before."""
        assert self.process.stdout is not None
        for _ in range(lines):
            if not self.process.stdout.readline():
                return

    def end(self) -> tuple[int, str]:
        """Exit code and stderr. Fails when it does not come to an end."""
        _, said = self.process.communicate()
        hung = not self._watch.is_alive()
        self._watch.cancel()
        assert not hung, f"the ingest did not end in {PATIENCE_S} s: {said}"
        return self.process.returncode, said


def kill(ramify: Ramify, run: Run, victim: str) -> None:
    if victim == "client":
        run.process.kill()
        return
    state = read_state(ramify.settings)
    assert state is not None
    (child,) = [child for child in state.children if child.name == victim]
    os.kill(child.pid, signal.SIGKILL)


def until_redis_answers(ramify: Ramify) -> None:
    """The supervisor starts it again after a second; an ingest that begins before is told so and ends."""

    def answers() -> bool:
        try:
            ramify.jobs(1)
        except (RamifyError, RedisError):
            return False
        return True

    until(answers, PATIENCE_S, "Redis answers again", 0.1)


@pytest.fixture
def ramify(tmp_path: Path) -> Iterator[Ramify]:
    yield from launched(tmp_path / "stack")


@pytest.mark.timeout(120 + 180 * ROUNDS)
def test_given_kills_anywhere_when_ingested_again_then_the_store_is_as_after_a_fresh_ingest(
    ramify: Ramify, tmp_path: Path
) -> None:
    print(f"RAMIFY_TEST_SEED={SEED} RAMIFY_TEST_ROUNDS={ROUNDS}")
    dice = random.Random(SEED)
    root = tmp_path / "notes"
    for victim in ["client", "search", "redis"] * ROUNDS:
        write_corpus(root, dice)
        until_redis_answers(ramify)
        run = Run(ramify, root)
        lines = dice.randrange(FILES + 40)
        run.until(lines)
        kill(ramify, run, victim)
        code, said = run.end()
        print(f"{victim} killed after {lines} outcomes: exit code {code}")
        assert "Traceback" not in said
        if victim != "client":
            assert (code == 0) == ("error:" not in said), "an error or a success, never both"
        (job,) = ramify.jobs(1)
        ended = ramify.wait(job.job_id, PATIENCE_S)
        assert ended.state == "done", f"{victim} was killed: the job goes on without it ({ended.error})"
        assert ended.ingest is not None
        assert (ended.ingest.read, ended.ingest.failed) == (ended.ingest.files, 0)
    write_corpus(root, dice)
    until_redis_answers(ramify)
    twice = [Run(ramify, root), Run(ramify, root)]
    assert [run.end()[0] for run in twice] == [0, 0], "two at once get out of each other's way"
    again = list(ramify.ingest(root, prune=True))
    statuses = Counter(out.status.value for step in again for out in step.outcomes)
    settings = load_settings(data_dir=ramify.settings.data_dir)
    from orchestrator.local.background import down

    down(ramify.settings)

    assert set(statuses) == {"unchanged"}
    assert stored(settings) == fresh(root, tmp_path / "fresh")
