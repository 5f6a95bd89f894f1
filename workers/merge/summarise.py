"""Writes the summary by the LLM, its citations checked; else the extractive one, with a warning that says why."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shared.errors import RamifyError, ReplyError, TransientError
from shared.language import derived, languages
from shared.language.sentences import sentences
from shared.models import Cost, Facet, MergedHit, MergedPool, Node, NodeKind, Summary
from shared.models.answer import ReasoningStep
from shared.models.base import Model
from shared.models.plan import node_order
from shared.models.route import Intent
from shared.providers.llm.client import LLM, spent
from shared.providers.llm.prompts import SUMMARY_MEMORY_CHARS, Memory, summarise_prompt
from shared.providers.llm.replies import summary_text
from workers.display import safe
from workers.merge.extract import best_quote, citation, extract

_FEWEST_CHARS = 400
_LEAST_TIME_S = 0.5

Written = tuple[Summary, Cost, tuple[str, ...]]
_PART = re.compile(r"(\d{1,9})(?:\s?[\-–]\s?(\d{1,9}))?")
_CODE = re.compile(r"(```[\s\S]*?(?:```|\Z)|`[^`\n]*`)")
_CITED = re.compile(r"\[(\d{1,9})\]")
_NO_BRACKETS = str.maketrans("[]", "()")
_LONGEST_RANGE = 50


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What the LLM is asked for: the style that the question's intent wants, and the steps to conclude from."""

    intent: Intent = Intent.GENERAL
    steps: tuple[ReasoningStep, ...] = ()


def summarise(  # noqa: PLR0913 - what is known of the question, and what may be spent on it
    question: str,
    pool: MergedPool,
    nodes: Mapping[str, Node],
    *,
    llm: LLM | None,
    timeout_s: float,
    ask: SummaryRequest | None = None,
    fallback: Callable[[], Summary] | None = None,
) -> Written:
    """The summary of `pool`, what it cost and the warnings.

    `[n]` in the text is the n-th hit of the pool. Without an LLM or without hits it is the `fallback`, by default the
    extractive one. An LLM that fails, or that cites no source it was given, leaves that one with a warning; it never
    raises for that.
    """
    own = fallback or (lambda: extract(question, pool, nodes))
    if llm is None or not pool.hits:
        return own(), Cost(), ()
    asked = ask or SummaryRequest()
    memories = _memories(pool.hits)
    cost = Cost()
    try:
        if timeout_s < _LEAST_TIME_S:
            raise TransientError("no time was left for it")
        tree = sorted(nodes.values(), key=lambda node: node_order(node.id))
        prompt = summarise_prompt(
            question, memories, tree, intent=asked.intent, steps=asked.steps, whole=_is_whole(nodes)
        )
        reply = llm.complete(prompt, timeout_s=timeout_s)
        cost = reply.cost
        checked = check_citations(summary_text(safe(reply.text)), len(memories))
        if not checked.cited:
            raise ReplyError(f"it cites none of the {len(memories)} memories")
    except RamifyError as error:
        reason = str(error).strip().rstrip(".")
        warning = f"The summary by LLM cannot be used, so it is extractive: {reason}."
        return own(), cost or spent(error).cost, (warning,)
    return _summary(checked, pool), cost, _warnings(checked)


def _summary(checked: Checked, pool: MergedPool) -> Summary:
    claims: dict[int, list[str]] = {number: [] for number in checked.cited}
    # Mask brackets in code before splitting: a code span may hold a sentence end, and its `[3]` is no citation.
    for sentence in _claims(_CODE.sub(lambda code: code[0].translate(_NO_BRACKETS), checked.text)):
        for number in claims.keys() & map(int, _CITED.findall(sentence)):
            claims[number].append(sentence)
    return Summary(
        text=checked.text,
        kind="llm",
        citations=tuple(
            citation(number, pool.hits[number - 1], best_quote(pool.hits[number - 1], " ".join(claims[number])))
            for number in sorted(claims)
        ),
        removed=checked.removed,
    )


def _claims(text: str) -> list[str]:
    """Sentences with the citations that follow their full stop: "Done. [1] Next" -> "Done. [1]", "Next"."""
    claims: list[str] = []
    for sentence in sentences(text):
        body = sentence.lstrip()
        while claims and body.startswith("[") and "]" in body:
            mark, _, body = body.partition("]")
            claims[-1] += f"{mark}]"
            body = body.lstrip()
        if body:
            claims.append(body)
    return claims


def _warnings(checked: Checked) -> tuple[str, ...]:
    if not checked.removed:
        return ()
    return (f"{checked.removed} citation(s) of sources that do not exist were removed from the summary.",)


def _memories(hits: Sequence[MergedHit]) -> list[Memory]:
    """The hits by number, best first, each cut to an even share of all; a very long tail is left out."""
    shown = hits[: SUMMARY_MEMORY_CHARS // _FEWEST_CHARS]
    each = SUMMARY_MEMORY_CHARS // len(shown)
    return [
        Memory(number=number, facet=_facet(hit), path=hit.path, date=hit.date, text=_cut(hit.full_text, each))
        for number, hit in enumerate(shown, start=1)
    ]


def _facet(hit: MergedHit) -> str:
    """The facet of the leaf that ranked the hit best."""
    best = min(hit.sources, key=lambda source: (source.rank, -source.score), default=None)
    return best.facet if best else Facet.CORE.value


def _is_whole(nodes: Mapping[str, Node]) -> bool:
    """True for a question that was not split."""
    return all(node.kind is not NodeKind.LEAF or node.facet is Facet.ORIGINAL for node in nodes.values())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Checked(Model):
    """`text` with valid citations only, each as [n]; `cited` in order of appearance; `removed` counts the others."""

    text: str
    cited: tuple[int, ...] = ()
    removed: int = 0


def check_citations(text: str, sources: int) -> Checked:
    """Keep the citations of 1..`sources`, remove and count the others.

    Lists, ranges, footnote marks and wide brackets ([1, 3], [2-4], [^1], 【1】) become [1][3]. What stands in code
    is code: `rows[0]` cites nothing.
    """
    cited: dict[int, None] = {}
    removed = 0

    def rewrite(match: re.Match[str]) -> str:
        nonlocal removed
        numbers = _numbers(match[1] or match[2] or match[3], sources)
        valid = [number for number in dict.fromkeys(numbers) if 1 <= number <= sources]
        removed += len(set(numbers)) - len(valid)
        cited.update(dict.fromkeys(valid))
        return (" " if valid and match[0][0] in " \t" else "") + "".join(f"[{number}]" for number in valid)

    parts = _CODE.split(text)
    parts[::2] = [_citation().sub(rewrite, part) for part in parts[::2]]
    return Checked(text="".join(parts), cited=tuple(cited), removed=removed)


@derived
def _citation() -> re.Pattern[str]:
    joints = "|".join((r"[,，、;；\-–]", *(word for language in languages() for word in language.words.and_)))
    numbers = rf"\^?\d{{1,9}}(?:\s?(?:{joints})\s?\^?\d{{1,9}})*"
    return re.compile(rf"[ \t]{{0,3}}(?:\[({numbers})\]|【({numbers})】|［({numbers})］)")


def _numbers(inside: str, sources: int) -> list[int]:
    """The numbers of one bracket; a range is written out, and one that is no range counts by its two ends."""
    numbers: list[int] = []
    for part in _PART.finditer(inside):
        first, last = int(part[1]), int(part[2] or part[1])
        whole = first <= last <= sources + _LONGEST_RANGE and last - first <= _LONGEST_RANGE
        numbers.extend(range(first, last + 1) if whole else (first, last))
    return numbers
