"""Settings: `ramify.toml`, then environment `RAMIFY_*`, then the command line. Built once, frozen, handed down."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as UnreadableSourceError

from shared.errors import SettingsError, encodable
from shared.settings import sections as s
from shared.settings.access import KeySettings, WebhookSettings
from shared.settings.broker import BrokerSettings
from shared.settings.faults import HIDDEN, environment_fault, first_fault
from shared.settings.routing import RoutingRow, RoutingSettings, RoutingTypes
from shared.settings.sections import AggregatorSettings, EnumerationSettings, LaneSettings
from shared.settings.server_url import ServerUrl
from shared.settings.services import (
    BudgetDefaults,
    FlowerSettings,
    McpSettings,
    Prices,
    ProviderSettings,
    RedisSettings,
    ServerSettings,
)
from shared.settings.sources import CONFIG_ENV, check_secrets, settings_file
from shared.settings.standing import StalenessSettings, StandingSettings
from shared.settings.store import StoreSettings
from shared.settings.strategies import Strategy, built_in, checked, known_names, named, plugin_strategies, with_post
from shared.settings.telemetry import TelemetrySettings
from shared.settings.verifying import GapSettings, SummarySettings, VerifierSettings

#: Threads of a pool that waits for model servers, and of one that computes.
_WAITING_THREADS, _THREADS = 64, 4

__all__ = ["CONFIG_ENV", "Settings", "config_file", "load_settings"]


class Settings(BaseSettings):
    """All settings. Names of the LLM stand at the top level."""

    model_config = SettingsConfigDict(
        env_prefix="RAMIFY_", env_nested_delimiter="__", frozen=True, extra="forbid", env_ignore_empty=True
    )

    data_dir: Path = Field(default=Path(".ramify"), description="folder of the embedded stack: store, Redis, logs")
    llm_api_key: SecretStr = Field(default=SecretStr(""), description="bearer token of the LLM server")
    llm_api_key_for: str = Field(default="", description="the only host that it may go to: docs/security.md")
    llm_model: str = Field(default="", description="model name; empty = no LLM")
    llm_base_url: ServerUrl | None = Field(default=None, description="OpenAI-compatible base, e.g. http://host/v1")
    llm_timeout_s: float = Field(default=60.0, gt=0, description="seconds for one LLM call")
    llm_attempts: int = Field(default=3, ge=1, le=10, description="tries of one LLM call on transient errors")
    llm_max_tokens: int = Field(default=2000, ge=16, description="longest reply")
    llm_prompt_tokens: int = Field(
        default=12_000, ge=1000, le=1_000_000,
        description="tokens of a prompt at most, as estimated; the model's context less llm_max_tokens",
    )  # fmt: skip
    llm_sources_share: float = Field(
        default=0.8, gt=0, le=0.95, description="share of llm_prompt_tokens that the sources of a summary may take"
    )
    enable_summary: bool = Field(default=False, description="write the summary with the LLM (else extractive)")
    decomposition: s.DecompositionSettings = s.DecompositionSettings()
    multi_query: s.MultiQuerySettings = s.MultiQuerySettings()
    binding: s.BindingSettings = s.BindingSettings()
    gaps: GapSettings = GapSettings()
    routing: RoutingSettings = RoutingSettings()
    aggregators: AggregatorSettings = AggregatorSettings()
    enumeration: EnumerationSettings = EnumerationSettings()
    search: s.SearchSettings = s.SearchSettings()
    embedding: s.EmbeddingSettings = s.EmbeddingSettings()
    rerank: s.RerankSettings = s.RerankSettings()
    summary: SummarySettings = SummarySettings()
    verifier: VerifierSettings = VerifierSettings()
    strategies: dict[str, Strategy] = Field(default_factory=dict, description="lists of stages: docs/strategies.md")
    cache: s.CacheSettings = s.CacheSettings()
    store: StoreSettings = StoreSettings()
    chunking: s.ChunkingSettings = s.ChunkingSettings()
    hierarchy: s.HierarchySettings = s.HierarchySettings()
    redis: RedisSettings = RedisSettings()
    broker: BrokerSettings = BrokerSettings()
    jobs: s.JobSettings = s.JobSettings()
    lanes: LaneSettings = LaneSettings()
    providers: ProviderSettings = ProviderSettings()
    pools: s.PoolSettings = s.PoolSettings()
    budget: BudgetDefaults = BudgetDefaults()
    prices: Prices = Prices()
    staleness: StalenessSettings = StalenessSettings()
    standing: StandingSettings = StandingSettings()
    flower: FlowerSettings = FlowerSettings()
    server: ServerSettings = ServerSettings()
    mcp: McpSettings = McpSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    keys: KeySettings = KeySettings()
    webhooks: WebhookSettings = WebhookSettings()

    @model_validator(mode="before")
    @classmethod
    def _with_built_in(cls, values: Any) -> Any:
        """The strategies that Ramify brings, and those of plugins, under those of the file."""
        given = values.get("strategies") or {} if isinstance(values, dict) else {}
        return (
            {**values, "strategies": {**built_in(), **plugin_strategies(), **given}}
            if isinstance(given, dict)
            else values
        )

    @model_validator(mode="after")
    def _strategies_work(self) -> Settings:
        for name, stages in self.strategies.items():
            checked(name, stages)
        self._known_strategy("search.strategy", self.search.strategy)
        for name in RoutingTypes.model_fields:
            self._row_works(name, self.routing.types.row(name))
        return self

    def _known_strategy(self, field: str, name: str) -> None:
        if name not in self.strategies:
            context = {"field": field, "name": name, "hint": known_names(self.strategies, name)}
            raise PydanticCustomError("unknown_strategy", "{hint}", context)

    def _row_works(self, name: str, row: RoutingRow) -> None:
        strategy = row.strategy or self.search.strategy
        self._known_strategy(f"routing.types.{name}.strategy", strategy)
        if row.post is None:
            return
        try:
            checked(strategy, with_post(self.strategies[strategy], row.post))
        except ValueError as error:
            context = {"field": f"routing.types.{name}.post", "fix": str(error)}
            raise PydanticCustomError("post_fault", "{fix}", context) from None

    def stages_of(self, name: str) -> Strategy:
        """The stages of a strategy; of `NAME/ROW` those of NAME with the post of that row of `routing.types`.

        Raises: InputError with the known names for one that is not known.
        """
        plain, _, row = name.partition("/")
        stages = named(self.strategies, plain)
        post = self.routing.types.row(row).post if row in RoutingTypes.model_fields else None
        return stages if post is None else with_post(stages, post)

    @property
    def has_llm(self) -> bool:
        """True when both the model and the server are named."""
        return bool(self.llm_model and self.llm_base_url)

    def threads(self, pool: str) -> int:
        """Threads of a pool. Those that wait for a server are cheap: its limits, not the pool, are to bound the calls.

        A rerank model in the process computes, and bounds itself by its pool.
        """
        rerank = self.rerank.traits
        computes = rerank.needs_model and not (rerank.server or rerank.llm)
        # With an LLM the rerank pool also reads the answers that leaves are bound to.
        waits = not computes and (rerank.server or rerank.llm or self.has_llm) if pool == "rerank" else self.has_llm
        threads: int = getattr(self.pools, pool, 1)
        return threads or (_WAITING_THREADS if waits else _THREADS)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Command line over environment over file."""
        file = settings_file()
        check_secrets((init_settings(), env_settings()), file)
        own = (init_settings, env_settings)
        return (*own, InitSettingsSource(settings_cls, dict(file.values))) if file else own


def config_file() -> Path | None:
    """The file that the settings are read from. Raises: SettingsError, as `settings_file`."""
    found = settings_file()
    return found.path if found else None


def load_settings(**overrides: Any) -> Settings:
    """Build the settings once. `overrides` come from the command line.

    Raises: SettingsError naming the first setting at fault, its value and the fix.
    """
    _refuse_unknown_environment()
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise first_fault(error, Settings) from None
    except UnreadableSourceError as error:  # raised before any validation
        raise environment_fault(error) from None
    except RecursionError:  # by a variable: the file has been read once, and `--set` reads its own values
        raise SettingsError(_deepest_variable(), HIDDEN, "it is nested too deeply: write a table or a list") from None


def _refuse_unknown_environment() -> None:
    """pydantic-settings ignores unknown variables; a misspelt RAMIFY_ name must not pass silently."""
    known = {f"RAMIFY_{name.upper()}" for name in Settings.model_fields} | {CONFIG_ENV}
    for name, value in os.environ.items():
        if not name.startswith("RAMIFY_") or name.startswith("RAMIFY_TEST_"):
            continue
        if not encodable(value):
            raise SettingsError(name, HIDDEN, "it is no UTF-8: write it anew")
        if name.split("__", 1)[0].upper() not in known:
            raise SettingsError(name, HIDDEN, "no such setting; `ramify config` lists them")


def _deepest_variable() -> str:
    """The RAMIFY_ variable with the most brackets."""
    ours = {name: value for name, value in os.environ.items() if name.startswith("RAMIFY_")}
    return max(ours, key=lambda name: ours[name].count("[") + ours[name].count("{"), default="a setting")
