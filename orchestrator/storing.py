"""The store as a whole, for its operator: how it is kept, migrations, snapshots. Asks no question of a corpus.

A server is asked directly. The embedded store is asked through the search worker that owns it, and opened here where
no stack runs.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from orchestrator.local.state import connection
from orchestrator.remote import call_pool
from shared.connections.heartbeat import alive_workers, workers
from shared.contract import Queue, TaskName
from shared.errors import InputError, NotRunningError, StoreError, StoreInUseError
from shared.jobs import connect, reachable
from shared.providers.encoders import Bm25Encoder, DenseEncoder, dense_encoder
from shared.providers.encoders.sparse import TrigramEncoder
from shared.settings import Settings, data_folder
from shared.store import BuiltWith, server_client
from shared.store.copying import Tell
from shared.store.generations import Generations
from shared.store.migration import Migration, MigrationOptions, MigrationReport
from shared.store.server_errors import server_errors
from shared.store.snapshot_file import (
    SNAPSHOTS,
    SnapshotFile,
    StoreReply,
    StoreRequest,
    put_back,
    stated_checksum,
    unpacked,
    write_checksum,
)
from shared.store.snapshots import ServerSnapshots
from shared.store.status import StoreStatus, init, server_status
from shared.tasks.app import make_app

#: Seconds for the search worker: it writes a snapshot at the speed of the disk.
_ASK_S, _SNAPSHOT_S = 15.0, 600.0
#: Seconds for the first call of a server.
_FIRST_S = 4.0
#: Copies of an embedded store whose documents change all the time, after which the last one counts.
_COPIES = 5
#: What a collection without chunks is made with: the first tenant's chunks decide its length of passages.
_NO_LENGTH = 1.0


class Storing:
    """Every method raises StoreError or TransientError of the store, and InputError for what it cannot do there."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @property
    def embedded(self) -> bool:
        """Whether the chunks are in the search worker's process."""
        return self.settings.store.kind == "embedded"

    @property
    def folder(self) -> Path:
        """The folder of the embedded store."""
        return self.settings.data_dir.absolute() / "store" / self.settings.store.collection

    def status(self) -> StoreStatus:
        """Where chunks are and how they are kept."""
        if self.embedded:
            return self._embedded_status()
        with self._server() as of:
            return server_status(of, str(self.settings.store.url))

    def init(self, *, apply: bool = False) -> StoreStatus:
        """Make what is missing on the server. `apply`: change in place what differs from the settings."""
        self._needs_server("init", "the embedded store is made by the first `ramify ingest`")
        dense = dense_encoder(self.settings)
        trigrams = TrigramEncoder.name if self.settings.search.trigrams else None
        name, dim = (dense.name, dense.dim) if dense else (None, 0)
        sparse = Bm25Encoder(_NO_LENGTH).name
        built_with = BuiltWith(sparse=sparse, avg_len=_NO_LENGTH, dense=name, dim=dim, trigrams=trigrams)
        with self._server() as of:
            return init(of, built_with, str(self.settings.store.url), apply=apply)

    def migrate(
        self, options: MigrationOptions, tell: Tell, *, switch: bool = True, force: bool = False
    ) -> MigrationReport:
        """Copy the collection into a new one as the settings have it, with their embedding model, and use that."""
        self._needs_server("migrate", "give --to URL to copy the embedded store to a server")
        with self._server() as of:
            return Migration(of, options, self._other_dense(of), tell).run(switch=switch, force=force)

    def migrate_to(
        self, server: Settings, options: MigrationOptions, tell: Tell, *, force: bool = False
    ) -> MigrationReport:
        """Copy the embedded store to the server of other settings. Documents that come meanwhile are copied, too."""
        if not self.embedded:
            raise InputError("--to", str(server.store.url), "store.kind is server already: leave out --to")
        from shared.store.embedded_points import EmbeddedPoints  # noqa: PLC0415 - no engine where a server is used
        from shared.store.moving import move  # noqa: PLC0415

        with Storing(server)._server() as of:  # noqa: SLF001 - of the same class
            for left in range(_COPIES, 0, -1):
                with self._unused() as folder, closing(EmbeddedPoints(folder)) as points:
                    report, version = move(points, of, options, tell, force=force), points.version()
                state = self._asked().state
                if report.fault or left == 1 or state is None or state.index_version == version:
                    return report
        raise AssertionError

    def cancel_migration(self) -> str | None:
        """Give a migration up; the name of the collection that it was filling, None where there was none."""
        self._needs_server("migrate --cancel", "a copy to a server touches nothing here")
        with self._server() as of:
            return Migration(of, MigrationOptions(), None, lambda _: None).cancel()

    def drop_old(self, tell: Tell) -> list[str]:
        """Delete the collections that were replaced; their names."""
        self._needs_server("migrate --drop-old", "there are none")
        with self._server() as of:
            return Migration(of, MigrationOptions(), dense_encoder(self.settings), tell).drop_old()

    def snapshot(self, to: Path | None = None) -> SnapshotFile:
        """Save everything, in the file `to`, or where the store's snapshots are."""
        if self.embedded:
            return self._embedded_snapshot(to)
        with self._server() as of:
            snapshots = ServerSnapshots(of, self.settings)
            return snapshots.create() if to is None else snapshots.fetched(to)

    def snapshots(self) -> list[SnapshotFile]:
        """What has been saved: on the server, or below the data folder; oldest first."""
        if not self.embedded:
            with self._server() as of:
                return ServerSnapshots(of, self.settings).all()
        folder = self.settings.data_dir.absolute() / SNAPSHOTS
        files = sorted(folder.glob("*.tar.gz"), key=lambda one: one.stat().st_mtime)
        return [
            SnapshotFile(
                name=one.name,
                bytes=one.stat().st_size,
                sha256=stated_checksum(one),
                created=time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(one.stat().st_mtime)),
                path=str(one),
            )
            for one in files
        ]

    def delete_snapshot(self, name: str) -> None:
        """Remove a snapshot from the server."""
        self._needs_server("snapshot delete", f"its snapshots are files below {self.settings.data_dir / SNAPSHOTS}")
        with self._server() as of:
            ServerSnapshots(of, self.settings).delete(name)

    def download(self, name: str, to: Path) -> SnapshotFile:
        """Fetch a snapshot of the server into a file."""
        self._needs_server("snapshot download", f"its snapshots lie below {self.settings.data_dir / SNAPSHOTS}")
        with self._server() as of:
            return ServerSnapshots(of, self.settings).download(name, to)

    def restore(self, path: Path) -> str:
        """Put a snapshot in the place of what is there, which is kept beside it; one sentence that says where.

        The embedded store must not be in use.
        """
        if not self.embedded:
            with self._server() as of:
                before, target = of.current(), ServerSnapshots(of, self.settings).restore(path)
                kept = f"; {before} is kept until `ramify store migrate --drop-old`" if before else ""
                return f"{of.name} is {target} now{kept}"
        data_folder.made(self.settings)
        with self._alone():
            moved = put_back(path, self.folder)
        kept = f"; what was there is in {moved}" if moved else ""
        return f"{self.folder} is restored{kept}"

    @contextmanager
    def _server(self) -> Iterator[Generations]:
        """Raises: TransientError within seconds where nothing answers; later failures are waited for."""
        self._require_server()
        client = server_client(self.settings)
        try:
            yield Generations(client, self.settings.store.collection, self.settings.store.qdrant)
        finally:
            client.close()

    def _require_server(self) -> None:
        store, providers = self.settings.store, self.settings.providers
        once = self.settings.model_copy(
            update={
                "store": store.model_copy(update={"timeout_s": min(store.timeout_s, _FIRST_S)}),
                "providers": providers.model_copy(update={"qdrant_attempts": 1}),
            }
        )
        with closing(server_client(once)) as client, server_errors(f"connecting to {store.url}"):
            client.collection_exists(store.collection)

    def _needs_server(self, command: str, instead: str) -> None:
        if self.embedded:
            raise InputError("store.kind", "embedded", f"`ramify store {command}` is for a Qdrant server: {instead}")

    def _other_dense(self, of: Generations) -> DenseEncoder | None:
        """The embedding model of the settings, where they name one and the collection was built with another one."""
        dense = dense_encoder(self.settings)
        same = dense is None or dense.name == of.meta(of.needed()).built_with.dense
        return None if same else dense

    def _embedded_status(self) -> StoreStatus:
        state = self._asked().state
        size = sum(one.stat().st_size for one in self.folder.rglob("*") if one.is_file())
        ignored = tuple(self.settings.store.ignored())
        warnings = [f"the embedded store has none of {', '.join(ignored)}: they are for a server"] if ignored else []
        warnings += [] if state else ["nothing has been ingested yet: run `ramify ingest PATH`"]
        return StoreStatus(
            kind="embedded",
            place=str(self.folder),
            collection=self.settings.store.collection,
            bytes=size,
            chunks=state.points if state else 0,
            built_with=state.built_with if state else None,
            index_version=state.index_version if state else 0,
            tenants=len(state.tenants) if state else 0,
            ignored=ignored,
            warnings=tuple(warnings),
        )

    def _embedded_snapshot(self, to: Path | None) -> SnapshotFile:
        name = f"{self.settings.store.collection}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.tar.gz"
        made = self._asked(name).snapshot
        if made is None:
            raise _nothing()
        if to is None:
            return made
        found = Path(made.path)
        try:
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(found, to)
            found.with_name(f"{found.name}.sha256").unlink(missing_ok=True)
            write_checksum(to)
        except OSError as error:
            raise InputError("--to", str(to), f"{error.strerror}: the snapshot is in {found}") from None
        return made.model_copy(update={"name": to.name, "path": str(to)})

    def _asked(self, snapshot: str = "") -> StoreReply:
        """What the owner of the embedded store says; with a name, after it has written a snapshot."""
        try:
            return self._worker_says(snapshot)
        except NotRunningError:
            return self._opened_here(snapshot)

    def _worker_says(self, snapshot: str) -> StoreReply:
        settings = connection(self.settings)
        seconds = _SNAPSHOT_S if snapshot else _ASK_S
        with reachable(settings), connect(settings, retries=0) as client:
            asked = [beat.worker for beat in workers(client) if Queue.INDEX in beat.queues]
            if not alive_workers(client, asked):  # it would be waited for in vain
                raise NotRunningError("no search worker runs")
        with make_app(settings) as app:
            told = call_pool(app, settings, TaskName.INDEX_STORE, StoreRequest(snapshot=snapshot), seconds)
        reply = StoreReply.of_record(told)
        if reply.error:
            raise StoreError(reply.error)
        return reply

    def _opened_here(self, snapshot: str) -> StoreReply:
        from shared.store.embedded_points import EmbeddedPoints  # noqa: PLC0415 - no engine where a server is used

        data_folder.made(self.settings)
        with closing(EmbeddedPoints(self.folder)) as points:
            state = points.state()
            to = self.settings.data_dir.absolute() / SNAPSHOTS / snapshot
            return StoreReply(state=state, snapshot=points.snapshot(to) if snapshot and state else None)

    @contextmanager
    def _unused(self) -> Iterator[Path]:
        """The folder of the embedded store, or while a search worker has it a copy as it is now."""
        data_folder.made(self.settings)
        with tempfile.TemporaryDirectory(prefix=".migrate-", dir=self.settings.data_dir.absolute()) as aside:
            try:
                made = self._worker_says("migrate.tar.gz").snapshot
            except NotRunningError:
                yield self.folder
                return
            if made is None:
                raise _nothing()
            try:
                folder = unpacked(Path(made.path), Path(aside))
            finally:
                for one in (made.path, f"{made.path}.sha256"):
                    Path(one).unlink(missing_ok=True)
            yield folder

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raises: StoreInUseError while a search worker has the store."""
        if self.folder.is_dir() and any(self.folder.iterdir()):
            from shared.store.embedded_points import EmbeddedPoints  # noqa: PLC0415

            try:
                EmbeddedPoints(self.folder).close()
            except StoreInUseError:
                raise
            except StoreError:  # a damaged one, which is why it is restored
                pass
        yield


def _nothing() -> StoreError:
    return StoreError("nothing has been ingested yet: run `ramify ingest PATH`")
