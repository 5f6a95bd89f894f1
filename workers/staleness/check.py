"""Marks the kept answers that changed documents touch, and unmarks those whose documents are as they were again.

What holds is read off the store and not off the change: a check may run twice, late, or after a killed ingest.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, NamedTuple

from pydantic import ValidationError
from qdrant_client import models

from shared.errors import RamifyError
from shared.jobs import JobStore
from shared.jobs.corpus_written import CorpusWritten
from shared.jobs.keys import StandingKeys
from shared.jobs.stale import StaleAnswers
from shared.models import DocumentOutcome
from shared.models.stale import StaleBy, StaleCheck, StaleMark
from shared.models.standing import StandingState
from shared.store import ChunkStore
from shared.store.schema import DOCUMENT, READ_BATCH, equals, of_documents, sliced
from workers.search.resources import SearchResources
from workers.staleness.basis import AnswerBases, AnswerBasis, LeafBasis
from workers.staleness.entering import EnteringChunks, Moved, NewChunks, OwnLeaf
from workers.staleness.preview import AnswerPreviews

log = logging.getLogger("ramify.staleness")
#: Standing questions that are searched and then looked at as a whole, one lot after the other.
_WATCHED_AT_ONCE = 16
_FIELDS = ("doc_id", "path", "title", "namespace")


class ChangedDocument(NamedTuple):
    """A changed document: its path, and the ids of the chunks that it did not have; none where any may be new."""

    path: str
    fresh: tuple[str, ...] = ()


def changes_of(outcomes: Iterable[DocumentOutcome]) -> dict[str, ChangedDocument]:
    """By document; one that has changed several times has all that was new each time."""
    found = dict[str, ChangedDocument]()
    for one in outcomes:
        before = found.get(one.doc_id)
        fresh = one.fresh if before is None or not (one.fresh and before.fresh) else (*before.fresh, *one.fresh)
        found[one.doc_id] = ChangedDocument(one.path, fresh if before is None or before.fresh else ())
    return found


@dataclass
class StoredNow:
    """Documents as the store has them: paths by id, namespaces by id, hashes of titles by chunk id."""

    paths: dict[str, str] = field(default_factory=dict)
    namespaces: dict[str, str] = field(default_factory=dict)
    titles: dict[str, int] = field(default_factory=dict)


class NewOf(NamedTuple):
    """What is stored now of changed documents, and when nothing is looked at any more (time.monotonic())."""

    now: StoredNow
    changed: Mapping[str, ChangedDocument]
    ends_at: float


class StalenessCheck:
    """One a process. May raise redis.exceptions.RedisError and the store's errors."""

    def __init__(self, resources: SearchResources, jobs: JobStore) -> None:
        self._resources, self._jobs, self._settings = resources, jobs, resources.settings
        self._answers = StaleAnswers(jobs.client, self._settings, jobs.clock)
        self._bases = AnswerBases(jobs.client, self._settings)
        self._written = CorpusWritten(jobs.client, self._settings)
        self._preview = AnswerPreviews(resources, jobs)
        self._lock = Lock()

    def run(self, tenant: str, outcomes: Sequence[DocumentOutcome], since: float | None = None) -> StaleCheck:
        """Hold the tenant's kept answers against documents that were added, changed or removed.

        `since`: and against those that were written since then (Unix seconds), and those that answers rest on and that
        are gone.
        """
        if (info := self._resources.store(tenant).info()) is not None:
            self._written.note(info.index_version)
        if not self._settings.staleness.enabled:
            return StaleCheck()
        changed = changes_of(outcomes)
        if since is not None:
            changed |= {doc_id: ChangedDocument(path) for doc_id, path in self._unsaid(tenant, since).items()}
        if not changed:
            return StaleCheck()
        self._answers.note_changes(tenant, changed)
        open_jobs = (job_id for job_id, (_, own) in self._jobs.admission.under_way().items() if own == tenant)
        self._answers.note_late(tenant, open_jobs)
        found = self._held_against(tenant, self._bases.newest(), changed)
        self._answers.note_checked(tenant)
        return found

    def rests_on(self, tenant: str, outcomes: Sequence[DocumentOutcome]) -> int:
        """How many kept answers have passages of documents that would change or go; lists of any."""
        ids = {one.doc_id for one in outcomes}
        if not ids or not self._settings.staleness.enabled:
            return 0
        bases, _ = self._bases.of(tenant, self._bases.newest())
        return sum(not ids.isdisjoint(basis.paths) or any(leaf.listed for leaf in basis.leaves) for basis in bases)

    def _unsaid(self, tenant: str, since: float) -> dict[str, str]:
        """Documents that nobody has told of. Reads the first chunk of every document."""
        store = self._resources.store(tenant)
        if store.info() is None:
            return {}
        rows = store.read(models.Filter(must=[equals("ordinal", 0)]), ("doc_id", "path", DOCUMENT))
        stored = {row["doc_id"]: (row["path"], (row.get(DOCUMENT) or {}).get("ingested", 0)) for _, row in rows}
        written = {doc_id: path for doc_id, (path, ingested) in stored.items() if ingested >= int(since)}
        bases, _ = self._bases.of(tenant, self._bases.newest())
        rested = {doc_id: path for basis in bases for doc_id, path in basis.paths.items()}
        return {**{doc_id: path for doc_id, path in rested.items() if doc_id not in stored}, **written}

    def run_late(self, tenant: str) -> StaleCheck:
        """The same for answers that were under way when documents changed and have ended since, or are left of a check.

        What there is no time for now stays noted.
        """
        under_way = self._jobs.admission.under_way()
        late = [job_id for job_id in self._answers.late(tenant) if job_id not in under_way]
        bases, unread = self._bases.of(tenant, late)
        since = min((basis.searched_at for basis in bases), default=0.0)
        changed = dict.fromkeys(self._answers.changes_since(tenant, since) if bases else (), ChangedDocument(""))
        found = self._held_against(tenant, late, changed) if changed else StaleCheck()
        kept = {*found.unchecked, *unread}
        self._answers.forget_late(tenant, (job_id for job_id in late if job_id not in kept))
        return found

    def _held_against(self, tenant: str, ids: Sequence[str], changed: Mapping[str, ChangedDocument]) -> StaleCheck:
        """Hold these answers against changed documents, as far as there is time; the others are noted for later."""
        ends_at = time.monotonic() + self._settings.staleness.check_s
        with self._lock:  # one at a time: each takes a core
            bases, unread = self._bases.of(tenant, ids, ends_at)
            found = self._checked(tenant, bases, changed, ends_at) if bases else StaleCheck()
        unchecked = tuple(dict.fromkeys((*found.unchecked, *unread)))
        self._answers.note_late(tenant, unchecked)
        return found.model_copy(update={"unchecked": unchecked, "left": len(unchecked)})

    def _checked(
        self,
        tenant: str,
        bases: Sequence[AnswerBasis],
        changed: Mapping[str, ChangedDocument],
        ends_at: float,
    ) -> StaleCheck:
        store = self._resources.store(tenant)
        now = stored_now(store, changed)
        paths = {**{doc_id: change.path for doc_id, change in changed.items()}, **now.paths}
        known = self._answers.marks(self._answers.of_tenant(tenant, self._settings.staleness.most_answers))
        touched = _Touched(self._jobs.clock.now(), known)
        for basis in bases:
            touched.add_lost(basis, changed.keys(), now)
        unchecked = self._add_moved(tenant, bases, NewOf(now, changed, ends_at), touched)
        marked, cleared = self._write(tenant, bases, paths, touched, unchecked)
        return StaleCheck(answers=marked, fresh=cleared, checked=len(bases), unchecked=tuple(sorted(unchecked)))

    def _add_moved(self, tenant: str, bases: Sequence[AnswerBasis], new: NewOf, touched: _Touched) -> frozenset[str]:
        """Add what leaves would find otherwise now; returns the answers that there was no time for."""
        ready, standing = self._resources.tools(tenant), self._standing_answers()
        if ready is None:
            return frozenset()
        tools = replace(ready[1], index_version=ready[0].index_version)
        chunks = NewChunks.of({doc_id: new.changed[doc_id].fresh for doc_id in new.now.paths})
        scored, written = EnteringChunks(self._resources, tools, chunks, new.ends_at), {*new.now.namespaces.values()}
        watched = [basis for basis in bases if basis.job_id in standing]
        others = [
            one
            for one in bases
            if one.job_id not in standing and (one.namespace in written or one.job_id in touched.known)
        ]
        unseen = list[str]()
        try:
            for some in [*sliced(watched, _WATCHED_AT_ONCE), others]:
                self._score(some, scored, touched, always=some is not others)
                if some is not others:
                    unseen += self._look_ahead(some, scored, touched)
        except RamifyError as error:
            log.warning("new chunks could not be scored against kept answers: %s", error)
        return frozenset((*unseen, *scored.left))

    @staticmethod
    def _score(bases: Sequence[AnswerBasis], scored: EnteringChunks, touched: _Touched, *, always: bool) -> None:
        """Add what the leaves of these answers would find otherwise now."""
        own = {basis.job_id: basis for basis in bases}
        leaves = [
            OwnLeaf(basis.job_id, leaf, always or leaf.close or touched.had_moved(basis, leaf))
            for basis in bases
            for leaf in basis.leaves
            if not leaf.listed
        ]
        for one, moved in scored.of(leaves):
            touched.add_moved(own[one.job_id], one.leaf, moved)
        touched.searched |= scored.searched

    def _look_ahead(self, bases: Sequence[AnswerBasis], scored: EnteringChunks, touched: _Touched) -> list[str]:
        """Note of standing questions whether their touched answers would cite other words now.

        Returns those that there was no time for.
        """
        unseen = list[str]()
        for basis in bases:
            if scored.search is None or basis.job_id in scored.left:
                continue
            if basis.job_id not in touched.found:
                self._answers.note_preview(basis.job_id, differs=False)
            elif scored.in_time:
                self._answers.note_preview(basis.job_id, self._preview.differs(basis.job_id, scored.search))
            else:
                unseen.append(basis.job_id)
        return unseen

    def _standing_answers(self) -> frozenset[str]:
        """The answers of standing questions: somebody waits to be told, so they are looked at more closely."""
        rows: Any = self._jobs.client.hvals(StandingKeys.states)
        found = set[str]()
        for raw in rows:
            try:
                found.add(StandingState.of_record(raw).answer or "")
            except ValidationError:
                continue
        return frozenset(found)

    def _write(
        self,
        tenant: str,
        bases: Sequence[AnswerBasis],
        paths: Mapping[str, str],
        touched: _Touched,
        unchecked: frozenset[str],
    ) -> tuple[int, int]:
        """Mark, and unmark what was marked by these documents and is not touched by them any more."""
        changes = dict[str, tuple[list[StaleMark], list[str]]]()
        for basis in bases:
            before = {mark.doc_id: mark for mark in touched.known.get(basis.job_id, ())}
            marks = touched.marks(basis, paths, before)
            still = before if basis.job_id in unchecked else {one.doc_id for one in marks}
            cleared = [
                doc_id
                for doc_id, mark in before.items()
                if doc_id not in still and (doc_id in paths or touched.has_seen(basis, mark))
            ]
            if marks or cleared:
                changes[basis.job_id] = marks, cleared
        done = self._answers.mark(tenant, changes)
        return sum(one > 0 for one in done), sum(one < 0 for one in done)


@dataclass
class _Touched:
    """Answer -> document -> what became of it and the leaves that it touches, with its rank; `known`: marks so far."""

    at: float
    known: Mapping[str, Sequence[StaleMark]]
    found: defaultdict[str, dict[str, tuple[StaleBy, dict[str, int]]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    #: Answer and leaf, of those that were searched again.
    searched: set[tuple[str, str]] = field(default_factory=set)

    def _add(self, basis: AnswerBasis, doc_id: str, by: StaleBy, leaf: LeafBasis, rank: int = 1) -> None:
        leaves = self.found[basis.job_id].setdefault(doc_id, (by, {}))[1]
        leaves[leaf.node_id] = min(rank, leaves.get(leaf.node_id, rank))

    def add_lost(self, basis: AnswerBasis, changed: Iterable[str], now: StoredNow) -> None:
        """Leaves that have kept a passage which is not stored any more, or under another title."""
        wanted = set(changed)
        for leaf in basis.leaves:
            for rank, (chunk_id, (doc_id, title)) in enumerate(leaf.chunks.items(), 1):
                if doc_id in wanted and now.titles.get(chunk_id) != title:
                    self._add(basis, doc_id, StaleBy.CHANGED if doc_id in now.paths else StaleBy.GONE, leaf, rank)
            if leaf.listed:
                self._add_listed(basis, leaf, wanted, now)

    def _add_listed(self, basis: AnswerBasis, leaf: LeafBasis, changed: Iterable[str], now: StoredNow) -> None:
        """A list says that it is complete: every document of its namespace that came, went or changed touches it."""
        for doc_id in changed:
            if now.namespaces.get(doc_id, basis.namespace) == basis.namespace:
                self._add(basis, doc_id, StaleBy.CHANGED if doc_id in now.paths else StaleBy.GONE, leaf)

    def add_moved(self, basis: AnswerBasis, leaf: LeafBasis, moved: Mapping[str, Moved]) -> None:
        """Leaves that would keep passages of these documents which they have not kept, or at other places."""
        for doc_id, one in moved.items():
            new = StaleBy.CHANGED if doc_id in basis.paths else StaleBy.NEW
            self._add(basis, doc_id, new if one.is_new else StaleBy.MOVED, leaf, one.rank)

    def had_moved(self, basis: AnswerBasis, leaf: LeafBasis) -> bool:
        """Whether a leaf is marked by a document that had only moved: it may be where it was again."""
        marks = self.known.get(basis.job_id, ())
        return any(mark.by is StaleBy.MOVED and leaf.node_id in mark.leaves for mark in marks)

    def has_seen(self, basis: AnswerBasis, mark: StaleMark) -> bool:
        """Whether all leaves that a document which had only moved touched were searched again."""
        return mark.by is StaleBy.MOVED and all((basis.job_id, name) in self.searched for name in mark.leaves)

    def marks(self, basis: AnswerBasis, paths: Mapping[str, str], before: Mapping[str, StaleMark]) -> list[StaleMark]:
        """An answer's marks; one that stood there keeps its time."""
        return [
            StaleMark(
                doc_id=doc_id,
                path=paths.get(doc_id) or basis.paths.get(doc_id) or doc_id,
                by=by,
                since=before[doc_id].since if doc_id in before else round(self.at, 3),
                leaves=tuple(sorted(leaves)),
                rank=min(leaves.values()),
            )
            for doc_id, (by, leaves) in sorted(self.found.get(basis.job_id, {}).items())
        ]


def stored_now(store: ChunkStore, doc_ids: Iterable[str]) -> StoredNow:
    """These documents, as far as they are stored. Raises: StoreError, TransientError."""
    found = StoredNow()
    if store.info() is None:
        return found
    for some in sliced(sorted(doc_ids), READ_BATCH):
        for chunk_id, stored in store.read(of_documents(some), _FIELDS):
            found.paths[stored["doc_id"]] = stored["path"]
            found.namespaces[stored["doc_id"]] = stored.get("namespace", "default")
            found.titles[chunk_id] = hash(stored["title"])
    return found
