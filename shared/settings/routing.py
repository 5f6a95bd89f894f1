"""How a question is read before it is searched (docs/routing.md)."""

from __future__ import annotations

from pydantic import Field

from shared.settings.section import Section


class Routing(Section):
    """The router (F3, E1). Rules read every question; the LLM is asked only about those they are unsure of."""

    unsure_below: float = Field(default=0.5, ge=0, le=1, description="confidence from which the rules count as sure")
    llm: bool = Field(default=True, description="ask the LLM, if there is one, where the rules are unsure")
