"""The options of the aggregators (E6), which make the answer of what was found."""

from __future__ import annotations

from pydantic import Field

from shared.settings.section import Section


class Simple(Section):
    """The merged results and their summary."""

    sentences: int = Field(default=10, ge=1, le=50, description="most sentences of an extractive summary")


class Reasoning(Section):
    """Steps with their evidence, then the conclusion."""

    sentences: int = Field(default=10, ge=1, le=50, description="most sentences of an extractive summary")
    passages: int = Field(default=2, ge=1, le=3, description="passages that carry a step")
    hops: int = Field(default=3, ge=1, le=6, description="longest way from passage to passage that is shown")


class Enumeration(Section):
    """The table of what fits, and how much was looked through for it."""

    rows: int = Field(default=20, ge=1, le=200, description="rows written into the answer's text")


class Aggregators(Section):
    """What an answer is made by, each with its options (E6); `routing.types` says which."""

    simple: Simple = Simple()
    reasoning: Reasoning = Reasoning()
    enumeration: Enumeration = Enumeration()
