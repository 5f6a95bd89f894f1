"""The sections of `ramify.toml`. Defaults live here and nowhere else."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import ClassVar, Literal, NamedTuple, Self

from pydantic import (
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from shared.models.base import Model
from shared.models.degraded import OnOutage
from shared.plugins import AGGREGATORS, plugins
from shared.settings.server_url import ServerUrl


def nearest(given: str, names: Iterable[str]) -> str:
    """The end of a sentence, like ", did you mean 'deep'?", or nothing."""
    near = get_close_matches(given, list(names), n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def known(given: str, names: Collection[str], kind: str) -> str:
    """`given`. Raises: ValueError with the nearest and the known names when it is none of them."""
    if given in names:
        return given
    raise ValueError(f"there is no such {kind}{nearest(given, names)}; {kind}s: {', '.join(names)}")


class SettingsSection(Model):
    """A frozen table of settings; a misspelt name is refused."""


class DecompositionSettings(SettingsSection):
    """How a question branches."""

    max_level: int = Field(default=3, ge=1, le=6, description="deepest level of the tree; 1 = no recursion")
    max_total_leaves: int = Field(default=12, ge=1, le=64, description="hard cap, the original question included")
    max_children: int = Field(default=5, ge=1, le=10, description="children of one node")


class MultiQuerySettings(SettingsSection):
    """How leaves are searched, reranked and merged."""

    search_depth: int = Field(default=2, ge=1, le=4, description="stage neighbours: layers of a leaf's search")
    branch_limit: int = Field(default=3, ge=1, le=20, description="stage neighbours: hits that seed a layer")
    candidates_per_query: int = Field(default=50, ge=1, le=500, description="candidates that a leaf hands to rerank")
    top_n_per_leaf: int = Field(default=5, ge=1, le=100, description="results kept per leaf after rerank")
    min_per_leaf: int = Field(default=3, ge=0, le=50, description="quota per leaf in the merge, lowered if need be")
    max_total_results: int = Field(default=20, ge=1, le=200, description="cap of the merged results")
    dedup_threshold: float = Field(default=0.98, gt=0, le=1, description="similarity from which two hits are one")


class BindingSettings(SettingsSection):
    """How a subquestion gets what others found for it."""

    passages: int = Field(
        default=3, ge=1, le=20, description="best passages of a leaf that its answer is looked for in"
    )
    names: int = Field(default=6, ge=1, le=20, description="names that a subquestion is searched with, each on its own")
    read: bool = Field(default=True, description="with an LLM: read the answer; names stand in where it finds none")


class SearchSettings(SettingsSection):
    """What holds for every search, whatever its strategy."""

    strategy: str = Field(default="default", description="strategy of questions that name none")
    trigrams: bool = Field(default=True, description="ingest: index trigrams for typo-tolerant keyword search")
    candidate_multiplier: int = Field(default=5, ge=1, le=50, description="find: candidates per wanted result")
    source_boosts: dict[str, float] = Field(default_factory=dict, description='path prefix = factor, "docs/" = 1.2')
    excludes: tuple[str, ...] = Field(default=(), description='path prefixes never shown, e.g. ["notes/drafts/"]')
    exclude_folders: tuple[str, ...] = Field(
        default=("archive/", "test/"),
        description="folders anywhere below an ingested one that a search leaves out unless its path filter names them",
    )

    @field_validator("exclude_folders")
    @classmethod
    def _folders(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if bad := next((name for name in value if not name.strip("/") or name.startswith("/")), None):
            raise ValueError(f'{bad!r} is no name of a folder: write "archive/"')
        return tuple(f"{name.rstrip('/')}/" for name in value)


class ProviderTraits(NamedTuple):
    """What other modules need to know of a provider of embeddings or of relevance scores.

    needs_model: `model` must be set. server: calls a server of its own, so `base_url` must be set too; it is paid for,
    behind a gate, checked by `ramify doctor`. llm: calls the LLM server, with `model` or else llm_model, and is paid
    for as the LLM. trusted: its scores judge meaning; a high one is enough to call a hit an answer.
    """

    needs_model: bool = False
    server: bool = False
    llm: bool = False
    trusted: bool = False

    @property
    def asks_model(self) -> bool:
        """Whether a call of it is worth keeping: rules are asked again for less than the cache costs."""
        return self.needs_model or self.llm


class ModelSettings(SettingsSection):
    """The common part of the sections that choose a provider; each has its providers' traits in `providers`."""

    providers: ClassVar[dict[str, ProviderTraits]]
    provider: str
    model: str = Field(default="", description="model name; for fastembed with `path`, a name of your own")
    path: str = Field(default="", description="fastembed: local model folder, for machines without a model hub")
    base_url: ServerUrl | None = None
    api_key: SecretStr = Field(default=SecretStr(""), description="endpoint: bearer token")
    api_key_for: str = Field(default="", description="the only host that it may go to: docs/security.md")

    @property
    def traits(self) -> ProviderTraits:
        """Those of the chosen provider."""
        return self.providers[self.provider]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.traits.server and (self.base_url is None or not self.model):
            raise ValueError(f'provider "{self.provider}" needs base_url and model')
        if self.traits.needs_model and not self.model:
            raise ValueError(f'provider "{self.provider}" needs model (with path: a name of your own)')
        return self


class EmbeddingSettings(ModelSettings):
    """The dense encoder. `none` searches with BM25 alone and needs no model."""

    providers: ClassVar = {
        "none": ProviderTraits(),
        "fastembed": ProviderTraits(needs_model=True),
        "endpoint": ProviderTraits(needs_model=True, server=True),
    }
    provider: Literal["none", "fastembed", "endpoint"] = Field(default="none", description="none, fastembed, endpoint")
    base_url: ServerUrl | None = Field(default=None, description="endpoint: base of /embeddings, e.g. http://host/v1")
    dim: int = Field(default=0, ge=0, description="vector size; 0 = ask the model")
    query_prefix: str = Field(default="", description="text put before queries")
    passage_prefix: str = Field(default="", description="text put before passages")
    batch_size: int = Field(default=32, ge=1, le=1024, description="texts per call; fastembed int8 models want 1")
    timeout_s: float = Field(default=30.0, gt=0, description="seconds for one call")
    threads: int = Field(default=0, ge=0, le=64, description="fastembed: threads of one call; 0 = its own choice")
    languages: tuple[str, ...] = Field(
        default=(), description='languages the model reads, e.g. ["en"]; empty = known by its name, or measured'
    )


class RerankSettings(ModelSettings):
    """The reranker of leaves and of the merged pool."""

    providers: ClassVar = {
        "lexical": ProviderTraits(),
        "endpoint": ProviderTraits(needs_model=True, server=True, trusted=True),
        "fastembed": ProviderTraits(needs_model=True, trusted=True),
        "chat": ProviderTraits(llm=True),
        "none": ProviderTraits(),
    }
    provider: Literal["lexical", "endpoint", "fastembed", "chat", "none"] = Field(
        default="lexical",
        description="lexical, endpoint (/rerank), fastembed (cross-encoder), chat (the LLM scores), none",
    )
    base_url: ServerUrl | None = Field(default=None, description="endpoint: base of /rerank, e.g. http://host/v1")
    timeout_s: float = Field(default=30.0, gt=0, description="seconds for one call")
    max_documents: int = Field(default=100, ge=1, description="documents of one call; more go in several")
    attempts: int = Field(default=3, ge=1, le=10, description="tries of one call on transient errors")
    window_chars: int = Field(default=2000, ge=200, description="longer chunks are scored in windows, the best counts")
    batch_ms: float = Field(default=4.0, ge=0, le=1000, description="endpoint, fastembed: gather calls for this long")
    min_relevance: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="score under which nothing counts as found; 0: off; `ramify eval` tells yours, 0.1 suits lexical",
    )


def reranker_traits(name: str | None) -> ProviderTraits:
    """Traits by a reranker's name, like "endpoint:m (logits)"; none are set for one that failed or is not known."""
    return RerankSettings.providers.get((name or "").partition(":")[0], ProviderTraits())


class CacheSettings(SettingsSection):
    """What is computed once and kept in Redis."""

    enabled: bool = Field(default=True, description="reuse LLM replies, embeddings, reranks and leaves across jobs")
    ttl_s: int = Field(default=86_400, ge=1, description="seconds that an entry is kept")
    leaves: bool = Field(
        default=True,
        description="reuse whole leaves while the index is unchanged, where a model or a Qdrant server finds them",
    )
    max_mb: int = Field(default=256, ge=0, description="MB of all entries; the oldest go for new ones; 0 = no limit")
    wait_s: float = Field(default=30.0, gt=0, description="seconds to wait for another worker's identical call")


class ChunkingSettings(SettingsSection):
    """How documents are cut. Sizes are in characters; a CJK character counts as two."""

    target_chars: int = Field(default=2000, ge=200, le=8000, description="aimed size of a chunk")
    max_chars: int = Field(default=4000, ge=400, le=16_000, description="size from which a block is split")
    max_document_bytes: int = Field(default=10_000_000, ge=1000, description="larger files are reported and skipped")
    kinds: dict[str, str] = Field(
        default={"memories/": "memory", "memory/": "memory", "skills/": "skill", "resources/": "resource"},
        description="kind of what stands in a folder (the root or right below it) and names none itself",
    )

    @model_validator(mode="after")
    def _ordered(self) -> ChunkingSettings:
        if self.max_chars < self.target_chars:
            raise ValueError("max_chars must not be below target_chars")
        return self


class JobSettings(SettingsSection):
    """Lifetimes and bounds of jobs."""

    deadline_s: float = Field(
        default=120.0, gt=0, le=86_400, description="interactive: seconds from a job's turn to its answer"
    )
    batch_deadline_s: float = Field(default=3600.0, gt=0, le=86_400, description="the same for batch jobs")
    ingest_deadline_s: float = Field(default=86_400.0, gt=0, le=86_400, description="the same for ingests")
    queue_limit_s: float = Field(
        default=259_200.0, gt=0, le=2_592_000,
        description="seconds that a job may wait for its turn before it expires; half of ttl_s at most",
    )  # fmt: skip
    ttl_s: int = Field(default=604_800, ge=60, description="seconds that a job and its results are kept")
    keep: Literal["candidates", "full", "answer", "summary"] = Field(
        default="full",
        description="of a job that is done: full; candidates (also what each leaf chose from, for a replay of the "
        "rerank); answer (without what each leaf found); summary (also without the texts of the results). What a retry "
        "may go on with is kept whole",
    )
    max_events: int = Field(default=500, ge=50, description="entries kept in a job's event stream")
    redrive_after_s: float = Field(
        default=30.0,
        ge=1,
        description="seconds after which another worker may take over a claim to plan, merge or summarise; "
        "also between two checks of an admitted job that is missing from the list of jobs under way",
    )

    def queue_limit_of(self, own_s: float | None) -> float:
        """Seconds that a job may wait which asks for `own_s`: its keys outlive the wait."""
        return min(own_s or self.queue_limit_s, self.ttl_s / 2)


class PoolSettings(SettingsSection):
    """Threads of each worker pool that `ramify up` starts."""

    plan: int = Field(default=0, ge=0, le=256, description="planning; 0 = 64 where an LLM is called, else 4")
    search: int = Field(default=4, ge=1, le=256, description="search and index: owns the embedded store")
    rerank: int = Field(default=0, ge=0, le=256, description="0 = 64 where a rerank server or LLM is called, else 4")
    merge: int = Field(default=0, ge=0, le=256, description="merge and summary; 0 = as plan")
    task_events: bool = Field(default=True, description="send the task events that Flower shows")


class HierarchySettings(SettingsSection):
    """Abstracts and overviews of directories, for the search that goes from directory to directory."""

    enabled: bool = Field(default=True, description="ingest: give every directory an abstract and an overview")
    writer: Literal["auto", "extractive"] = Field(
        default="auto", description="auto: the LLM where there is one; extractive: the documents' own sentences"
    )
    sample: int = Field(default=32, ge=1, le=200, description="documents, and subdirectories, that are read of each")
    llm_budget_s: float = Field(default=120.0, gt=0, le=240, description="seconds of one ingest for the LLM")
    llm_parallel: int = Field(default=4, ge=1, le=32, description="directories that the LLM describes at a time")


class EnumerationSettings(SettingsSection):
    """The scan of everything that fits a question, shared out over leaves."""

    shard_documents: int = Field(default=2000, ge=10, le=100_000, description="documents that one leaf reads")
    max_shards: int = Field(
        default=64, ge=1, le=96, description="most leaves of one scan; larger corpora: larger leaves"
    )
    rows: int = Field(default=1000, ge=0, le=10_000, description="rows in the answer; `result --rows` has them all")
    page_rows: int = Field(default=200, ge=10, le=2000, description="rows of one page in the job store")
    max_values: int = Field(
        default=5000, ge=10, le=100_000, description="tags, kinds and paths that a question may name"
    )
    llm_rows: int = Field(default=100, ge=0, le=2000, description="rows of a leaf whose missing columns the LLM reads")
    llm_batch: int = Field(default=10, ge=1, le=50, description="rows of one call to the LLM")


class LaneSettings(SettingsSection):
    """Jobs wait in a queue per lane and tenant, and tenants take turns; how many are under way is bounded."""

    max_waiting_interactive: int = Field(default=10_000, ge=1, description="interactive jobs that may wait in all")
    max_waiting_batch: int = Field(default=250_000, ge=1, description="batch jobs that may wait in all")
    tenant_share: float = Field(default=0.9, gt=0, le=1, description="share of these that one tenant may hold")
    under_way: int = Field(
        default=128, ge=2, le=100_000,
        description="jobs of a lane that may be under way; one tenant alone gets half, so that others find room",
    )  # fmt: skip
    max_deaths: int = Field(
        default=3,
        ge=1,
        le=20,
        description="workers that die at one piece of work before it is retired; beside others three times as many",
    )
    on_outage_interactive: OnOutage = Field(
        default=OnOutage.DEGRADE,
        description="interactive jobs whose LLM, embedding, rerank or Qdrant server fails: wait for it, or degrade "
        "(go on without it)",
    )
    on_outage_batch: OnOutage = Field(
        default=OnOutage.WAIT, description="the same for batch jobs; they wait no longer than their deadline allows"
    )


class SimpleAggregator(SettingsSection):
    """The merged results and their summary."""

    sentences: int = Field(default=10, ge=1, le=50, description="most sentences of an extractive summary")


class ReasoningAggregator(SettingsSection):
    """Steps with their evidence, then the conclusion."""

    sentences: int = Field(default=10, ge=1, le=50, description="most sentences of an extractive summary")
    passages: int = Field(default=2, ge=1, le=3, description="passages that carry a step")
    hops: int = Field(default=3, ge=1, le=6, description="longest way from passage to passage that is shown")


class EnumerationAggregator(SettingsSection):
    """The table of what fits, and how much was looked through for it."""

    rows: int = Field(default=20, ge=1, le=200, description="rows written into the answer's text")


class AggregatorSettings(SettingsSection):
    """What an answer is made by, each with its options; `routing.types` says which.

    Tables of other names are options for the aggregators of plugins, which check them again.
    """

    model_config = ConfigDict(extra="allow")

    simple: SimpleAggregator = SimpleAggregator()
    reasoning: ReasoningAggregator = ReasoningAggregator()
    enumeration: EnumerationAggregator = EnumerationAggregator()

    @model_validator(mode="after")
    def _of_plugins(self) -> AggregatorSettings:
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
