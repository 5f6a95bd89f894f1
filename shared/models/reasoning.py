"""The steps of a reasoned answer, each with its evidence."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from shared.models.base import Model


class Bridge(Model):
    """How one passage led to another: `start` -> (name) -> `end`, both numbers of results.

    `start` None: the passage that brought the name up is not among the results. `how` as in `Via.how`; `title`: the
    one passage names the page of the other.
    """

    start: int | None = Field(default=None, ge=1)
    name: str
    end: int = Field(ge=1)
    how: str = "name"


class Step(Model):
    """One step of a reasoned answer.

    `kind`: a fact that later steps may need, an aspect of the question beside others, or a hop from one passage to the
    next. `question` is the subquestion as it was searched, `planned` the same as it was planned, where something was
    written into it. `after` are the steps that it waited for. `found` is what it handed on to the steps behind it,
    `found_by` how: answer (read by the LLM) or names (candidates, likeliest first). `text` are sentences of passages,
    each with its `[n]`; `passages` are these numbers. `gap` says why there is no evidence.
    """

    number: int = Field(ge=1)
    kind: Literal["fact", "aspect", "hop"]
    node_id: str
    facet: str
    question: str
    planned: str | None = None
    after: tuple[int, ...] = ()
    found: tuple[str, ...] = ()
    found_by: str | None = None
    text: str = ""
    passages: tuple[int, ...] = ()
    bridges: tuple[Bridge, ...] = ()
    gap: str | None = None
