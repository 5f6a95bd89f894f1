"""What an answer comes to, without times and ids of jobs: two runs of the same question must give the same."""

from __future__ import annotations

import re
from collections.abc import Iterable

from orchestrator.client import Ramify
from shared.models import Answer, Hit
from tests.faults.harness.load import Ask

_WITHOUT = re.compile(r"Subquestion ([\d.]+) runs without the answer to")
Hits = tuple[tuple[str, float], ...]


class Essence:
    """Per leaf its query and hits; the merged results; the text."""

    def __init__(self, answer: Answer) -> None:
        queries = {node.id: node.query for node in answer.tree}
        self.leaves = {leaf.node_id: (queries.get(leaf.node_id), _hits(leaf.hits)) for leaf in answer.leaves}
        self.failed = {leaf.node_id for leaf in answer.leaves if leaf.status.value != "done"}
        #: What ran without an answer that it needed, and was told so: asked otherwise, by right.
        self.without = {word for warning in answer.warnings for word in _WITHOUT.findall(warning)}
        self.results, self.text = _hits(answer.results), answer.summary.text

    def differences(self, calm: Essence) -> list[str]:
        """What of a complete answer is not as in the undisturbed run."""
        found = []
        if self.leaves.keys() != calm.leaves.keys():
            found.append(f"leaves {sorted(self.leaves)}, undisturbed {sorted(calm.leaves)}")
        found += [
            f"leaf {node}: {self.leaves[node]}, undisturbed {calm.leaves[node]}"
            for node in sorted(self.leaves.keys() & calm.leaves.keys() - self.failed - self.without)
            if self.leaves[node][0] != calm.leaves[node][0] or not _same(self.leaves[node][1], calm.leaves[node][1])
        ]
        if self.failed or self.without or found:
            return found
        if not _same(self.results, calm.results):
            return [f"merged results {self.results}, undisturbed {calm.results}"]
        if self.results == calm.results and self.text != calm.text:
            return [f"text {self.text!r}, undisturbed {calm.text!r}"]
        return []


def _hits(hits: Iterable[Hit]) -> Hits:
    return tuple((hit.chunk_id, round(hit.score, 5)) for hit in hits)


def _same(one: Hits, other: Hits) -> bool:
    """The same scores in the same order, of the same hits; where scores tie, in any order.

    After a restart the store may give ties in another order. Of those that tie with the last one, others may be kept.
    """
    scores = [score for _, score in one]
    if scores != [score for _, score in other]:
        return False
    return not scores or {hit for hit in one if hit[1] > scores[-1]} == {hit for hit in other if hit[1] > scores[-1]}


def undisturbed(client: Ramify, asked: list[Ask], seconds: float) -> dict[int, Essence]:
    """The answers while nothing happens, by number. Raises: AssertionError when one is not complete."""
    jobs = {client.submit(ask.request(lane="batch")): ask for ask in asked}
    calm = {}
    for job_id, ask in jobs.items():
        status = client.wait(job_id, seconds)
        assert (status.state, status.partial) == ("done", False), f"undisturbed, {ask.question}: {status}"
        calm[ask.number] = Essence(client.result(job_id))
        assert ask.leaves in {None, len(calm[ask.number].leaves)}, f"{ask.question}: {status.leaves_total} leaves"
    return calm
