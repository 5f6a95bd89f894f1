"""Settings: file, environment and command line, in the seed's names; mistakes name the setting."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from shared.errors import SettingsError
from shared.settings import load_settings
from shared.settings.sections import EmbeddingSettings, ModelSettings, RerankSettings


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str) -> None:
    Path("ramify.toml").write_text(text, encoding="utf-8")


def test_the_seeds_own_example_is_a_valid_file() -> None:
    write(
        """
        llm_api_key = "sk-..."
        llm_model = "gpt-4o-mini"
        llm_base_url = "https://api.example.com/v1"
        enable_summary = false
        [decomposition]
        max_level = 3
        max_total_leaves = 12
        max_children = 4
        [multi_query]
        search_depth = 2
        branch_limit = 3
        candidates_per_query = 50
        top_n_per_leaf = 5
        min_per_leaf = 3
        max_total_results = 20
        dedup_threshold = 0.98
        """
    )
    settings = load_settings()
    assert settings.has_llm
    assert settings.decomposition.max_children == 4


def test_command_line_over_environment_over_file(monkeypatch: pytest.MonkeyPatch) -> None:
    write("[decomposition]\nmax_level = 1\nmax_children = 2\nmax_total_leaves = 3")
    monkeypatch.setenv("RAMIFY_DECOMPOSITION__MAX_CHILDREN", "4")
    monkeypatch.setenv("RAMIFY_DECOMPOSITION__MAX_TOTAL_LEAVES", "5")
    limits = load_settings(decomposition={"max_total_leaves": 6}).decomposition
    assert (limits.max_level, limits.max_children, limits.max_total_leaves) == (1, 4, 6)


@pytest.mark.parametrize(
    ("text", "named", "fix"),
    [
        ("[decomposition]\nmax_levle = 2", "decomposition.max_levle", "did you mean 'max_level'"),
        ("[decomposition]\nmax_level = 0", "decomposition.max_level", "greater than or equal to 1"),
        ('[rerank]\nprovider = "fuzzy"', "rerank.provider", "'lexical'"),
        ('[search]\nstrategy = "defualt"', "search.strategy", "did you mean 'default'"),
        ('[[strategies.x]]\nstage = "lexcal"', "strategies.x, stage 1", "did you mean 'lexical'"),
        ('[[strategies.x]]\nstage = "lexical"\nweigth = 2', "strategies.x, stage 1 (lexical), weigth", "'weight'"),
        ('[[strategies.x]]\nstage = "lexical"', "strategies", "needs exactly one stage fusion"),
        ("[[strategies.x]]\nlimit = 3", "strategies.x, stage 1", "names no stage"),
        ('[strategies]\nx = "lexical"', "strategies.x", "write a list of stages"),
        ('[store]\nkind = "server"', "store.kind", "needs store.url"),
        (
            "[store.qdrant]\nwrite_consistency = 3\nreplicas = 2",
            "store.qdrant.write_consistency",
            "3 cannot be used: with replicas = 2",
        ),
        ("[redis]\nurl = 'localhost:6379'", "redis.url", "write redis://"),
        ('[flower]\nhost = "0.0.0.0"', "flower", "basic_auth"),
        ("= broken", "ramify.toml", "valid TOML"),
        ("nonsense = 1", "nonsense", "no such setting"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence_that_names_the_setting(text: str, named: str, fix: str) -> None:
    write(text)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert caught.value.field == named
    assert fix in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_misspelt_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMIFY_LLM_MODLE", "x")
    with pytest.raises(SettingsError, match="RAMIFY_LLM_MODLE"):
        load_settings()


def test_secrets_stay_out_of_errors_and_reprs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMIFY_LLM_API_KEY", "sk-very-secret")
    assert "very-secret" not in repr(load_settings())
    write("llm_api_kee = 'sk-very-secret'\n")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert "very-secret" not in str(caught.value)


def test_settings_are_frozen() -> None:
    with pytest.raises(Exception, match="frozen"):
        load_settings().llm_model = "x"  # type: ignore[misc]


@pytest.mark.parametrize("section", [EmbeddingSettings, RerankSettings])
def test_every_provider_has_its_traits(section: type[ModelSettings]) -> None:
    assert set(section.providers) == set(get_args(section.model_fields["provider"].annotation))
