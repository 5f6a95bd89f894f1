"""Plans a complete list: asks what exists, reads the question against it, and shares the scan out over leaves."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from datetime import date

from celery import Celery

from orchestrator.planning.lists.closely import read_closely
from orchestrator.planning.lists.events import with_days
from orchestrator.planning.lists.possible import (
    asks_for_amount,
    asks_for_one,
    asks_for_several,
    names_list,
    nearly_lists,
)
from orchestrator.planning.lists.reading import Reading
from orchestrator.planning.lists.runs import told
from orchestrator.planning.lists.understood import understood
from orchestrator.planning.lists.words import unique
from orchestrator.planning.tree import Grown, original_leaf
from orchestrator.remote import call_pool
from shared.contract import TaskName
from shared.errors import RamifyError
from shared.jobs.tables import Tables
from shared.language import reader_sentence
from shared.models import ROOT_ID, Facet, Filters, JobRequest, Node
from shared.models.enumeration import Scan, TitledPage, Values, ValuesReply, ValuesRequest
from shared.models.plan import Shard
from shared.models.route import PlannerName, Route
from shared.providers.fallbacks import fell_back
from shared.providers.time_shares import seconds_for
from shared.settings import Settings
from shared.tasks.task_run import TaskRun

#: Seconds for each question to the search pool, at most.
_ASK_S = 15.0
#: The same for a question that may be no list at all.
_LOOK_S = 3.0
#: How many ids of documents (UUIDs) there can be.
_IDS = 1 << 128
_INSTEAD = "Searched, not listed."


def plan_list(run: TaskRun, app: Celery, settings: Settings, *, possible: bool = False, whole: bool = False) -> Grown:
    """The leaves that list what the question asks for; no nodes, and warnings, when it has to be searched instead.

    `possible`: it is a list only where the corpus has what it names, and nothing is said where it is none; with `whole`
    only where nothing of it is unread.
    """
    job = run.job
    today = date.today()  # noqa: DTZ011 - the reader's "last month"
    timeout_s = min(_LOOK_S if possible else _ASK_S, seconds_for("listing", job.remaining(job.leaf_reserve)))
    try:
        asked = ValuesRequest(tenant=job.request.tenant, filters=job.request.filters)

        def known_under(filters: Filters) -> Values:
            return _ask_search_pool(app, settings, asked.model_copy(update={"filters": filters}), timeout_s)

        def pages_with(titles: Sequence[str]) -> Mapping[str, TitledPage]:
            update = {"titles": titles}
            return _ask_search_pool(app, settings, asked.model_copy(update=update), timeout_s).titled

        question, dated = with_days(job.request.question, pages_with, today)
        reading, known = read_closely(question, job.request.filters, known_under, today)
        found = listed_or_told(question, reading, known, possible=possible, whole=whole)
        warned = (*(dated if found.scan or found.warnings else ()), *found.warnings)
        if found.scan is None:
            return Grown(warnings=warned)
        scan = _without_excluded(found.scan, settings.search.excludes)
        counted = _ask_search_pool(app, settings, asked.model_copy(update={"scan": scan}), timeout_s)
    except RamifyError as error:
        if possible:
            return Grown()
        fell_back("store", error)
        return Grown(warnings=(f"What is to be listed could not be found out: {str(error).rstrip('.')}.", _INSTEAD))
    scan = scan.model_copy(update={"documents": counted.documents, "index_version": counted.index_version})
    Tables(run.jobs.client, settings).put_scan(job.id, scan)
    limits = settings.enumeration
    parts = shards(scan.documents, limits.shard_documents, limits.max_shards)
    warnings = warned if scan.documents else _of_none(found, warned, question)
    return Grown(nodes=list_nodes(job.request.question, scan.understood, parts), warnings=warnings)


def _of_none(found: Reading, warned: Sequence[str], question: str) -> tuple[str, ...]:
    """What is said of an empty list: where words were not understood, that it may lack some, not hold too many."""
    words = unique([*found.unread, *found.guessed])
    too_many = {told(name, found.unread, question) for name in ("list_unread", "list_unread_code")}
    too_many.add(told("list_guessed", found.guessed, question))
    none = (told("list_none_unread", words, question),) if words else ()
    return (*(each for each in warned if each not in too_many), *none)


def defines(request: JobRequest, app: Celery, settings: Settings, symbol: str, timeout_s: float) -> bool:
    """Whether the corpus defines that symbol; False where that cannot be found out."""
    asked = ValuesRequest(tenant=request.tenant, filters=request.filters, symbol=symbol)
    try:
        return _ask_search_pool(app, settings, asked, min(_LOOK_S, timeout_s)).documents > 0
    except RamifyError:
        return False


def listed_or_told(
    question: str, reading: Reading, known: Values, *, possible: bool = False, whole: bool = False
) -> Reading:
    """The reading where it is a list; else without a scan, and with why it is searched. See `plan_list`."""
    scan = reading.scan
    if possible and not (scan and names_list(question, known, scan, whole=whole)):
        return Reading(warnings=_no_list(question, known, reading), unread=reading.unread)
    if scan is None:
        return reading.model_copy(update={"warnings": (*reading.warnings, _INSTEAD)})
    if not reading.guessed:
        return reading
    warnings = (*reading.warnings, told("list_guessed", reading.guessed, question))
    scan = scan.model_copy(update={"unread": unique([*scan.unread, *reading.guessed])})
    return reading.model_copy(update={"scan": scan, "warnings": warnings})


def _no_list(question: str, known: Values, reading: Reading) -> tuple[str, ...]:
    """Why a question that looks like a list is searched; nothing where it does not."""
    several, one = asks_for_several(question), bool(known.fields) and asks_for_one(question)
    scan, nearly = reading.scan, nearly_lists(question, known, reading)
    if reading.unread and (several or one or nearly or (scan and (scan.fields or scan.by or scan.per))):
        return (told("list_not_made", reading.unread, question),)
    if scan is None and reading.warnings and (several or one or nearly):
        return (*reading.warnings, _INSTEAD)
    if several:
        return (reader_sentence("list_no_noun", question),)
    whole = bool(known.fields) and scan is not None and not reading.unread and bool(scan.fields or scan.by)
    return (told("list_only_searched", (question.strip(),), question),) if one or whole else ()


def searched_not_listed(question: str, route: Route) -> tuple[str, ...]:
    """What is said of a question in the form of a list that its words keep from being one: it is searched."""
    unsaid = {PlannerName.NONE, PlannerName.REQUEST, PlannerName.ENUMERATION}
    listed = asks_for_several(question) or asks_for_amount(question)
    if route.by == "request" or route.planner in unsaid or not listed:
        return ()
    return (told("list_only_searched", (question.strip(),), question),)


def _ask_search_pool(app: Celery, settings: Settings, request: ValuesRequest, timeout_s: float) -> Values:
    """The reply of the search pool. This task waits for that pool, whose tasks wait for no other pool."""
    reply = ValuesReply.of_record(call_pool(app, settings, TaskName.SEARCH_VALUES, request, timeout_s))
    if reply.values is None:
        raise RamifyError(reply.error or "the search pool gave no reason")
    return reply.values


def _without_excluded(scan: Scan, excludes: tuple[str, ...]) -> Scan:
    """What is never shown is not listed either, unless the question or its filter names it."""
    asked = (*scan.filters.paths, *scan.found.paths)
    hidden = tuple(path for path in excludes if not any(name.startswith(path) for name in asked))
    if not hidden:
        return scan
    scan = scan.model_copy(update={"without_paths": tuple(dict.fromkeys((*scan.without_paths, *hidden)))})
    return scan.model_copy(update={"understood": understood(scan)})


def shards(documents: int, size: int, most: int) -> tuple[Shard, ...]:
    """At most `most` ranges of about `size` of `documents` documents each; together every id, each once."""
    count = min(max(1, math.ceil(documents / size)), most)
    bounds = ["", *(str(uuid.UUID(int=_IDS * number // count)) for number in range(1, count)), ""]
    return tuple(
        Shard(number=number, of=count, start=bounds[number - 1], stop=bounds[number]) for number in range(1, count + 1)
    )


def list_nodes(question: str, understood: str, parts: tuple[Shard, ...]) -> tuple[Node, ...]:
    """The question's own leaf, then a leaf for each shard."""
    leaves = [original_leaf(question)]
    for part in parts:
        node_id, query = f"{ROOT_ID}.{part.number}", f"part {part.number} of {part.of}: {understood}"
        leaves.append(Node(id=node_id, parent_id=ROOT_ID, level=1, facet=Facet.CORE, query=query, shard=part))
    return tuple(leaves)
