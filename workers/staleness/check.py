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
from shared.models import DocumentOutcome, MergedHit
from shared.models.stale import StaleBy, StaleCheck, StaleMark
from shared.models.standing import StandingState
from shared.store import ChunkStore
from shared.store.schema import DOCUMENT, READ_BATCH, equals, of_documents, sliced
from workers.search.resources import SearchResources
from workers.staleness.basis import AnswerBases, AnswerBasis, LeafBasis
from workers.staleness.entering import EnteringChunks, Moved, NewChunks, OwnLeaf
from workers.staleness.preview import AnswerPreviews

log = logging.getLogger("ramify.staleness")
#: Answers whose leaves are searched and which then are looked at as a whole, one lot after the other.
_WHOLE_AT_ONCE = 16
#: Answers that one close look is at.
_CLOSELY_AT_ONCE = 100
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


class Look(NamedTuple):
    """The documents that have changed, when nothing is looked at any more (time.monotonic()), and how closely.

    `closely`: all leaves are searched again, and answers made, whatever is new.
    """

    changed: Mapping[str, ChangedDocument]
    ends_at: float
    closely: bool


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
        self._answers.note_rechecks(tenant, open_jobs)
        found = self._held_against(tenant, self._bases.newest(), changed, self._settings.staleness.check_s)
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

    def run_rechecks(self, tenant: str) -> StaleCheck:
        """Look closely at the next answers of those that a change has been held against, or that were under way then.

        Their leaves are searched and the answers are made again in this process, so that those are marked which a full
        run would give otherwise. What there is no time for now stays noted.
        """
        under_way, noted = self._jobs.admission.under_way(), self._answers.rechecks(tenant)
        due = [job_id for job_id in noted if job_id not in under_way][:_CLOSELY_AT_ONCE]
        bases, unread = self._bases.of(tenant, due)
        since = min((basis.searched_at for basis in bases), default=0.0)
        changed = dict.fromkeys(self._answers.changes_since(tenant, since) if bases else (), ChangedDocument(""))
        options = self._settings.staleness
        seconds, closely = options.close_s or options.check_s, options.close_s > 0
        found = self._held_against(tenant, due, changed, seconds, closely=closely) if changed else StaleCheck()
        left = {*found.unchecked, *unread}
        self._answers.forget_rechecks(tenant, {job_id: noted[job_id] for job_id in due if job_id not in left})
        return found

    def _held_against(
        self,
        tenant: str,
        ids: Sequence[str],
        changed: Mapping[str, ChangedDocument],
        seconds: float,
        *,
        closely: bool = False,
    ) -> StaleCheck:
        """Hold these answers against changed documents, as far as there is time; which are looked at again is noted."""
        ends_at = time.monotonic() + seconds
        with self._lock:  # one at a time: each takes a core
            bases, unread = self._bases.of(tenant, ids, ends_at)
            found = self._checked(tenant, bases, Look(changed, ends_at, closely)) if bases else StaleCheck()
        unchecked = tuple(dict.fromkeys((*found.unchecked, *unread)))
        if not closely:
            # A model that reranks is not asked here: then there is no closer look.
            closer = self._settings.staleness.close_s and not self._settings.rerank.traits.asks_model
            self._answers.note_rechecks(tenant, (*(one.job_id for one in bases), *unread) if closer else unchecked)
        return found.model_copy(update={"unchecked": unchecked, "left": len(unchecked)})

    def _checked(self, tenant: str, bases: Sequence[AnswerBasis], look: Look) -> StaleCheck:
        store = self._resources.store(tenant)
        changed = look.changed
        now = stored_now(store, changed)
        paths = {**{doc_id: change.path for doc_id, change in changed.items()}, **now.paths}
        known = self._answers.marks(self._answers.of_tenant(tenant, self._settings.staleness.most_answers))
        touched = _Touched(self._jobs.clock.now(), known)
        for basis in bases:
            touched.add_lost(basis, changed.keys(), now)
        unchecked = self._add_moved(tenant, bases, now, look, touched)
        marked, cleared = self._write(tenant, bases, paths, touched, unchecked)
        return StaleCheck(answers=marked, fresh=cleared, checked=len(bases), unchecked=tuple(sorted(unchecked)))

    def _add_moved(
        self, tenant: str, bases: Sequence[AnswerBasis], now: StoredNow, look: Look, touched: _Touched
    ) -> frozenset[str]:
        """Add what leaves would find otherwise now; returns the answers that there was no time for, or that failed."""
        ready, standing = self._resources.tools(tenant), self._standing_answers()
        if ready is None:
            return frozenset()
        tools = replace(ready[1], index_version=ready[0].index_version)
        chunks = NewChunks.of({doc_id: look.changed[doc_id].fresh for doc_id in now.paths})
        scored, written = EnteringChunks(self._resources, tools, chunks, look.ends_at), {*now.namespaces.values()}
        whole = {one.job_id for one in bases if one.job_id in standing or (look.closely and self._comparable(one))}
        others = [
            one
            for one in bases
            if one.job_id not in whole and (one.namespace in written or one.job_id in touched.known)
        ]
        last = look.closely or not self._settings.staleness.close_s  # no other look says whether what moved is back
        moved = [one for one in others if last and touched.has_moved(one)]
        rest, unseen = [one for one in others if not (last and touched.has_moved(one))], list[str]()
        for some in [*sliced([one for one in bases if one.job_id in whole], _WHOLE_AT_ONCE), moved, rest]:
            try:
                self._score(some, scored, touched, always=some is not rest)
                if some is moved:
                    touched.looked_at |= {one.job_id for one in moved} - scored.left
                elif some is not rest:
                    unseen += self._as_a_whole(some, scored, touched, standing, closely=look.closely)
            except RamifyError as error:
                log.warning("new chunks could not be scored against kept answers: %s", error)
                unseen += [one.job_id for one in some]
        return frozenset((*unseen, *scored.left))

    def _comparable(self, basis: AnswerBasis) -> bool:
        try:
            return self._preview.comparable(basis.job_id)
        except RamifyError:  # its record is damaged
            return False

    @staticmethod
    def _score(bases: Sequence[AnswerBasis], scored: EnteringChunks, touched: _Touched, *, always: bool) -> None:
        """Add what the leaves of these answers would find otherwise now."""
        own = {basis.job_id: basis for basis in bases}
        leaves = [OwnLeaf(basis.job_id, leaf) for basis in bases for leaf in basis.leaves if not leaf.listed]
        leaves.sort(key=lambda one: len(one.leaf.query.variants))  # each takes as long as a leaf without any
        for one, moved in scored.of(leaves, always=always):
            touched.add_moved(own[one.job_id], one.leaf, moved)

    def _as_a_whole(
        self,
        bases: Sequence[AnswerBasis],
        scored: EnteringChunks,
        touched: _Touched,
        standing: frozenset[str],
        *,
        closely: bool,
    ) -> list[str]:
        """Add to the touched leaves of answers the others, where those alone do not give what a full run does.

        Notes of standing questions whether their answers would cite other words. Returns those that there was no time
        for.
        """
        unseen = list[str]()
        for basis in bases:
            job_id = basis.job_id
            if (search := scored.search) is None or job_id in scored.left:
                continue
            if not scored.in_time:
                unseen.append(job_id)
                continue
            if closely:
                touched.add_displaced(basis, self._preview.displaced(job_id, search, touched.leaves(job_id)))
            if job_id in standing:
                is_touched = job_id in touched.found
                self._answers.note_preview(job_id, self._preview.differs(job_id, search) if is_touched else False)
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
            looked_at = basis.job_id in touched.looked_at
            cleared = [
                doc_id
                for doc_id, mark in before.items()
                if doc_id not in still and (doc_id in paths if mark.by is not StaleBy.MOVED else looked_at)
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
    #: Answers of which all leaves were searched: what had only moved is where it was, where nothing says otherwise.
    looked_at: set[str] = field(default_factory=set)

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

    def has_moved(self, basis: AnswerBasis) -> bool:
        """Whether an answer is marked by a document that had only moved: it may be where it was again."""
        return any(mark.by is StaleBy.MOVED for mark in self.known.get(basis.job_id, ()))

    def leaves(self, job_id: str) -> set[str]:
        """The leaves of an answer that are touched so far."""
        return {leaf for _, leaves in self.found.get(job_id, {}).values() for leaf in leaves}

    def add_displaced(self, basis: AnswerBasis, result: tuple[int, MergedHit] | None) -> None:
        """All leaves of an answer, by the document of a result that stands elsewhere now; None: none does."""
        self.looked_at.add(basis.job_id)
        if result is not None:
            rank, hit = result
            for leaf in basis.leaves:
                self._add(basis, hit.doc_id, StaleBy.MOVED, leaf, rank)

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
