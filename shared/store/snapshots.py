"""Snapshots of a server's collection, made and read back by the server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from shared.errors import InputError, StoreError, TransientError, shown
from shared.providers.http_deadline import proxy_for
from shared.settings import Settings
from shared.settings.server_url import with_login
from shared.store.generations import Generations
from shared.store.snapshot_file import (
    SnapshotFile,
    check_sum,
    stated_checksum,
    whole_file,
    write_checksum,
)

#: Seconds between two bytes of a snapshot: the server packs all of it before the first one comes.
_SILENCE_S = 3600.0
_BLOCK = 1 << 20
_FOUND = 200


class ServerSnapshots:
    """Snapshots of the collection in use. Of a cluster each node makes those of its own shards: ask each of them."""

    def __init__(self, of: Generations, settings: Settings) -> None:
        self._of, self._settings = of, settings

    def create(self) -> SnapshotFile:
        """Make one on the server. Raises: StoreError, TransientError."""
        name = self._of.needed()
        with self._asked("making a snapshot") as client:
            made = _result(client.post(f"/collections/{name}/snapshots", params={"wait": "true"}), "making a snapshot")
        return _file(made, name)

    def fetched(self, to: Path) -> SnapshotFile:
        """Make one and put it into the file `to`; the server, whose disk would fill, keeps none. Raises: as they do."""
        made = self.create()
        try:
            return self.download(made.name, to)
        finally:
            self.delete(made.name)

    def all(self) -> list[SnapshotFile]:
        """Those of all collections of the name, oldest first."""
        found: list[SnapshotFile] = []
        with self._asked("listing the snapshots") as client:
            for name in self._of.names():
                made = _result(client.get(f"/collections/{name}/snapshots"), "listing the snapshots")
                found += [_file(one, name) for one in made]
        return sorted(found, key=lambda one: one.created)

    def download(self, name: str, to: Path) -> SnapshotFile:
        """Fetch one into the file `to`, checked against the server's SHA-256. Raises: InputError, StoreError."""
        one, doing = self._named(name), "downloading a snapshot"
        with self._asked(doing) as client, whole_file(to) as fresh:
            with client.stream("GET", f"/collections/{one.collection}/snapshots/{one.name}") as answer:
                if answer.status_code != _FOUND:
                    answer.read()
                    _result(answer, doing)
                with fresh.open("wb") as file:
                    for block in answer.iter_bytes(_BLOCK):
                        file.write(block)
            check_sum(fresh, one.sha256)
        return one.model_copy(update={"path": str(to), "sha256": write_checksum(to)})

    def delete(self, name: str) -> None:
        """Remove one from the server. Raises: InputError, StoreError, TransientError."""
        one, doing = self._named(name), "deleting a snapshot"
        with self._asked(doing) as client:
            path = f"/collections/{one.collection}/snapshots/{one.name}"
            _result(client.delete(path, params={"wait": "true"}), doing)

    def _named(self, name: str) -> SnapshotFile:
        for one in self.all():
            if one.name == name:
                return one
        raise InputError("NAME", name, "there is no such snapshot: `ramify store snapshot list`")

    def restore(self, path: Path) -> str:
        """Make a new collection of a file and let everybody use that; its name. The one before stays until dropped.

        Raises: StoreError for a cluster of several nodes, InputError, TransientError.
        """
        if (nodes := self._of.nodes()) > 1:
            raise StoreError(
                f"this is a cluster of {nodes} nodes, and a snapshot holds the shards of one: restore those of all "
                "nodes as Qdrant's manual says, and let the alias mean that collection"
            )
        checksum = stated_checksum(path)
        check_sum(path, checksum)
        before, target = self._of.current(), self._of.next_name()
        doing = "restoring a snapshot"
        with self._asked(doing) as client, path.open("rb") as file:
            params = {"wait": "true", "priority": "snapshot", **({"checksum": checksum} if checksum else {})}
            upload = f"/collections/{target}/snapshots/upload"
            _result(client.post(upload, params=params, files={"snapshot": (path.name, file)}), doing)
        for kept in self.all():  # Qdrant keeps what was uploaded
            if kept.collection == target:
                self.delete(kept.name)
        # Its state is the one that it was taken in, unless that was in the middle of a write.
        cut = dict.fromkeys(self._of.meta(target).writing, 0)
        changed = {"index_version": time.time_ns(), **cut} if cut else {}
        self._of.record(target, mirror={}, copying={}, moved_to="", replaced_by="", **changed)
        self._of.switch(target)
        if before is not None:
            self._of.record(before, replaced_by=target, mirror={})
        return target

    @contextmanager
    def _asked(self, doing: str) -> Iterator[httpx.Client]:
        """A client without the bounds of a search: a snapshot takes as long as it is large."""
        store = self._settings.store
        url, key = with_login(store.url), store.api_key.get_secret_value()
        timeout = httpx.Timeout(store.timeout_s, read=_SILENCE_S, write=_SILENCE_S)
        headers = {"api-key": key} if key else {}
        proxy = proxy_for(httpx.URL(url))
        try:
            with httpx.Client(base_url=url, headers=headers, timeout=timeout, proxy=proxy, trust_env=False) as client:
                yield client
        except httpx.TransportError as error:
            raise TransientError(f"Qdrant does not answer while {doing}: {shown(str(error))}") from None


def _result(answer: httpx.Response, doing: str) -> list[dict[str, object]] | dict[str, object]:
    if answer.status_code != _FOUND:
        raise StoreError(f"Qdrant refused the request ({answer.status_code}) while {doing}: {shown(answer.text)}")
    found = answer.json().get("result")
    return found if isinstance(found, list | dict) else {}


def _file(told: object, collection: str) -> SnapshotFile:
    fields = told if isinstance(told, dict) else {}
    return SnapshotFile(
        name=str(fields.get("name", "")),
        bytes=int(fields.get("size") or 0),
        sha256=str(fields.get("checksum") or ""),
        created=str(fields.get("creation_time") or ""),
        collection=collection,
    )
