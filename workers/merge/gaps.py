"""What the first search left open, and the queries of one more round for it. Pure: pool, plan and question in.

`SIGNALS` has a function for each way in which a gap shows. Nothing is looked for where a lookup is answered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from shared.language import question_language, reader_sentence
from shared.language.answers import AnswerKind
from shared.language.names import names_of
from shared.language.text import CJK, fold, question_key, terms
from shared.models import MAX_QUESTION_CHARS, ROOT_ID, Facet, Hit, LeafResult, LeafStatus, MergedHit, Node
from shared.models.gaps import Gap, GapSignal, SearchedGap
from shared.models.plan import BOUND_BY_NOTHING, NodeKind
from shared.providers.rerankers.lexical import as_terms, candidate_idf
from shared.settings.strategies import AGAIN
from shared.settings.verifying import GapSettings
from workers.search.stages.hops import CHAIN, ChainScorer, When, reason_against

#: How many of the pool are looked at: what a reader sees first.
FIRST = GapSettings.first
#: Passages whose names are followed, names of each, and what a passage counts for each one before it. On musique three
#: passages and four leaves in all gain 6 points of All@10, twelve leaves 8.
_PARENTS, _NAMES, _NEXT = 3, 8, 0.6
#: The score in its leaf from which a passage closes a gap, where it stands among the first.
_CLOSED = 0.5
#: Gain of a name whose sentence has no word of the question.
_BARE_NAME = 0.2
#: Gain of the other signals: a step holds up what follows it, a kind of answer says least about what to search.
_STEP_GAIN, _NAME_GAIN, _FACET_GAIN, _ANSWER_GAIN = 0.6, 0.5, 0.4, 0.3
#: Highest number of a child in a node's id.
_MOST_CHILDREN = 99
#: Kinds of answers whose evidence cannot be missed: they are written in digits and words of time.
_SHOWN_KINDS = frozenset({AnswerKind.DATE, AnswerKind.NUMBER, AnswerKind.MONEY, AnswerKind.DURATION})
_WORD = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+(?:[.'’-][^\W_{CJK}]+)*")
#: A plain word at the beginning of a sentence.
_BEGINS = re.compile(r"(?:^|[.?!:;]\s*+|\n[^\S\n]*+)(?:(?:[-*+]|\d{1,3}[.)])[^\S\n]+)?([A-Z][a-z]+)\b")
_ENDS = "?？.。!！ "


@dataclass(frozen=True)
class SearchedTree:
    """What gaps are looked for in: the question, its tree and what that has found, best first."""

    question: str
    nodes: Mapping[str, Node]
    leaves: Mapping[str, LeafResult]
    hits: Sequence[MergedHit]
    options: GapSettings

    @property
    def planned(self) -> list[Node]:
        """The leaves of the plan, without the question's own."""
        return [node for node in self.nodes.values() if node.kind is NodeKind.LEAF and node.facet.planned]

    def found(self, node: Node) -> bool:
        """False for a leaf that answered, and found nothing that is relevant."""
        leaf = self.leaves.get(node.id)
        return leaf is None or leaf.status is not LeafStatus.DONE or bool(leaf.hits and not leaf.verdict)

    @property
    def searched_again(self) -> bool:
        """True when leaves were added for gaps: there is one such round."""
        return any(node.gap for node in self.nodes.values())

    @cached_property
    def is_lookup(self) -> bool:
        """True where one passage is to answer: no plan, and no hop is asked for."""
        return not self.planned and reason_against(self.question, "asked") is not None

    @cached_property
    def best_share(self) -> float:
        """The share of the question's words in the best passage, by their IDF among the first: 0..1."""
        pages = [as_terms(hit.title, hit.heading, hit.text).words for hit in self.hits[: 2 * FIRST]]
        weights = candidate_idf(terms(self.question), pages)
        held = sum(weight for word, weight in weights.items() if word in pages[0])
        return held / (sum(weights.values()) or 1.0)


@dataclass(frozen=True)
class GapQuery:
    """A gap and what is searched for it."""

    gap: Gap
    query: str


def round_of(tree: SearchedTree, room: int, said: Iterable[GapQuery] = ()) -> tuple[Node, ...]:
    """The leaves to be added, the likeliest first, at most `room` and `max_leaves`; none after such a round.

    `said`: gaps beside those that the signals see.
    """
    if tree.searched_again:
        return ()
    known = {question_key(node.query) for node in tree.nodes.values()}
    chosen: dict[str, GapQuery] = {}
    for one in sorted((*said, *open_gaps(tree)), key=lambda one: -one.gap.gain):
        if one.gap.gain >= tree.options.min_gain and (key := question_key(one.query)) not in known:
            chosen.setdefault(key, one)
    children = (int(node_id.split(".")[1]) for node_id in tree.nodes if "." in node_id)
    first = max(children, default=0) + 1
    most = min(room, tree.options.max_leaves, _MOST_CHILDREN - first + 1)
    return tuple(
        Node(
            id=f"{ROOT_ID}.{number}", parent_id=ROOT_ID, level=1, facet=Facet.GAP, query=one.query,
            strategy=AGAIN, gap=one.gap,
        )
        for number, one in enumerate(list(chosen.values())[: max(0, most)], first)
    )  # fmt: skip


def is_worth_while(tree: SearchedTree) -> bool:
    """False for a list, an answered lookup, and where nothing at all is relevant."""
    verdicts = {leaf.verdict for leaf in tree.leaves.values() if leaf.status is LeafStatus.DONE}
    listed = any(node.shard for node in tree.nodes.values())
    if listed or not tree.hits or None not in verdicts:
        return False
    return not tree.is_lookup or tree.best_share < tree.options.lookups_below


def open_gaps(tree: SearchedTree) -> Iterator[GapQuery]:
    """What every signal sees, where that is worth while."""
    for signal in SIGNALS.values() if is_worth_while(tree) else ():
        yield from signal(tree)


def _chain(tree: SearchedTree) -> Iterator[GapQuery]:
    """No passage of the first was reached over a name: the names in the best ones, each with what these do not say."""
    when: When = "questions" if tree.is_lookup else "asked"
    if any(node.depends_on for node in tree.planned) or reason_against(tree.question, when) is not None:
        return
    if max(hit.parts.get(CHAIN, 0.0) for hit in tree.hits[:FIRST]) >= tree.options.min_chain:
        return
    scorer = ChainScorer(tree.question, tree.hits[: 2 * FIRST])
    for place, hit in enumerate(tree.hits[:_PARENTS]):
        rest = unsaid(tree.question, as_terms(hit.title, hit.heading, hit.text).words)
        bridges = (one for one in scorer.bridges(hit, 1.0) if not _only_begins(one.name, hit.text)) if rest else ()
        for bridge in islice(bridges, _NAMES):
            gain = (bridge.asks + _BARE_NAME) * _NEXT**place
            yield _query(GapSignal.CHAIN, bridge.name, gain, f"{bridge.name} {rest}")


def _step(tree: SearchedTree) -> Iterator[GapQuery]:
    """A step that got nothing written in, or found nothing: it is searched with the names of the question."""
    for node in tree.planned:
        if node.depends_on and (node.bound_by == BOUND_BY_NOTHING or not tree.found(node)):
            yield _query(GapSignal.STEP, node.query, _STEP_GAIN, _with_names(tree.question, node.query))


def _facet(tree: SearchedTree) -> Iterator[GapQuery]:
    """A subquestion without a relevant passage: its own words alone, with the names of the question."""
    for node in tree.planned:
        if not node.depends_on and not tree.found(node):
            words = unsaid(node.query, frozenset())
            yield _query(GapSignal.FACET, node.query, _FACET_GAIN, _with_names(tree.question, words))


def _name(tree: SearchedTree) -> Iterator[GapQuery]:
    """A name of the question that stands in no passage: by itself, since other words have led elsewhere."""
    found = frozenset[str]().union(*(as_terms(hit.title, hit.heading, hit.text).words for hit in tree.hits))
    for name in _asked_names(tree.question):
        if not found.issuperset(terms(name)):
            yield _query(GapSignal.NAME, name, _NAME_GAIN, name)


def _answer(tree: SearchedTree) -> Iterator[GapQuery]:
    """No date for "when", no number for "how many": the names of the question, with what the best passage lacks."""
    language = question_language(tree.question)
    kind = language.answers.kind(fold(tree.question).strip(_ENDS)) if language else None
    shown = language.answers.shown_by(kind) if language and kind in _SHOWN_KINDS else None
    if kind is None or shown is None or any(shown.search(fold(hit.full_text)) for hit in tree.hits[:FIRST]):
        return
    best = tree.hits[0]
    rest = unsaid(tree.question, as_terms(best.title, best.heading, best.text).words)
    if rest:
        what = reader_sentence(f"kind_{kind.value}", tree.question)
        yield _query(GapSignal.ANSWER, what, _ANSWER_GAIN, _with_names(tree.question, rest))


#: The signals of a gap, in the order in which an answer tells them.
SIGNALS: Mapping[GapSignal, Callable[[SearchedTree], Iterator[GapQuery]]] = {
    GapSignal.STEP: _step,
    GapSignal.FACET: _facet,
    GapSignal.NAME: _name,
    GapSignal.ANSWER: _answer,
    GapSignal.CHAIN: _chain,
}


def told_gaps(tree: SearchedTree) -> tuple[SearchedGap, ...]:
    """The gaps of an answer: those that were searched again, then of each other signal the likeliest that is open.

    Closed is a gap when a leaf that was added for it has a passage among the first that has its words.
    """
    added: dict[tuple[GapSignal, str], list[str]] = {}
    for node in tree.nodes.values():
        if node.gap is not None:
            added.setdefault((node.gap.signal, node.gap.what), []).append(node.id)
    told = [
        _told(tree.question, signal, what, leaves, closed=_is_closed(leaves, tree))
        for (signal, what), leaves in added.items()
    ]
    signals = {signal for signal, _ in added}
    for one in sorted(open_gaps(tree), key=lambda one: -one.gap.gain):
        if one.gap.signal not in signals:
            signals.add(one.gap.signal)
            told.append(_told(tree.question, one.gap.signal, one.gap.what, (), closed=False))
    return tuple(told)


def _told(question: str, signal: GapSignal, what: str, leaves: Iterable[str], *, closed: bool) -> SearchedGap:
    searched = tuple(leaves)
    standing = ("gap_closed" if closed else "gap_open") if searched else "gap_seen"
    text = reader_sentence(standing, question, reader_sentence(f"gap_{signal.value}", question, what))
    return SearchedGap(signal=signal, what=what, searched=searched, closed=closed, text=text)


def _is_closed(leaves: Sequence[str], tree: SearchedTree) -> bool:
    own = [tree.nodes[leaf] for leaf in leaves]
    return any(
        source.node_id == node.id and source.score >= _CLOSED and _holds(hit, node)
        for hit in tree.hits[:FIRST]
        for source in hit.sources
        for node in own
    )


def _holds(hit: Hit, node: Node) -> bool:
    """A name must stand in the passage; a subquestion may be answered in other words."""
    if node.gap is None or node.gap.signal not in {GapSignal.CHAIN, GapSignal.NAME}:
        return True
    return as_terms(hit.title, hit.heading, hit.text).words.issuperset(terms(node.gap.what))


def unsaid(question: str, said: frozenset[str]) -> str:
    """The words of `question` that name something and are not among the terms `said`, as they are written.

    Of a run without spaces, those of its characters that stand in no term that is said.
    """
    kept = list[str]()
    for word in _WORD.findall(question):
        own = terms(word)
        if own and len(own[0]) <= 2 and re.match(f"[{CJK}]", word):
            kept += _unsaid_run(word, own, said)
        elif own and not said.issuperset(own):
            kept.append(word)
    return " ".join(kept)


def _unsaid_run(run: str, own: Sequence[str], said: frozenset[str]) -> Iterator[str]:
    """The longest parts of `run` that stand in no term that is said, of characters that stand in one that is not."""
    keep, text = [False] * len(run), fold(run)
    for left in (True, False):  # what is said last: pairs lie over each other
        for term in own:
            at = text.find(term) if (term not in said) is left else -1
            while at >= 0:
                keep[at : at + len(term)] = [left] * len(term)
                at = text.find(term, at + 1)
    part = ""
    for char, kept in zip(run, keep, strict=True):
        if kept:
            part += char
        elif part:
            yield part
            part = ""
    if part:
        yield part


def _asked_names(question: str) -> list[str]:
    """The names of a question. A plain word that begins a sentence is in capitals whatever it is: "Compare"."""
    begins = {found[1] for found in _BEGINS.finditer(question)}
    return [name for name in names_of("", question) if name not in begins]


def _only_begins(word: str, text: str) -> bool:
    """True for a plain word that only begins sentences of `text`: "Keep" of an order is no name."""
    begins = [found[1] for found in _BEGINS.finditer(text)].count(word)
    return begins > 0 and begins == len(re.findall(rf"\b{re.escape(word)}\b", text))


def _with_names(question: str, text: str) -> str:
    """`text` behind the names of the question that it does not have."""
    own = frozenset(terms(text))
    return " ".join((*(name for name in _asked_names(question) if not own.issuperset(terms(name))), text))


def _query(signal: GapSignal, what: str, gain: float, query: str) -> GapQuery:
    return GapQuery(Gap(signal=signal, what=what, gain=round(gain, 3)), query[:MAX_QUESTION_CHARS].strip())
