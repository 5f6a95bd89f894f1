"""The collections of a Qdrant server that stand behind one name: the one in use, those before it, one being filled.

`store.collection` is an alias; what it means is called NAME-1, NAME-2 and so on. A collection of an older release is
called NAME itself. Where that one has been replaced, its metadata says by what, since no alias can have its name yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qdrant_client import QdrantClient, models

from shared.errors import StoreError
from shared.settings.store import QdrantSettings
from shared.store import layout
from shared.store.base import BuiltWith
from shared.store.making import make_collection, meta_of, number_of, numbered, point_alias
from shared.store.server_errors import server_errors
from shared.store.server_meta import ServerMeta


class Generations:
    """The collections of one name. Every method raises StoreError or TransientError of the server."""

    def __init__(self, client: QdrantClient, name: str, settings: QdrantSettings, *, indexed: bool = True) -> None:
        """`indexed` as of ServerStore."""
        self.client, self.name, self.settings, self.indexed = client, name, settings, indexed

    def current(self) -> str | None:
        """The collection in use; None when there is none."""
        if (behind := self.behind_alias()) is not None:
            return behind
        if not self.exists(self.name):
            return None
        return self.meta(self.name).moved_to or self.name

    def needed(self) -> str:
        """The collection in use. Raises: StoreError when there is none."""
        if (found := self.current()) is None:
            raise StoreError(f"there is no collection {self.name}: run `ramify ingest PATH` or `ramify store init`")
        return found

    def behind_alias(self) -> str | None:
        """What the alias means; None when there is no alias of this name."""
        with server_errors("reading the aliases"):
            aliases = self.client.get_aliases().aliases
        return next((one.collection_name for one in aliases if one.alias_name == self.name), None)

    def names(self) -> list[str]:
        """All collections of the name, oldest first."""
        return numbered(self.client, self.name)

    def filled(self) -> str | None:
        """The newest collection with chunks that nothing has replaced and no migration fills."""
        for name in reversed(self.names()):
            found = self.look(name)
            known = found.config.metadata or {}
            over = any(known.get(mark) for mark in ("copying", "moved_to", "replaced_by"))
            if found.points_count and "built_with" in known and not over:
                return name
        return None

    def next_name(self) -> str:
        """A name that no collection has yet."""
        return f"{self.name}-{max((number_of(self.name, one) for one in self.names()), default=0) + 1}"

    def exists(self, name: str) -> bool:
        """Whether there is a collection, or an alias, of exactly this name."""
        with server_errors("reading the collection"):
            return self.client.collection_exists(name)

    def meta(self, name: str) -> ServerMeta:
        """What a collection says of itself. Raises: StoreError when it is none of ours."""
        return meta_of(name, self.metadata(name))

    def metadata(self, name: str) -> Mapping[str, Any]:
        """The same, unread."""
        return self.look(name).config.metadata or {}

    def look(self, name: str) -> models.CollectionInfo:
        """A collection as the server tells of it."""
        with server_errors("reading the collection"):
            return self.client.get_collection(name)

    def nodes(self) -> int:
        """Of the server's cluster; 1: it is alone."""
        with server_errors("asking for its cluster"):
            found = self.client.cluster_status()
        return len(found.peers) if isinstance(found, models.ClusterStatusOneOf1) else 1

    def record(self, name: str, **more: object) -> None:
        """Put values into a collection's metadata; an empty one takes its key away."""
        with server_errors("recording how far it is"):
            self.client.update_collection(name, metadata=more)

    def make(self, name: str, built_with: BuiltWith, **more: object) -> None:
        """Make an empty collection as the settings have it."""
        make_collection(self.client, name, self.settings, built_with, indexed=self.indexed, **more)

    def switch(self, to: str) -> None:
        """Let everybody use `to` from now on. Where a collection has the alias's name, that one says where to go."""
        if self.name in self.names():
            self.record(self.name, moved_to=to)
            return
        with server_errors("switching the alias"):
            point_alias(self.client, self.name, to)

    def drop(self, name: str) -> None:
        """Delete a collection; where it had the alias's name, the alias is made of it."""
        meant = self.current()
        if meant == name:
            raise StoreError(f"the collection {name} is in use and is not deleted")
        with server_errors(f"deleting {name}"):
            self.client.delete_collection(name)
            if name == self.name and meant is not None:
                point_alias(self.client, self.name, meant)

    def drop_unfinished(self) -> None:
        """Delete collections whose making was cut off: nothing says what they are, and nothing is in them."""
        for name in self.names():
            found = self.look(name)
            if name != self.name and not found.config.metadata and not found.points_count:
                self.drop(name)

    def differences(self, name: str) -> list[layout.SettingDifference]:
        """Where a collection does not follow the settings."""
        return layout.differences(self.settings, self.look(name), indexed=self.indexed)
