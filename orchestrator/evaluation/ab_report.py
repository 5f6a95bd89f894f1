"""What shadow runs showed: agreement, time and cost by type; quality only where there are judgements. Values only."""

from __future__ import annotations

from pydantic import Field

from orchestrator.evaluation.report import Bounds, Percentiles
from orchestrator.evaluation.significance import LEVEL, RESAMPLES, SEED
from shared.models import Cost
from shared.models.base import Model


class Mean(Model):
    """A mean of `n` questions with its interval."""

    mean: float
    low: float
    high: float
    n: int


class Quality(Model):
    """nDCG@10 on the `n` judged questions; `difference` is shadow minus live, `p` adjusted over all rows of the report.

    `win_rate` is the share of questions on which the shadow is better, ties counting half.
    """

    n: int
    live: float
    shadow: float
    difference: float
    low: float
    high: float
    p: float
    wins: int
    losses: int
    ties: int
    win_rate: float
    win_rate_bounds: Bounds


class Spent(Model):
    """Sums over the questions of one side."""

    cost: Cost
    ms: Percentiles
    nothing: int = Field(description='answers whose verdict was "nothing relevant"')


class Row(Model):
    """The questions of one type; `type` "all" has every one. `same_first`: both have the same best document.

    `empty` questions found nothing on either side: there is nothing to agree on.
    """

    type: str
    n: int
    overlap: Mean | None
    rbo: Mean | None
    same_first: float | None
    empty: int = 0
    live: Spent
    shadow: Spent
    quality: Quality | None = None


class Trial(Model):
    """One pair of strategies, all questions first, then the types by size."""

    live: str
    shadow: str
    rows: tuple[Row, ...]


class AbMethod(Model):
    """How the figures came to be."""

    depth: int = 10
    rbo: str = "extrapolated, p = 0.9"
    level: float = LEVEL
    interval: str = "percentile bootstrap over questions, paired"
    test: str = "two-sided sign-flip permutation of the mean difference, Holm over all rows"
    resamples: int = RESAMPLES
    seed: int = SEED


class AbReport(Model):
    """Everything that `ramify ab` says. `strategy` and `share` are those of the running stack; None: nothing runs now.

    `counts` is what became of the jobs on offer; `waiting` are on offer, `open` under way. `said` are its conclusions.
    """

    strategy: str | None = None
    share: float | None = None
    waiting: int = 0
    open: int = 0
    counts: dict[str, int]
    trials: tuple[Trial, ...] = ()
    said: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    method: AbMethod = AbMethod()
