"""The public face of Ramify for Python programs: the client, its errors, and the models that callers meet.

    from ramify import Ramify

    with Ramify() as ramify:
        job = ramify.submit("How do we restore the orders database?")
        ramify.wait(job)
        print(ramify.result(job).summary.text)

Only re-exports. What is not in `__all__` may change without notice.
"""

from orchestrator.client import Ramify
from orchestrator.documents.corpus import Corpus, CorpusOverview, IngestFailures, SourceFreshness
from orchestrator.documents.feeding import PushedDocument
from orchestrator.documents.ingest import Progress
from orchestrator.growth import Growth
from orchestrator.intake import BatchFullError, BatchLine, Rejected, Submitted, bounded_lines, read_questions
from orchestrator.operating import Operator
from orchestrator.outage import Outage
from orchestrator.planning.plan_file import PlanFile
from orchestrator.records.causes import compared
from orchestrator.records.diff import AnswerDifference
from orchestrator.records.files import read_manifest
from orchestrator.records.replaying import ReplayStarted
from orchestrator.retries.dead_letters import DeadLetters, Replayed
from orchestrator.retries.retry import Retried
from orchestrator.sessions import KeptSession
from orchestrator.standing.questions import StandingQuestions
from orchestrator.webhooks.endpoints import Webhooks
from shared.errors import (
    BatchCancelledError,
    IngestUnderWayError,
    InputError,
    LaneFullError,
    NotAllowedError,
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
from shared.models.judgement import Judgement
from shared.models.manifest import Manifest
from shared.models.place import Place
from shared.models.replay import ReplayStage
from shared.models.request import ChatMessage, ContextType, Session, SessionIntent, TypedQuery
from shared.models.standing import Notify, StandingQuestion
from shared.models.status import BatchWhy, DeadLetter, Why
from shared.settings import Settings, load_settings

__all__ = [
    "Answer", "AnswerDifference", "BatchCancelledError", "BatchFullError", "BatchLine", "BatchPosition",
    "BatchSource", "BatchStatus", "BatchWhy", "Budget", "ChatMessage", "Citation", "ContextType", "Corpus",
    "CorpusOverview", "Cost", "DeadLetter", "DeadLetters", "DocumentOutcome", "DocumentSize", "DocumentStatus",
    "Facet", "Filters", "FindRequest", "FindResult", "Growth", "Hit", "IngestCounts", "IngestFailures",
    "IngestResult", "IngestUnderWayError", "InputError", "JobEvent", "JobList", "JobRequest", "JobStatus",
    "Judgement", "KeptSession", "Lane", "LaneFullError", "LeafResult", "LeafStatus", "LineKind", "LineRecord",
    "LineReport", "ListRow", "ListTable", "Manifest", "MatchedContext", "MergedHit", "Node", "NodeKind",
    "NotAllowedError", "NotFoundError", "NotRunningError", "Notify", "Operator", "Outage", "Outcome", "Passage",
    "PassageMark", "Place", "PlanEntry", "PlanFile", "Progress", "PushedDocument", "QueryResult", "Ramify",
    "RamifyError", "Rejected", "ReplayStage", "ReplayStarted", "Replayed", "Retried", "SearchMode", "Session",
    "SessionIntent", "SessionResult", "Settings", "SettingsError", "SourceFreshness", "Spending",
    "StandingQuestion", "StandingQuestions", "State", "StoredDocument", "Submitted", "Summary", "TypedQuery",
    "Webhooks", "Why", "bounded_lines", "compared", "load_settings", "read_manifest", "read_questions",
]  # fmt: skip
