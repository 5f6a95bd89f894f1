"""Keeps a folder fresh in the corpus: what changes within a short window becomes one ingest of just those paths."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from watchfiles import watch

from orchestrator.documents.feeding import Feeding
from orchestrator.documents.ingest import Progress
from shared.errors import InputError, NotRunningError
from shared.files.walk import checked_root, is_walked
from shared.models.base import Model
from shared.models.ingest import MOST_CHANGED

#: Milliseconds that changes are gathered for, at most; and without a change, at least.
_WINDOW_MS, _QUIET_MS = 5_000, 300
#: Seconds between two tries while the stack is away, or another ingest is at the folder.
AGAIN_S = 2.0


class Kept(Model):
    """One round: how many paths had changed, and the steps of the job that they became; or why they wait."""

    paths: int
    steps: tuple[Progress, ...] = ()
    waits: str = ""

    @property
    def job_id(self) -> str:
        """The job's; empty while they wait."""
        return self.steps[-1].job_id if self.steps else ""


class FolderWatch:
    """Gathers what changes below a folder, from `with` on. Raises: InputError for a folder that is not there.

    `poll`: looks at all files several times a second, where the file system tells of no changes, as over a network.
    """

    def __init__(self, folder: Path, *, poll: bool = False) -> None:
        self.folder, self._poll = checked_root(folder), poll
        self._changed, self._lock = set[Path](), threading.Lock()
        self._some, self._over = threading.Event(), threading.Event()
        self._error: Exception | None = None

    def __enter__(self) -> Self:
        threading.Thread(target=self._gather, name="watch", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _gather(self) -> None:
        try:
            for changes in watch(
                self.folder, watch_filter=None, debounce=_WINDOW_MS, step=_QUIET_MS, stop_event=self._over,
                force_polling=self._poll or None, raise_interrupt=False,
            ):  # fmt: skip
                with self._lock:
                    self._changed |= {path for _, name in changes if is_walked(self.folder, path := Path(name))}
                    if self._changed:
                        self._some.set()
        except Exception as error:  # noqa: BLE001 - raised where the changes are taken
            self._error = error
            self._some.set()

    def wait(self, timeout_s: float) -> None:
        """Until there are changes. Raises: what ended the watching, such as the kernel's limit of watches."""
        self._some.wait(timeout_s)
        if self._error is not None:
            raise self._error

    def take(self) -> list[Path]:
        """Some of what has changed, in order; `give_back` what could not be ingested."""
        with self._lock:
            taken = sorted(self._changed)[:MOST_CHANGED]
            self._changed.difference_update(taken)
            if not self._changed:
                self._some.clear()
        return taken

    def give_back(self, paths: list[Path]) -> None:
        """These have still to be ingested."""
        with self._lock:
            self._changed.update(paths)
            self._some.set()


def keep_fresh(
    client: Feeding, watched: FolderWatch, *, namespace: str = "default", tenant: str | None = None
) -> Iterator[Kept]:
    """Ingest what changes below a folder, without end; yields what became of each round.

    While the stack is away, or another ingest is at the folder, changes are kept and tried again: said once.
    """
    said = ""
    while True:
        watched.wait(AGAIN_S)
        paths = watched.take()
        if not paths:
            continue
        try:
            steps = tuple(client.ingest_changes(watched.folder, paths, namespace=namespace, tenant=tenant))
        except (NotRunningError, InputError) as error:
            watched.give_back(paths)
            if str(error) != said:
                yield Kept(paths=len(paths), waits=str(error))
            said = str(error)
            threading.Event().wait(AGAIN_S)
        else:
            said = ""
            yield Kept(paths=len(paths), steps=steps)
