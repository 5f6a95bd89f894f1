"""The public face of Ramify for Python programs: the client, its errors, and the models that callers meet.

    from ramify import Ramify

    with Ramify() as ramify:
        job = ramify.submit("How do we restore the orders database?")
        ramify.wait(job)
        print(ramify.result(job).summary.text)

Only re-exports. What is not in `__all__` may change without notice.
"""

from orchestrator.client import Ramify
from orchestrator.corpus import Corpus, CorpusOverview, IngestFailures, SourceFreshness
from orchestrator.dead_letters import DeadLetters, Replayed
from orchestrator.feeding import PushedDocument
from orchestrator.ingest import Progress
from orchestrator.intake import BatchFullError, BatchLine, Rejected, Submitted, bounded_lines, read_questions
from orchestrator.outage import Outage
from orchestrator.planning.plan_file import PlanFile
from orchestrator.retry import Retried
from orchestrator.sessions import KeptSession
from shared.errors import (
    BatchCancelledError,
    IngestUnderWayError,
    InputError,
    LaneFullError,
    NotFoundError,
    NotRunningError,
    RamifyError,
    SettingsError,
)  # fmt: skip
from shared.jobs import State
from shared.jobs.job_list import JobList
from shared.jobs.states import Outcome
from shared.models import (
    Answer,
    BatchStatus,
    Citation,
    Cost,
    DocumentOutcome,
    DocumentStatus,
    Facet,
    Filters,
    Hit,
    JobEvent,
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
)  # fmt: skip
from shared.models.batch import BatchPosition, BatchSource, LineKind, LineRecord, LineReport
from shared.models.corpus import DocumentSize, Passage, PassageMark, StoredDocument
from shared.models.cost import Budget, Spending
from shared.models.enumeration import ListRow, ListTable
from shared.models.find import FindRequest, FindResult, MatchedContext, QueryResult, SessionResult
from shared.models.ingest import IngestCounts, IngestResult
from shared.models.place import Place
from shared.models.request import ChatMessage, ContextType, Session, TypedQuery
from shared.models.status import BatchWhy, DeadLetter, Why
from shared.settings import Settings, load_settings

__all__ = [
    "Answer", "BatchCancelledError", "BatchFullError", "BatchLine", "BatchPosition", "BatchSource", "BatchStatus",
    "BatchWhy", "Budget", "ChatMessage", "Citation", "ContextType", "Corpus", "CorpusOverview", "Cost", "DeadLetter",
    "DeadLetters", "DocumentOutcome", "DocumentSize", "DocumentStatus", "Facet", "Filters", "FindRequest",
    "FindResult", "Hit", "IngestCounts", "IngestFailures", "IngestResult", "IngestUnderWayError", "InputError",
    "JobEvent", "JobList", "JobRequest", "JobStatus", "KeptSession", "Lane", "LaneFullError", "LeafResult",
    "LeafStatus", "LineKind", "LineRecord", "LineReport", "ListRow", "ListTable", "MatchedContext", "MergedHit",
    "Node", "NodeKind", "NotFoundError", "NotRunningError", "Outage", "Outcome", "Passage", "PassageMark", "Place",
    "PlanEntry", "PlanFile", "Progress", "PushedDocument", "QueryResult", "Ramify", "RamifyError", "Rejected",
    "Replayed", "Retried", "SearchMode", "Session", "SessionResult", "Settings", "SettingsError", "SourceFreshness",
    "Spending", "State", "StoredDocument", "Submitted", "Summary", "TypedQuery", "Why", "bounded_lines",
    "load_settings", "read_questions",
]  # fmt: skip
