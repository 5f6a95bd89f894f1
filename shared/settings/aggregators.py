"""The options of the aggregators, which make the answer of what was found."""

from __future__ import annotations

from pydantic import ConfigDict, Field, ValidationError, model_validator

from shared.plugins import AGGREGATORS, plugins
from shared.settings.section import Section
from shared.settings.spelling import known


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
    """What an answer is made by, each with its options; `routing.types` says which.

    Tables of other names are options for the aggregators of plugins, which check them again.
    """

    model_config = ConfigDict(extra="allow")

    simple: Simple = Simple()
    reasoning: Reasoning = Reasoning()
    enumeration: Enumeration = Enumeration()

    @model_validator(mode="after")
    def _of_plugins(self) -> Aggregators:
        for name, given in (self.model_extra or {}).items():
            found = plugins()
            known(name, (*type(self).model_fields, *sorted(found.loaded[AGGREGATORS])), "aggregator")
            _, plugin = found.loaded[AGGREGATORS][name]
            try:
                plugin.options.model_validate(given)
            except ValidationError as error:
                fault = error.errors()[0]
                raise ValueError(f"{'.'.join(map(str, (name, *fault['loc'])))}: {fault['msg']}") from None
        return self
