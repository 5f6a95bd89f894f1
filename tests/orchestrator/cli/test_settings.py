"""`ramify config` and `--set`: every setting is listed, no secret is shown, values nest and convert."""

import json

import pytest
from typer.testing import CliRunner

from orchestrator.cli.invocation import parse_overrides
from orchestrator.cli.main import app
from orchestrator.cli.render.system import setting_rows
from shared.errors import InputError
from shared.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def _no_config_left(monkeypatch):
    monkeypatch.setenv("RAMIFY_CONFIG", "")  # `--config` sets it; this takes it back afterwards


def listed(*arguments):
    done = CliRunner().invoke(app, [*arguments, "config", "--json"])
    assert done.exit_code == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)["settings"]}


def test_given_all_settings_when_listed_then_each_has_a_name_a_default_and_a_meaning():
    rows = setting_rows(load_settings())
    names = [row.name for row in rows]
    assert len(names) == len(set(names))
    for section, field in Settings.model_fields.items():
        inner = getattr(field.default, "model_fields_set", None)
        expected = (
            [f"{section}.{name}" for name in type(field.default).model_fields] if inner is not None else [section]
        )
        assert all(any(f"{name}.".startswith(f"{wanted}.") for name in names) for wanted in expected)
    assert all(row.description and row.value == row.default for row in rows)


def test_given_secrets_when_listed_then_they_are_set_or_not_set():
    arguments = ("--set", "llm_api_key=sk-hidden", "--set", "redis.url=redis://u:hidden@h:1/0")
    done = CliRunner().invoke(app, [*arguments, "config"])
    rows = listed(*arguments)
    assert (rows["llm_api_key"]["value"], rows["redis.url"]["value"]) == ("set", "set")
    assert rows["store.api_key"]["value"] == "not set"
    assert "hidden" not in done.output


def test_given_a_login_in_a_url_when_listed_then_it_is_left_out():
    rows = listed("--set", "llm_base_url=http://user:hidden@host:8000/v1")
    assert rows["llm_base_url"]["value"] == "http://host:8000/v1"


def test_given_a_file_an_option_and_a_folder_when_listed_then_the_command_line_wins(tmp_path):
    file = tmp_path / "other.toml"
    file.write_text('data_dir = "from-file"\n[search]\nstrategy = "vec_only"\ncandidate_multiplier = 7\n')
    rows = listed("--config", str(file), "--data-dir", "here", "--set", "search.strategy=bm25_only")
    assert rows["search.strategy"]["value"] == "bm25_only"
    assert rows["search.candidate_multiplier"]["value"] == 7
    assert rows["data_dir"]["value"] == "here"


def test_given_assignments_when_parsed_then_they_nest_and_the_last_one_wins():
    found = parse_overrides(["search.strategy=a=b", "search.candidate_multiplier=3", "llm_model=", "search.strategy=c"])
    assert found == {"search": {"strategy": "c", "candidate_multiplier": "3"}, "llm_model": ""}
    assert parse_overrides(['search.source_boosts={"docs/": 1.2}']) == {"search": {"source_boosts": {"docs/": 1.2}}}


@pytest.mark.parametrize(
    "assignments", [["mode"], ["=x"], ["a..b=1"], [".a=1"], ["a=1", "a.b=2"], ["a.b=2", "a=1"], ["a.b={x}"]]
)
def test_given_what_is_no_assignment_when_parsed_then_the_option_is_named(assignments):
    with pytest.raises(InputError, match=r"^--set: "):
        parse_overrides(assignments)


def test_given_a_broken_json_value_when_parsed_then_the_value_is_not_repeated():
    with pytest.raises(InputError) as caught:
        parse_overrides(['llm_api_key={"sk-hidden'])
    assert "sk-hidden" not in str(caught.value)


def test_commands_of_standing_questions_are_shown_as_their_words() -> None:
    commands = {"tell": ["/bin/mail", "me"], "log": ["/usr/bin/logger"]}
    shown = setting_rows(load_settings(standing={"commands": commands}))
    (row,) = (row for row in shown if row.name == "standing.commands")
    assert row.value == "tell: /bin/mail me; log: /usr/bin/logger"
