"""What differs between two answers, by their manifests: from what was asked to the sentences. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from shared.language.sentences import sentences
from shared.models import Node
from shared.models.base import Model
from shared.models.manifest import Manifest, Record, RecordedResult

#: Entries of the request that are a plan of the caller's own.
PLAN_OPTIONS = frozenset({"subqueries", "typed"})
#: Stands among the codes of a leaf that did not answer.
FAILED = "leaf_failed"
#: Of a node what makes it another subquestion.
_OF_NODE = ("query", "facet", "depends_on", "asked", "strategy", "kinds")
#: Of a route what makes it another way to answer.
_OF_ROUTE = ("type", "hops", "row", "planner", "strategy", "aggregator")
_NUMBER = re.compile(r"(?<!\s)\s*+\[\d{1,9}\](?!\()")
_ROW_NUMBER = re.compile(r"^\|\s*\d+\s*\|")
_RANK = "_rank"
#: Scores that differ by less are the same: they are recorded with six digits.
_SAME = 1e-5


class Changed(Model):
    """A value that the two have otherwise; None: the one has none (a setting: the release's own)."""

    name: str
    before: Any = None
    after: Any = None


class DocumentChange(Model):
    """A document that the answers rest on: `changed`, or `came` or `went` where only one of them rests on it."""

    path: str
    doc_id: str
    how: str


class PartChange(Model):
    """One part of a score."""

    name: str
    before: float | None = None
    after: float | None = None


class ResultDifference(Model):
    """A result that came, went or moved; ranks count from 1. `parts`: those of the score that changed, the most first.

    `why`: what of its document or of the other results did it, where its own score did not.
    """

    chunk_id: str
    title: str
    path: str
    how: str
    before: int | None = None
    after: int | None = None
    score_before: float | None = None
    score_after: float | None = None
    parts: tuple[PartChange, ...] = ()
    why: str = ""


class AnswerDifference(Model):
    """The differences of B from A. `causes` are kinds of what did it, the likeliest first; `sentence` says it."""

    a: str
    b: str
    same: bool = False
    question: Changed | None = None
    options: tuple[Changed, ...] = ()
    settings: tuple[Changed, ...] = ()
    models: tuple[Changed, ...] = ()
    prompts: tuple[str, ...] = ()
    releases: tuple[Changed, ...] = ()
    plan: tuple[Changed, ...] = Field(default=(), description="of the route, and of nodes by their id")
    index_versions: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    documents: tuple[DocumentChange, ...] = ()
    degraded: tuple[Changed, ...] = Field(default=(), description="codes by item of the work")
    results: tuple[ResultDifference, ...] = ()
    kept: int = Field(default=0, description="results at the same rank with the same score")
    sentences_went: tuple[str, ...] = ()
    sentences_came: tuple[str, ...] = ()
    sentences_kept: int = 0
    answer: tuple[Changed, ...] = Field(default=(), description="kind, coverage, verdicts, list")
    warnings_went: tuple[str, ...] = ()
    warnings_came: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    sentence: str = ""


def difference(a: Manifest, b: Manifest) -> AnswerDifference:
    """How `b` differs from `a`, without its causes."""
    one, other = a.record, b.record
    went, came, kept = sentence_changes(one.answer.text, other.answer.text)
    documents = _documents(one, other)
    results, same = result_changes(one, other, documents)
    tenants = (a.run.tenant, b.run.tenant)
    owned = () if a.digest == b.digest or tenants[0] == tenants[1] else (_change("tenant", *tenants),)
    return AnswerDifference(
        a=a.run.job_id or a.digest[:12],
        b=b.run.job_id or b.digest[:12],
        same=a.digest == b.digest,
        question=None if one.question == other.question else _change("question", one.question, other.question),
        options=(*owned, *changes(one.options, other.options)),
        settings=_settings(one, other),
        models=changes(_models(one), _models(other)),
        prompts=tuple(change.name for change in changes(one.prompts, other.prompts)),
        releases=changes(one.releases, other.releases),
        plan=(*_route(one, other), *_nodes(one.plan.nodes, other.plan.nodes)),
        index_versions=(a.run.index_versions, b.run.index_versions),
        documents=documents,
        degraded=changes(_without(one), _without(other)),
        results=results,
        kept=same,
        sentences_went=went,
        sentences_came=came,
        sentences_kept=kept,
        answer=changes(_told(one), _told(other)),
        warnings_went=tuple(text for text in one.warnings if text not in other.warnings),
        warnings_came=tuple(text for text in other.warnings if text not in one.warnings),
    )


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Changed, ...]:
    """The names whose values differ, in their order."""
    names = sorted({*before, *after})
    return tuple(
        _change(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    )


def _change(name: str, before: Any, after: Any) -> Changed:
    return Changed(name=name, before=before, after=after)


def _settings(a: Record, b: Record) -> tuple[Changed, ...]:
    """By value; a part whose digest alone differs, as with another release's defaults, by its name.

    A digest that a model's name has changed is no setting.
    """
    found = changes(a.settings.values, b.settings.values)
    named = {change.name.partition(".")[0] for change in found} | {"strategies"}
    named |= {change.name for change in changes(_models(a), _models(b))}
    named |= {"llm"} if any("." not in change.name for change in found) else set()
    one, other = a.settings.fingerprint, b.settings.fingerprint
    digests = changes(
        {part: one[part] for part in one if part in other}, {part: other[part] for part in other if part in one}
    )
    values = {change.name for change in found}
    rest = (
        change
        for change in digests
        if change.name.partition(".")[0] not in named
        or (change.name.startswith("strategies.") and change.name not in values)
    )
    return (*found, *rest)


def _models(record: Record) -> dict[str, str]:
    return {name: f"{one.provider} {one.model}".strip() + f" ({one.digest})" for name, one in record.models.items()}


def _route(a: Record, b: Record) -> Iterable[Changed]:
    one, other = ({name: getattr(of.plan.route, name, None) for name in _OF_ROUTE} for of in (a, b))
    return changes(
        {name: _text(value) for name, value in one.items()}, {name: _text(value) for name, value in other.items()}
    )


def _nodes(before: Sequence[Node], after: Sequence[Node]) -> Iterable[Changed]:
    """Nodes of the plan; what a second round added follows from what was found."""
    one, other = ({node.id: _node(node) for node in nodes if node.gap is None} for nodes in (before, after))
    return changes(one, other)


def _node(node: Node) -> str:
    """What it asks, and who made it so."""
    made = f" (by {node.by})" if node.by else ""
    parts = [_text(getattr(node, name)) for name in _OF_NODE[1:] if getattr(node, name)]
    return " · ".join([f"{node.query}{made}", *parts])


def _text(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else None if value is None else str(value)


def _documents(a: Record, b: Record) -> tuple[DocumentChange, ...]:
    one, other = ({document.doc_id: document for document in of.documents} for of in (a, b))
    found = []
    for doc_id in {**one, **other}:
        before, after = one.get(doc_id), other.get(doc_id)
        if before and after and before.version == after.version:
            continue
        how = "came" if before is None else "went" if after is None else "changed"
        found.append(DocumentChange(path=(after or before).path, doc_id=doc_id, how=how))  # type: ignore[union-attr]
    return tuple(sorted(found, key=lambda one: (one.how, one.path)))


def result_changes(
    a: Record, b: Record, documents: Iterable[DocumentChange]
) -> tuple[tuple[ResultDifference, ...], int]:
    """The results that came, went, or stand at another rank or score, in the order of B, then those that went."""
    changed = {document.doc_id: document.how for document in documents}
    paths = {document.doc_id: document.path for of in (a, b) for document in of.documents}
    one, other = ({hit.chunk_id: (rank, hit) for rank, hit in enumerate(of.results, 1)} for of in (a, b))
    found, same = list[ResultDifference](), 0
    for chunk_id in {**other, **one}:
        (before, old), (after, new) = one.get(chunk_id, (None, None)), other.get(chunk_id, (None, None))
        hit = new or old
        if hit is None:
            continue
        own_score = old is not None and new is not None and _differ(old.score, new.score)
        if old is not None and new is not None and before == after and not own_score:
            same += 1
            continue
        how = "came" if old is None else "went" if new is None else "moved" if before != after else "scored"
        found.append(
            ResultDifference(
                chunk_id=chunk_id, title=hit.title, path=paths.get(hit.doc_id, ""), how=how, before=before, after=after,
                score_before=old.score if old else None, score_after=new.score if new else None,
                parts=part_changes(old, new) if own_score and old and new else (),
                why=_why(how, changed.get(hit.doc_id, ""), own_score=own_score),
            )
        )  # fmt: skip
    return tuple(found), same


def _why(how: str, document: str, *, own_score: bool) -> str:
    if document == "changed":
        return "its document was changed"
    if how == "came":
        return "its document was not found before" if document == "came" else ""
    if how == "went":
        return "its document is found no more" if document == "went" else ""
    return "" if own_score else "its score is the same: others came before it, or went"


def part_changes(a: RecordedResult, b: RecordedResult) -> tuple[PartChange, ...]:
    """The parts of a score that differ, those first that changed most for their size; ranks follow scores."""
    names = {*a.parts, *b.parts}
    found = [
        PartChange(name=name, before=a.parts.get(name), after=b.parts.get(name))
        for name in names
        if _differ(a.parts.get(name), b.parts.get(name))
    ]
    return tuple(sorted(found, key=lambda part: (part.name.endswith(_RANK), -_share(part), part.name)))


def _share(part: PartChange) -> float:
    if part.before is None or part.after is None:
        return 1.0
    return abs(part.after - part.before) / max(abs(part.before), abs(part.after), _SAME)


def _differ(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is not b
    return abs(a - b) > _SAME * max(abs(a), abs(b))


def sentence_changes(before: str, after: str) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """The sentences that went and that came, without the numbers of their citations, and how many are in both."""
    one, other = (dict.fromkeys(_sentences(text)) for text in (before, after))
    went = tuple(sentence for sentence in one if sentence not in other)
    came = tuple(sentence for sentence in other if sentence not in one)
    return went, came, len(one) - len(went)


def _sentences(text: str) -> Iterator[str]:
    """Of a table its rows, without their numbers: one more row renumbers all behind it."""
    for sentence in sentences(_NUMBER.sub("", text)):
        lines = sentence.split("\n") if sentence.startswith("|") else [sentence]
        yield from (" ".join(_ROW_NUMBER.sub("|", line).split()) for line in lines)


def _without(record: Record) -> dict[str, tuple[str, ...]]:
    """The codes by item, with the leaves that failed."""
    failed = {leaf.id: (*record.degraded.get(leaf.id, ()), FAILED) for leaf in record.leaves if leaf.status == "failed"}
    return {**record.degraded, **failed}


def _told(record: Record) -> dict[str, Any]:
    """Of the answer what is no text."""
    answer = record.answer
    rows = answer.table and f"{answer.table.matched} fit, {answer.table.rows} rows ({answer.table.digest[:8]})"
    return {
        "written": answer.kind, "coverage": answer.coverage, "verdicts": ", ".join(answer.verdicts), "list": rows,
        "gaps": "; ".join(f"{gap.what}{' (closed)' if gap.closed else ''}" for gap in answer.gaps),
        "reranked by": record.reranked_by,
    }  # fmt: skip
