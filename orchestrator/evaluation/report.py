"""An evaluation's outcome as data: what `--json` prints, and what tables and plots are drawn from."""

from __future__ import annotations

from pydantic import Field

from orchestrator.evaluation.statistics import LEVEL, RESAMPLES, SEED
from shared.models.base import Model

Bounds = tuple[float, float]


class Percentiles(Model):
    """Milliseconds, over the questions that were answered."""

    p50: float
    p95: float


class Calls(Model):
    """Calls to servers over all questions; `rerank_documents` is what the rerank calls scored."""

    llm: int = 0
    embed: int = 0
    rerank: int = 0
    rerank_documents: int = 0


class RelevanceMark(Model):
    """What `rerank.min_relevance` may be for this corpus: the highest mark that refuses at most 5 % of the questions.

    Shares of 1, of questions by which the mark was not chosen (halves, drawn again and again): `refused` as they are,
    which is an error; `caught` with their relevant documents taken out.
    """

    mark: float
    questions: int
    refused: float
    caught: float


class ArmFigures(Model):
    """One strategy. `metrics` and `intervals` (of the mean) are fractions of 1, by measure.

    `failed` questions count as found nothing. `job_ms` is there in pipeline mode only.
    """

    strategy: str
    metrics: dict[str, float]
    intervals: dict[str, Bounds]
    latency_ms: Percentiles
    job_ms: Percentiles | None = None
    calls: Calls
    failed: int = 0
    relevance: RelevanceMark | None = None


class Pair(Model):
    """`difference` is b minus a: above 0, b is better. `p` is adjusted over the pairs of its measure."""

    a: str
    b: str
    metric: str
    difference: float
    low: float
    high: float
    p: float


class OfType(Model):
    """The questions of one type: means by arm and measure, and every pair of arms.

    p is adjusted over the types and pairs of its measure.
    """

    type: str
    questions: int
    metrics: dict[str, dict[str, float]]
    pairs: tuple[Pair, ...] = ()


class Method(Model):
    """How the figures came to be."""

    mode: str
    plan: str | None = None
    gain: str = "2^grade - 1"
    relevant_from: int
    interval: str = "percentile bootstrap over questions, paired between strategies"
    level: float = LEVEL
    test: str = "two-sided sign-flip permutation of the mean difference"
    correction: str = "Holm over the pairs of a measure, per type over the types and pairs of a measure"
    types: str | None = None
    resamples: int = RESAMPLES
    seed: int = SEED


class Case(Model):
    """A question on which the first two arms differ: their nDCG@10, for people to look at."""

    question_id: str
    question: str
    a: float
    b: float


class Evaluation(Model):
    """One data set, all arms."""

    dataset: str
    questions: int
    arms: tuple[ArmFigures, ...]
    pairs: tuple[Pair, ...] = ()
    types: tuple[OfType, ...] = ()
    method: Method
    warnings: tuple[str, ...] = ()
    cases: tuple[Case, ...] = Field(default=(), exclude=True)
    latencies: dict[str, tuple[float, ...]] = Field(default_factory=dict, exclude=True)
