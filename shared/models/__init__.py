"""Frozen values that travel between the rooms. No behaviour beyond validation."""

from shared.models.answer import Answer, Summary
from shared.models.cost import Cost
from shared.models.hits import (
    Chunk,
    Hit,
    LeafResult,
    LeafStatus,
    MergedHit,
    MergedPool,
    PagePart,
    SearchResult,
    Source,
    Via,
)
from shared.models.ingest import DocumentOutcome, DocumentStatus, RawDocument
from shared.models.plan import ROOT_ID, Decomposition, Facet, Node, NodeKind, SubQuery
from shared.models.request import MAX_QUESTION_CHARS, Filters, JobRequest, Lane, Plan, PlanEntry, SearchMode
from shared.models.status import BatchStatus, JobEvent, JobStatus
from shared.models.support import Citation

__all__ = [
    "MAX_QUESTION_CHARS", "ROOT_ID", "Answer", "BatchStatus", "Chunk", "Citation", "Cost", "Decomposition",
    "DocumentOutcome", "DocumentStatus", "Facet", "Filters", "Hit", "JobEvent", "JobRequest", "JobStatus", "Lane",
    "LeafResult", "LeafStatus", "MergedHit", "MergedPool", "Node", "NodeKind", "PagePart", "Plan", "PlanEntry",
    "RawDocument", "SearchMode", "SearchResult", "Source", "SubQuery", "Summary", "Via",
]  # fmt: skip
