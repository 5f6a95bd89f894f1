"""The table of ways: data that Ramify brings, changed key by key, any mistake refused at start in one sentence."""

from pathlib import Path

import pytest

from shared.errors import InputError, SettingsError
from shared.settings import load_settings
from shared.settings.routing import PLANNERS, RoutingTypes, built_in_rows


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(text: str) -> None:
    Path("ramify.toml").write_text(text, encoding="utf-8")


def test_given_no_file_when_loaded_then_every_type_has_the_row_that_is_shipped_as_data():
    types = load_settings().routing.types
    assert set(built_in_rows()) == set(RoutingTypes.model_fields)
    assert {name: types.row(name).planner for name in built_in_rows()} == {
        name: row["planner"] for name, row in built_in_rows().items()
    }


def test_given_one_key_when_loaded_then_the_others_of_its_row_stay():
    write('[routing.types.multi_hop]\naggregator = "simple"')
    row = load_settings().routing.types.multi_hop
    assert (row.planner, row.strategy, row.aggregator) == ("nested", "multihop", "simple")


def test_given_the_environment_when_loaded_then_it_goes_before_the_file(monkeypatch):
    write('[routing.types.unsure]\nstrategy = "deep"\nplanner = "original"')
    monkeypatch.setenv("RAMIFY_ROUTING__TYPES__UNSURE__STRATEGY", "hybrid")
    row = load_settings().routing.types.unsure
    assert (row.strategy, row.planner) == ("hybrid", "original")


def test_given_post_when_loaded_then_names_and_tables_are_taken_and_replace_what_stands_behind_the_rerank():
    write('[routing.types.simple_rule]\npost = ["dedup", { stage = "mmr", relevance = 0.5 }]')
    settings = load_settings()
    stages = settings.stages_of("default/simple_rule")
    plain = [stage.stage for stage in settings.strategies["default"]]
    assert [stage.stage for stage in stages] == [*plain[: plain.index("rerank") + 1], "dedup", "mmr"]
    assert stages[-1].relevance == 0.5
    assert settings.stages_of("default") == settings.strategies["default"]


def test_given_an_empty_post_when_loaded_then_nothing_stands_behind_the_rerank():
    settings = load_settings(routing={"types": {"multi_hop": {"post": []}}})
    assert settings.stages_of("multihop/multi_hop")[-1].stage == "rerank"


def test_given_a_name_that_no_strategy_has_when_looked_up_then_the_known_ones_are_told():
    with pytest.raises(InputError, match="known strategies"):
        load_settings().stages_of("nowhere/multi_hop")


@pytest.mark.parametrize(
    ("text", "field", "parts"),
    [
        ('[routing.types.multi_hop]\nplanner = "nestd"', "routing.types.multi_hop.planner", ("'nestd'", "'nested'")),
        ('[routing.types.aspects]\nplanner = "x"', "routing.types.aspects.planner", PLANNERS),
        ('[routing.types.aspects]\nplanner = "request"', "routing.types.aspects.planner", ("no such planner",)),
        ('[routing.types.unsure]\nstrategy = "hybird"', "routing.types.unsure.strategy", ("'hybrid'", "two_pass")),
        (
            '[routing.types.none]\naggregator = "simpel"', "routing.types.none.aggregator",
            ("'simple'", "reasoning", "enumeration"),
        ),
        ('[routing.types.multihop]\nplanner = "none"', "routing.types.multihop", ("'multi_hop'", "enumeration")),
        ('[routing.types.none]\nplaner = "none"', "routing.types.none.planer", ("'planner'", "aggregator")),
        ('[routing.types.none]\npost = ["mmmr"]', "routing.types.none.post, stage 1", ("'mmr'", "dedup")),
        (
            '[routing.types.none]\npost = [{stage = "mmr", relevanc = 1}]',
            "routing.types.none.post, stage 1 (mmr), relevanc", ("'relevance'", "limit"),
        ),
        ('[routing.types.none]\npost = ["mmr", "edges"]', "routing.types.none.post", ("edges needs the store",)),
        ('[routing.types.none]\npost = ["rerank"]', "routing.types.none.post", ("more than one stage rerank",)),
        ('[routing.types.none]\npost = ["lexical"]', "routing.types.none.post", ("must stand before fusion",)),
        ('[routing.types]\nnone = "none"', "routing.types.none", ("write a table",)),
        ("[routing]\ntypes = 3", "routing.types", ("write a table",)),
        ('[routing.types.none]\npost = "mmr"', "routing.types.none.post", ("write a list",)),
        ('[[strategies.adaptive]]\nstage = "lexical"', "strategies", ("'adaptive'", "choose another name")),
        ('[[strategies.none]]\nstage = "lexical"', "strategies", ("'none'", "choose another name")),
    ],
)  # fmt: skip
def test_given_a_mistake_in_the_table_when_loaded_then_one_sentence_names_field_value_and_fix(text, field, parts):
    write(text)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert caught.value.field == field
    assert all(part in str(caught.value) for part in parts)
    assert "\n" not in str(caught.value)
