"""Writes the answers of leaves into the subquestions that waited for them, and starts these.

The LLM, asked at most once for each, reads the answer off the best passages; names in them are used where no answer
was read. The job store decides who starts a bound leaf, once.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from redis.exceptions import RedisError

from shared.errors import RamifyError, ReplyError
from shared.jobs.states import ENDED_LEAVES
from shared.language.names import names_of, transcribed_names
from shared.language.text import fold, has_cjk
from shared.models import MAX_QUESTION_CHARS, Cost, Hit, LeafResult, LeafStatus, Node
from shared.models.plan import BOUND_BY_ANSWER, BOUND_BY_NAMES, BOUND_BY_NOTHING, references, with_answers
from shared.providers.fallbacks import fell_back
from shared.providers.http_deadline import until
from shared.providers.llm.client import spent
from shared.providers.llm.prompts import read_answer_prompt
from shared.providers.llm.replies import MAX_ANSWER_TOKENS, parse_answer
from shared.providers.time_shares import share_of
from shared.tasks.signatures import add_to_chord, node_signature
from shared.tasks.task_run import TaskRun, reason_of
from workers.search.cached import completed_once
from workers.search.state import Tools

#: How much less a name counts for each name before it in its passage. The n-th passage counts 1/n.
_NAME_DISCOUNT = 0.05
log = logging.getLogger("ramify.binding")


@dataclass(frozen=True, slots=True)
class Parent:
    """A leaf that others depend on. `result` None: it recorded none."""

    node: Node
    result: LeafResult | None

    @property
    def number(self) -> int:
        """How a sibling's text refers to it: the last part of its id."""
        return int(self.node.id.rpartition(".")[2])


@dataclass(frozen=True, slots=True)
class BoundLeaf:
    """The node as it is to be searched, what finding its values has cost, and what went wrong."""

    node: Node
    cost: Cost = field(default_factory=Cost)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Values:
    """What a parent hands on, how that was found, what it cost, and what went wrong."""

    values: tuple[str, ...] = ()
    found_by: str = BOUND_BY_NOTHING
    cost: Cost = field(default_factory=Cost)
    warnings: tuple[str, ...] = ()


def dependents(run: TaskRun) -> tuple[str, ...]:
    """The leaves that wait for that of the task. Where its record is lost, they say so themselves."""
    node = run.known_node()
    if node is not None:
        return node.needed_by
    return tuple(other.id for other in run.jobs.nodes(run.job.id).values() if run.node_id in other.depends_on)


def bind_dependents(run: TaskRun, needed_by: Sequence[str], tools: Tools) -> None:
    """Bind and send every leaf of `needed_by` that waits for nothing else any more.

    Safe to repeat, and for two leaves that end at once: a leaf is claimed in the job store before it is added to the
    chord, as the children of a branch are. What is lost on the way, the reaper sends again. `tools.timeout_s` is for
    all of them together.
    """
    states = run.jobs.leaf_states(run.job.id)
    with until(time.monotonic() + tools.timeout_s):
        for node_id in needed_by:
            if states.get(node_id) != "waiting":
                continue
            node = run.jobs.node(run.job.id, node_id)
            if node is None:
                lost = "the record of this leaf is lost, and with it what it asks"
                run.record_leaf(LeafResult(node_id=node_id, status=LeafStatus.FAILED, error=lost))
                continue
            if any(states.get(other) not in ENDED_LEAVES for other in node.depends_on):
                continue
            bound = _bind_or_degrade(run, node, tools)
            run.annotate(bound.cost, item=node.id)
            if run.jobs.bind(run.job.id, bound.node):
                run.annotate(warnings=bound.warnings)
                add_to_chord(run.task, node_signature(run.task.app, run.job.id, run.job.rank, bound.node))


def _bind_or_degrade(run: TaskRun, node: Node, tools: Tools) -> BoundLeaf:
    """Raises only for a lost Redis: a leaf that cannot be bound is searched without, and a warning says so."""
    try:
        nodes = {other: run.jobs.node(run.job.id, other) for other in node.depends_on}
        results = run.jobs.results(run.job.id, node.depends_on)
        parents = [Parent(parent, results.get(other)) for other, parent in nodes.items() if parent is not None]
        if lost := [other for other, parent in nodes.items() if parent is None]:
            return unbound(node, f"the record of {' and '.join(lost)} is lost")
        return bind(node, parents, run.job.request.tenant, tools)
    except RedisError:
        raise
    except Exception as error:
        fell_back("llm", error)
        log.exception("leaf %s of job %s could not be bound", node.id, run.job.id)
        return unbound(node, reason_of(error))


def bind(node: Node, parents: Sequence[Parent], tenant: str, tools: Tools) -> BoundLeaf:
    """`node` with the answer or the names that each parent found in place of its `#n`.

    A value whose number the query does not name is put before it. With several names, `variants` holds a query for
    each, the likeliest first and at most `binding.names`. Never raises for a fault of the LLM: names are used instead,
    with a warning. A parent that found nothing leaves its place empty, with a warning. `tools.timeout_s` is for all
    parents together.
    """
    with until(time.monotonic() + tools.timeout_s):
        found = {parent.node.id: _values_of(node, parent, tenant, tools) for parent in parents}
    values = {parent.number: found[parent.node.id].values for parent in parents}
    queries = _queries(node.query, values, tools.settings.binding.names)
    kinds = {one.found_by for one in found.values()}
    changed = {
        "query": queries[0],
        "variants": tuple(queries) if len(queries) > 1 else (),
        "asked": node.query,
        "bound_by": next((kind for kind in (BOUND_BY_NAMES, BOUND_BY_ANSWER) if kind in kinds), BOUND_BY_NOTHING),
        "written": {node_id: one.values for node_id, one in found.items()},
    }
    return BoundLeaf(
        node=node.model_copy(update=changed),
        cost=sum((one.cost for one in found.values()), Cost()),
        warnings=tuple(warning for one in found.values() for warning in one.warnings),
    )


def unbound(node: Node, reason: str) -> BoundLeaf:
    """`node` without what it waited for, where binding failed by a fault of ours."""
    query = _queries(node.query, {int(other.rpartition(".")[2]): () for other in node.depends_on}, 1)[0]
    changed = {"query": query, "asked": node.query, "bound_by": BOUND_BY_NOTHING}
    warning = f"Subquestion {node.id} runs without what it waited for: {reason}"
    return BoundLeaf(node=node.model_copy(update=changed), warnings=(warning,))


def _values_of(node: Node, parent: Parent, tenant: str, tools: Tools) -> _Values:
    """The parent's answer, else names in its passages, else nothing."""
    options = tools.settings.binding
    hits = parent.result.hits[: options.passages] if parent.result is not None else ()
    cost, warnings, reason = Cost(), tuple[str, ...](), "no name stands in what it found"
    if not hits:
        failed = parent.result is None or parent.result.status is LeafStatus.FAILED
        reason = "it failed" if failed else "it found nothing"
    elif tools.llm is not None and options.read:
        try:
            with share_of("binding", tools.left_s):
                answer, cost = read_answer(parent.node.query, hits, tenant, tools)
            if answer is not None:
                return _Values((answer,), BOUND_BY_ANSWER, cost)
        except RamifyError as error:
            fell_back("llm", error)
            cost = spent(error).cost
            fault = str(error).rstrip(".")
            warnings = (f"The answer to subquestion {parent.node.id} was not read ({fault}): names stand in for it.",)
    known = f"{parent.node.query}\n{node.query}"  # a name that the subquestions hold cannot be what is asked for
    if names := candidate_names(known, hits, options.names):
        return _Values(names, BOUND_BY_NAMES, cost, warnings)
    missing = f"Subquestion {node.id} runs without the answer to {parent.node.id}: {reason}."
    return _Values(cost=cost, warnings=(*warnings, missing))


def _queries(query: str, values: Mapping[int, Sequence[str]], limit: int) -> list[str]:
    """The query for each choice of values, those first whose values stand first; at least one, at most `limit`."""
    numbers = sorted(values)
    named = set(references(query))
    found: dict[str, str] = {}
    for choice in _choices([values[number] or ("",) for number in numbers], limit):
        chosen = dict(zip(numbers, choice, strict=True))
        lead = [value for number, value in chosen.items() if value and number not in named]
        text = ": ".join([*lead, with_answers(query, chosen)])[:MAX_QUESTION_CHARS].strip() or query
        found.setdefault(fold(text), text)
    return list(found.values())


def _choices(lists: Sequence[Sequence[str]], limit: int) -> Iterator[tuple[str, ...]]:
    """The first `limit` choices of one value of each list, by the sum of their places; never builds the product."""
    first = (0,) * len(lists)
    heap, seen = [(0, first)], {first}
    while heap and limit > 0:
        total, places = heappop(heap)
        yield tuple(own[place] for own, place in zip(lists, places, strict=True))
        limit -= 1
        for at, own in enumerate(lists):
            after = (*places[:at], places[at] + 1, *places[at + 1 :])
            if after[at] < len(own) and after not in seen:
                seen.add(after)
                heappush(heap, (total + 1, after))


def read_answer(question: str, hits: Sequence[Hit], tenant: str, tools: Tools) -> tuple[str | None, Cost]:
    """The answer to `question` in `hits`, read by the LLM, and its cost; None when they do not hold one.

    Raises: TransientError, PermanentError, or ReplyError for a reply that cannot be used; each tells its cost
    (`shared.providers.llm.client.spent`).
    """
    passages = [(hit.title, hit.text) for hit in hits]

    def read(reply: str) -> str | None:
        answer = parse_answer(reply)
        if answer is None or any(_comparable(answer) in _comparable(part) for passage in passages for part in passage):
            return answer
        raise ReplyError("its answer stands in none of the passages")

    prompt = read_answer_prompt(question, passages)
    return completed_once(prompt, read, tools, tenant, kind="answer", max_tokens=MAX_ANSWER_TOKENS)


def _comparable(text: str) -> str:
    """Without differences of case, width and spacing."""
    return " ".join(fold(text).split())


def candidate_names(known: str, hits: Sequence[Hit], limit: int) -> tuple[str, ...]:
    """At most `limit` distinct names from `hits` (best first), likeliest first; none that `known` holds already.

    A name counts 1/n in the n-th passage and a little less for each name before it there: the title leads, and three
    passages share the places about 4 to 2 to 1. On musique the name asked for is among the first 6 in 76 of 100 cases,
    by turns over the passages in 59.
    """
    scores: dict[str, float] = {}
    spellings: dict[str, str] = {}
    known = fold(known)
    for rank, hit in enumerate(hits, start=1):
        names = dict.fromkeys((*names_of(hit.title, hit.text), *transcribed_names(hit.text)))
        for before, name in enumerate(names):
            key, score = fold(name), 1 / (rank * (1 + _NAME_DISCOUNT * before))
            if score > scores.get(key, 0.0) and not _contains_name(known, key):
                scores[key] = score
                spellings.setdefault(key, name)
    best = sorted(scores, key=lambda key: -scores[key])
    return tuple(spellings[key] for key in best[:limit])


def _contains_name(text: str, name: str) -> bool:
    """True when `name` stands in `text`, as words of their own where words are spaced."""
    if has_cjk(name):
        return name in text
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
