"""Decides how a question is answered. For now only: with or without subquestions. Never looks into the corpus."""

from __future__ import annotations

from shared.models import JobRequest
from shared.models.base import Model
from shared.settings import Settings


class Route(Model):
    """The way taken and why, as a sentence for people."""

    decompose: bool
    reason: str


def route(request: JobRequest, settings: Settings) -> Route:
    """The way for one request. Whether a decomposition finds anything to split is the decomposer's business."""
    if not request.decompose:
        return Route(decompose=False, reason="The request asks for a search without subquestions.")
    if settings.decomposition.max_total_leaves == 1:
        return Route(decompose=False, reason="decomposition.max_total_leaves is 1: only the question itself fits.")
    return Route(decompose=True, reason="The request lets the question branch into subquestions.")
