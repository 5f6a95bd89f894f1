"""Writes into a subquestion what the leaves found that it waited for. Asks the LLM at most once for each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from shared.errors import RamifyError
from shared.language.text import fold
from shared.llm.client import LLM, spent
from shared.models import MAX_QUESTION_CHARS, Cost, Hit, LeafResult, LeafStatus, Node
from shared.references import filled, references
from workers.binding.names import candidate_names
from workers.binding.reading import read_answer
from workers.search.state import Tools

ANSWER, NAMES, NOTHING = "answer", "names", "nothing"


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
    names = _names(node, parent, hits, options.names)
    if not names:
        nothing = _nothing(node, parent, "no name stands in what it found")
        return _Found((), NOTHING, cost, (*warnings, *nothing.warnings))
    return _Found(names, NAMES, cost, warnings)


def _names(node: Node, parent: Parent, hits: Sequence[Hit], most: int) -> tuple[str, ...]:
    """None that the two subquestions name already: it cannot be what is asked for."""
    return candidate_names(f"{parent.node.query}\n{node.query}", hits, most)


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
