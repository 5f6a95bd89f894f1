"""The verifier in a summary: asked about what words leave undecided, and no answer is lost where it fails."""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import ReplyError, TransientError
from shared.models import Cost
from shared.models.degraded import Degradation
from shared.models.support import Support
from shared.providers.fallbacks import Fallbacks, noting
from shared.providers.verifiers import Pair, Verified
from shared.settings.sections import SimpleAggregator
from tests.fakes.findings import Scripted, found, hit
from workers.merge.aggregators.simple import simple
from workers.merge.findings import Aggregated
from workers.merge.support import with_support

HITS = [
    hit(1, "The relay keeps events for 30 days. Ada Byrne built it in 2019.", title="Relay"),
    hit(2, "中继把事件保留30天。", title="中继"),
]
PARAPHRASE, LIE = "Old messages vanish from it after a month [1].", "Ada Byrne built it in 2021 [1]."
FOREIGN, PLAIN = "Alarms ring in Oslo all night [2].", "Ada Byrne built it in 2019 [1]."


class Says:
    """Tells what it is told to; `error` after that."""

    name = "fake"

    def __init__(self, said: dict[str, bool], error: Exception | None = None) -> None:
        self._said, self._error, self.asked = said, error, list[str]()

    def verify(self, pairs: Sequence[Pair], timeout_s: float, found: Verified) -> None:
        assert timeout_s > 0
        self.asked += [claim for claim, _ in pairs]
        found.says.update({pair: self._said[pair[0]] for pair in pairs if pair[0] in self._said})
        found.cost += Cost(rerank_calls=1)
        if self._error:
            raise self._error

    def close(self) -> None: ...


def summed(reply: str, verifier: Says | None, **fields: object) -> tuple[Aggregated, frozenset[Degradation]]:
    noted = Fallbacks()
    with noting(noted):
        made = simple(
            found("How long?", [], HITS, llm=Scripted(reply), timeout_s=10, verifier=verifier, **fields),
            SimpleAggregator(),
        )
    return with_support(made, HITS), noted.take()


def test_given_sentences_then_only_those_that_words_leave_undecided_are_asked_about() -> None:
    verifier = Says({PARAPHRASE.replace(" [1]", ""): True, FOREIGN.replace(" [2]", ""): False})
    made, degraded = summed(f"{PARAPHRASE} {LIE} {FOREIGN} {PLAIN}", verifier)
    assert verifier.asked == [PARAPHRASE.replace(" [1]", ""), FOREIGN.replace(" [2]", "")]
    assert made.summary.text == f"{PARAPHRASE} {PLAIN}"
    report = made.summary.support
    assert report is not None
    assert [one.kind for one in report.spans] == ["verifier", "quote"]
    assert [one.kind for one in report.removed] == ["number", "verifier"]
    assert (made.cost.rerank_calls, degraded, made.warnings[-1:]) == (1, frozenset(), made.warnings[:1])


def test_given_a_verifier_that_fails_then_words_decide_and_the_answer_says_why() -> None:
    for error in (TransientError("it is down"), ReplyError("it is no JSON")):
        made, degraded = summed(f"{PARAPHRASE} {PLAIN}", Says({}, error))
        assert made.summary.text == PLAIN
        assert degraded == {Degradation.VERIFIER_UNAVAILABLE}
        assert made.warnings[-1].startswith("The verifier failed")


def test_given_a_verifier_that_fails_in_the_middle_then_what_it_has_told_counts() -> None:
    said = {PARAPHRASE.replace(" [1]", ""): True}
    made, degraded = summed(f"{PARAPHRASE} {FOREIGN}", Says(said, TransientError("time was up")))
    report = made.summary.support
    assert report is not None
    assert [one.support for one in report.spans] == [Support.SUPPORTED, Support.UNCHECKED]
    assert degraded == {Degradation.VERIFIER_UNAVAILABLE}


def test_given_a_limit_then_no_more_are_asked_about() -> None:
    verifier = Says({})
    summed(f"{PARAPHRASE} {FOREIGN}", verifier, verifier_limit=1)
    assert len(verifier.asked) == 1


def test_given_no_verifier_then_nothing_is_different() -> None:
    made, degraded = summed(f"{PARAPHRASE} {FOREIGN} {PLAIN}", None)
    assert (made.summary.text, degraded) == (f"{FOREIGN} {PLAIN}", frozenset())
