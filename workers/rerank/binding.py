"""Writes what leaves found into the subquestions that waited for them, and starts these.

The LLM, asked at most once for each, reads the answer off the best passages; names in them stand in for an answer that
was not read. The job store decides who starts a bound leaf, once.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from redis.exceptions import RedisError

from shared.cache import Cache
from shared.errors import RamifyError, ReplyError
from shared.jobs.states import SETTLED_LEAVES
from shared.language.names import names_of, transcribed_names
from shared.language.text import fold, has_cjk
from shared.models import MAX_QUESTION_CHARS, Cost, Hit, LeafResult, LeafStatus, Node
from shared.models.base import Model
from shared.models.plan import filled, references
from shared.providers.llm.client import LLM, LLMReply, spent
from shared.providers.llm.prompts import read_answer_prompt
from shared.providers.llm.replies import MAX_ANSWER_TOKENS, parse_answer
from shared.tasks.signatures import add_to_chord, node_signature
from shared.tasks.task_run import TaskRun, reason_of
from workers.search.state import Tools

ANSWER, NAMES, NOTHING = "answer", "names", "nothing"
#: How much less a name counts for each name before it in its passage. The n-th passage counts 1/n.
_LATER = 0.05
log = logging.getLogger("ramify.binding")


@dataclass(frozen=True, slots=True)
class Parent:
    """A leaf that others depend on. `result` None: it recorded none."""

    node: Node
    result: LeafResult | None


@dataclass(frozen=True, slots=True)
class Bound:
    """The node as it is to be searched, what finding its values has cost, and what went wrong."""

    node: Node
    cost: Cost = field(default_factory=Cost)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    values: tuple[str, ...]
    by: str
    cost: Cost = field(default_factory=Cost)
    warnings: tuple[str, ...] = ()


def bind(node: Node, parents: Sequence[Parent], tenant: str, llm: LLM | None, tools: Tools) -> Bound:
    """`node` with the answer or the names that each parent found in place of its `#n`.

    A value whose number the query does not name is put before it. With several names, `variants` holds a query for
    each, the likeliest first and at most `binding.names`. Never raises for a fault of the LLM: names stand in for the
    answer, and a warning says so. A parent that found nothing leaves its place empty, with a warning. Reading may take
    `tools.timeout_s` for all parents together.
    """
    deadline = time.monotonic() + tools.timeout_s
    found = {}
    for parent in parents:
        left = replace(tools, timeout_s=max(0.0, deadline - time.monotonic()))
        found[_number(parent.node.id)] = _find(node, parent, tenant, llm, left)
    queries = _queries(node.query, {number: one.values for number, one in found.items()}, tools.settings.binding.names)
    ways = {one.by for one in found.values()}
    return Bound(
        node=node.model_copy(
            update={
                "query": queries[0],
                "variants": tuple(queries) if len(queries) > 1 else (),
                "asked": node.query,
                "bound_by": NAMES if NAMES in ways else ANSWER if ANSWER in ways else NOTHING,
                "written": {parent.node.id: found[_number(parent.node.id)].values for parent in parents},
            }
        ),
        cost=sum((one.cost for one in found.values()), Cost()),
        warnings=tuple(warning for one in found.values() for warning in one.warnings),
    )


def unbound(node: Node, reason: str) -> Bound:
    """`node` without what it waited for, where finding that failed for a reason of ours."""
    query = _queries(node.query, {_number(parent): () for parent in node.depends_on}, 1)[0]
    changed = {"query": query, "asked": node.query, "bound_by": NOTHING}
    said = f"Subquestion {node.id} runs without what it waited for: {reason}"
    return Bound(node=node.model_copy(update=changed), warnings=(said,))


def _number(node_id: str) -> int:
    """How a sibling's text names it: the last part of its id."""
    return int(node_id.rpartition(".")[2])


def _find(node: Node, parent: Parent, tenant: str, llm: LLM | None, tools: Tools) -> _Found:
    """The answer, else names, else nothing."""
    options = tools.settings.binding
    hits = parent.result.hits[: options.passages] if parent.result is not None else ()
    if not hits:
        failed = parent.result is None or parent.result.status is LeafStatus.FAILED
        return _nothing(node, parent, "it failed" if failed else "it found nothing")
    cost, warnings = Cost(), tuple[str, ...]()
    if llm is not None and options.read:
        try:
            answer = read_answer(parent.node.query, hits, tenant, llm, tools)
            cost = answer.cost
            if answer.text is not None:
                return _Found((answer.text,), ANSWER, cost)
        except RamifyError as error:
            cost = spent(error).cost
            reason = str(error).rstrip(".")
            warnings = (f"The answer to subquestion {parent.node.id} was not read ({reason}): names stand in for it.",)
    known = f"{parent.node.query}\n{node.query}"  # what the subquestions name already cannot be what is asked for
    names = candidate_names(known, hits, options.names)
    if not names:
        nothing = _nothing(node, parent, "no name stands in what it found")
        return _Found((), NOTHING, cost, (*warnings, *nothing.warnings))
    return _Found(names, NAMES, cost, warnings)


def _nothing(node: Node, parent: Parent, reason: str) -> _Found:
    said = f"Subquestion {node.id} runs without the answer to {parent.node.id}: {reason}."
    return _Found((), NOTHING, warnings=(said,))


def _queries(query: str, values: Mapping[int, Sequence[str]], most: int) -> list[str]:
    """The query for each choice of values, those first whose values stand first; at least one, at most `most`."""
    numbers = sorted(values)
    named = set(references(query))
    found: dict[str, str] = {}
    for choice in _choices([values[number] or ("",) for number in numbers], most):
        chosen = dict(zip(numbers, choice, strict=True))
        lead = [value for number, value in chosen.items() if value and number not in named]
        text = ": ".join([*lead, filled(query, chosen)])[:MAX_QUESTION_CHARS].strip() or query
        found.setdefault(fold(text), text)
    return list(found.values())


def _choices(lists: Sequence[Sequence[str]], most: int) -> Iterator[tuple[str, ...]]:
    """One value of each list, at most `most` times: by the sum of their places, never all products of them."""
    first = (0,) * len(lists)
    heap, seen = [(0, first)], {first}
    while heap and most > 0:
        total, places = heappop(heap)
        yield tuple(own[place] for own, place in zip(lists, places, strict=True))
        most -= 1
        for at, own in enumerate(lists):
            after = (*places[:at], places[at] + 1, *places[at + 1 :])
            if after[at] < len(own) and after not in seen:
                seen.add(after)
                heappush(heap, (total + 1, after))


class ReadAnswer(Model):
    """What was read: the answer, or None when the passages do not hold one; what that cost."""

    text: str | None = None
    cost: Cost = Cost()


def read_answer(question: str, hits: Sequence[Hit], tenant: str, llm: LLM, tools: Tools) -> ReadAnswer:
    """The answer to `question` that stands in `hits`; identical readings run once.

    Raises: TransientError, PermanentError, or ReplyError for a reply that cannot be used; each tells its cost
    (`shared.providers.llm.client.spent`).
    """
    passages = [(hit.title, hit.text) for hit in hits]

    def compute() -> ReadAnswer:
        prompt = read_answer_prompt(question, passages)
        reply = llm.complete(prompt, timeout_s=tools.timeout_s, max_tokens=MAX_ANSWER_TOKENS)
        return ReadAnswer(text=_checked(reply, passages), cost=reply.cost)

    cache: Cache | None = tools.cache
    if cache is None:
        return compute()
    parts = {
        "tenant": tenant,
        "question": question,
        "passages": [list(passage) for passage in passages],
        "model": tools.settings.llm_model,
        "server": str(tools.settings.llm_base_url),
    }
    wait = min(tools.settings.cache.wait_s, tools.timeout_s)
    answer, result = cache.get_or_compute("answer", parts, ReadAnswer, compute, wait_s=wait)
    return answer.model_copy(update={"cost": Cost()}) if result.reused else answer


def _checked(reply: LLMReply, passages: Sequence[tuple[str, str]]) -> str | None:
    try:
        return _standing(parse_answer(reply.text), passages)
    except ReplyError as error:
        error.spent = reply  # type: ignore[attr-defined] # read by spent()
        raise


def _standing(answer: str | None, passages: Sequence[tuple[str, str]]) -> str | None:
    if answer is None or any(_stands_in(answer, passage) for passage in passages):
        return answer
    raise ReplyError("its answer stands in none of the passages")


def _stands_in(answer: str, passage: tuple[str, str]) -> bool:
    """Whatever its case, width and spacing."""
    return any(_comparable(answer) in _comparable(part) for part in passage)


def _comparable(text: str) -> str:
    return " ".join(fold(text).split())


def candidate_names(known: str, hits: Sequence[Hit], most: int) -> tuple[str, ...]:
    """At most `most` distinct names from `hits` (best first), likeliest first; none that `known` holds already.

    A name counts 1/n in the n-th passage and a little less for each name before it there: the title leads, and three
    passages share the places about 4 to 2 to 1. On musique the name asked for is among the first 6 in 76 of 100 cases,
    by turns over the passages in 59.
    """
    worth: dict[str, float] = {}
    shown: dict[str, str] = {}
    asked = fold(known)
    for place, hit in enumerate(hits, start=1):
        for before, name in enumerate(_names_in(hit)):
            key, value = fold(name), 1 / (place * (1 + _LATER * before))
            if value > worth.get(key, 0.0) and not _holds(asked, key):
                worth[key] = value
                shown.setdefault(key, name)
    best = sorted(worth, key=lambda key: -worth[key])
    return tuple(shown[key] for key in best[:most])


def _names_in(hit: Hit) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*names_of(hit.title, hit.text), *transcribed_names(hit.text))))


def _holds(text: str, name: str) -> bool:
    """True when `name` stands in `text`, as words of their own where words are spaced."""
    if has_cjk(name):
        return name in text
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def bind_dependents(run: TaskRun, ended: Node, llm: LLM | None, tools: Tools) -> None:
    """Bind and send every leaf of `ended.needed_by` that waits for nothing else any more.

    Harmless to repeat, and for two leaves that end at once: a leaf is claimed in the job store before it is added to
    the chord, as the children of a branch are. What is lost on the way, the reaper sends again. Reading answers takes
    `tools.timeout_s` at most for all of them together.
    """
    deadline = time.monotonic() + tools.timeout_s
    states = run.jobs.leaf_states(run.job.id)
    for node_id in ended.needed_by:
        node = run.jobs.node(run.job.id, node_id) if states.get(node_id) == "waiting" else None
        if node is None or any(states.get(other) not in SETTLED_LEAVES for other in node.depends_on):
            continue
        left = replace(tools, timeout_s=max(0.0, deadline - time.monotonic()))
        bound = _bound(run, node, llm, left)
        run.jobs.annotate(run.job.id, bound.cost)
        if run.jobs.bind(run.job.id, bound.node):
            run.jobs.annotate(run.job.id, warnings=bound.warnings)
            add_to_chord(run.task, node_signature(run.task.app, run.job.id, run.job.rank, bound.node))


def _bound(run: TaskRun, node: Node, llm: LLM | None, tools: Tools) -> Bound:
    """Never raises but for a lost Redis: a leaf that cannot be bound is searched without, and the answer says so."""
    try:
        nodes = {other: run.jobs.node(run.job.id, other) for other in node.depends_on}
        results = run.jobs.results(run.job.id, node.depends_on)
        parents = [Parent(parent, results.get(other)) for other, parent in nodes.items() if parent is not None]
        return bind(node, parents, run.job.request.tenant, llm, tools)
    except RedisError:
        raise
    except Exception as error:
        log.exception("leaf %s of job %s could not be bound", node.id, run.job.id)
        return unbound(node, reason_of(error))
