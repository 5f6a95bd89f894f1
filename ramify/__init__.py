"""The public face of Ramify for Python programs: the client, its errors, and the models that callers meet.

    from ramify import Ramify

    with Ramify() as ramify:
        job = ramify.submit("How do we restore the orders database?")
        ramify.wait(job)
        print(ramify.result(job).summary.text)

Only re-exports. What is not in `__all__` may change without notice.
"""

from orchestrator.client import (
    BatchFullError,
    DeadLetters,
    KeptSession,
    Outage,
    Progress,
    Ramify,
    Rejected,
    Replayed,
    Retried,
    Submitted,
)
from shared.errors import (
    InputError,
    LaneFullError,
    NotFoundError,
    NotRunningError,
    RamifyError,
    SettingsError,
)
from shared.job_store import State
from shared.models import (
    Answer,
    BatchStatus,
    Citation,
    Cost,
    DocumentOutcome,
    DocumentStatus,
    Event,
    Facet,
    Filters,
    Hit,
    JobRequest,
    JobStatus,
    Lane,
    LeafResult,
    LeafStatus,
    MergedHit,
    Node,
    NodeKind,
    PlanEntry,
    SearchMode,
    Summary,
)
from shared.models.budget import Budget, Spending
from shared.models.dead import DeadLetter
from shared.models.enumeration import Row, Table
from shared.models.find import FindRequest, FindResult, MatchedContext, QueryResult, SessionResult
from shared.models.plan_file import PlanFile
from shared.models.session import ContextType, Message, Session, TypedQuery
from shared.models.why import BatchWhy, Why
from shared.settings import Settings, load_settings

__all__ = [
    "Answer", "BatchFullError", "BatchStatus", "BatchWhy", "Budget", "Citation", "ContextType", "Cost", "DeadLetter",
    "DeadLetters", "DocumentOutcome", "DocumentStatus", "Event", "Facet", "Filters", "FindRequest", "FindResult", "Hit",
    "InputError", "JobRequest", "JobStatus", "KeptSession", "Lane", "LaneFullError", "LeafResult", "LeafStatus",
    "MatchedContext", "MergedHit", "Message", "Node", "NodeKind", "NotFoundError", "NotRunningError", "Outage",
    "PlanEntry", "PlanFile", "Progress", "QueryResult", "Ramify", "RamifyError", "Rejected", "Replayed", "Retried",
    "Row", "SearchMode", "Session", "SessionResult", "Settings", "SettingsError", "Spending", "State", "Submitted",
    "Summary", "Table", "TypedQuery", "Why", "load_settings",
]  # fmt: skip
