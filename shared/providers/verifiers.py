"""Verifiers: whether a passage says a claim, by a model. Asked only where the lexical checks leave it undecided.

Three kinds behind one Protocol: a server that scores pairs (rerank- or NLI-shaped), a local cross-encoder, the LLM.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from shared.errors import RamifyError, ReplyError, shown
from shared.models import Cost
from shared.providers.gates import Gate
from shared.providers.http import JsonClient
from shared.providers.llm.client import LLM
from shared.providers.llm.prompts import verify_prompt
from shared.providers.llm.replies import parse_verdicts
from shared.providers.metering import paid
from shared.providers.rerankers.endpoint import EndpointScorer
from shared.providers.rerankers.fastembed_cross import CrossEncoderScorer
from shared.providers.rerankers.scoring import Request, Scorer
from shared.settings import Settings
from shared.settings.server_url import with_login

#: A claim, and the text that is to say it.
Pair = tuple[str, str]
_FRAME_BYTES = 64_000
_RESULTS = "results"


@dataclass(slots=True)
class Verified:
    """What was told of the pairs, and what that has cost; those left out are undecided still."""

    says: dict[Pair, bool] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost)


class Verifier(Protocol):
    """Tells whether passages say claims. Called from many threads."""

    name: str

    def verify(self, pairs: Sequence[Pair], timeout_s: float, found: Verified) -> None:
        """Fill `found` within `timeout_s` seconds.

        Raises: TransientError, PermanentError or ReplyError; what was filled before counts.
        """

    def close(self) -> None:
        """Let go of connections."""


def verifier(settings: Settings, llm: LLM | None = None) -> Verifier | None:
    """The one that `settings.verifier` names; None where it names none, or the LLM and there is none."""
    own = settings.verifier
    as_reranker = settings.model_copy(update={"rerank": own.as_reranker()}) if own.model else settings
    if own.provider == "endpoint":
        return ScoringVerifier(EndpointScorer(as_reranker), own.least)
    if own.provider == "fastembed":
        return ScoringVerifier(CrossEncoderScorer(as_reranker.rerank), own.least)
    if own.provider == "nli":
        return NliVerifier(settings)
    return ChatVerifier(llm) if own.provider == "chat" and llm is not None else None


class ScoringVerifier:
    """A model that scores a passage for a query: the claim is the query."""

    def __init__(self, scorer: Scorer, least: float) -> None:
        self.name, self._scorer, self._least = scorer.name, scorer, least

    def verify(self, pairs: Sequence[Pair], timeout_s: float, found: Verified) -> None:
        """A claim after the other, each with its passages."""
        deadline = time.monotonic() + timeout_s
        for claim in dict.fromkeys(claim for claim, _ in pairs):
            request = Request(claim, tuple(text for one, text in pairs if one == claim), deadline)
            request.seconds_left()
            try:
                self._scorer.score(request)
            finally:
                found.cost += Cost(rerank_calls=request.calls, rerank_documents=len(request.scores))
                known = {text: score for text, score in request.scores.items() if score is not None}
                for text, score in zip(known, self._scorer.calibrated(list(known.values())).scores, strict=True):
                    found.says[claim, text] = score >= self._least

    def close(self) -> None:
        self._scorer.close()


class NliVerifier:
    """A server of natural language inference: POST {base_url}/predict with pairs of premise and hypothesis.

    Each answer is a list of labels with scores; the one of "entailment" counts.
    """

    def __init__(self, settings: Settings) -> None:
        own = settings.verifier
        url = with_login(own.base_url)
        self.name, self._own = f"nli:{own.model}", own
        gate = Gate("rerank", url, settings.providers)
        self._client = JsonClient(url, own.api_key, gate, 1, attempt_s=own.timeout_s, list_as=_RESULTS)

    def verify(self, pairs: Sequence[Pair], timeout_s: float, found: Verified) -> None:
        """All pairs in one call."""
        body = {"inputs": [[text, claim] for claim, text in pairs], "raw_scores": False}
        calls = 0
        try:
            with paid("rerank", self._own.model) as call:
                most = _FRAME_BYTES + 1000 * len(pairs)
                reply = self._client.post("/predict", body, timeout_s, call.next_try, most_bytes=most)
            calls = reply.calls
            scores = read_entailments(reply.body, len(pairs))
        except RamifyError as error:
            calls = calls or error.calls
            raise
        finally:
            found.cost += Cost(rerank_calls=calls, rerank_documents=len(pairs) if calls else 0)
        found.says.update({pair: score >= self._own.least for pair, score in zip(pairs, scores, strict=True)})

    def close(self) -> None:
        self._client.close()


class ChatVerifier:
    """The LLM, with a strict reply for numbered pairs."""

    def __init__(self, llm: LLM) -> None:
        self.name, self._llm = "chat", llm

    def verify(self, pairs: Sequence[Pair], timeout_s: float, found: Verified) -> None:
        """All pairs in one prompt."""
        reply = self._llm.complete(
            verify_prompt(pairs), timeout_s=timeout_s, check=lambda text: parse_verdicts(text, len(pairs))
        )
        found.cost += reply.cost
        found.says.update({pairs[number]: said for number, said in parse_verdicts(reply.text, len(pairs)).items()})

    def close(self) -> None:
        """The LLM's client is its owner's."""


def read_entailments(body: dict[str, Any], count: int) -> list[float]:
    """The score of "entailment" of each pair. Raises: ReplyError naming the fault; then nothing of it is believed."""
    rows = body.get(_RESULTS)
    if not isinstance(rows, list) or len(rows) != count:
        raise ReplyError(f"the NLI server's reply has no list of {count} results")
    found = []
    for row in rows:
        given = [one for one in row if isinstance(one, dict)] if isinstance(row, list) else []
        labels = {str(one.get("label", "")).lower(): one.get("score") for one in given}
        score = next((value for name, value in labels.items() if name.startswith(("entail", "support"))), None)
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
            raise ReplyError(f"the NLI server's reply gives no score of entailment from 0 to 1: {shown(score)}")
        found.append(float(score))
    return found
