"""The fingerprint of settings: what changes answers changes it, how it is written down does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.local import commands
from shared.settings import Settings, load_settings
from shared.settings.fingerprint import differences, fingerprint

_OWN = """
[search]
strategy = "mine"
source_boosts = { "docs/" = 1.2, "notes/" = 0.8 }
[[strategies.mine]]
stage = "lexical"
[[strategies.mine]]
stage = "fusion"
"""


def _of(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    folder.mkdir(exist_ok=True)
    (folder / "ramify.toml").write_text(text)
    monkeypatch.chdir(folder)
    return load_settings()


def test_the_same_file_says_the_same_from_anywhere_in_any_order_and_with_defaults_written_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = fingerprint(_of(_OWN, tmp_path / "one", monkeypatch))
    tables = _OWN.strip().split("[[", 1)
    reordered = f'data_dir = "../elsewhere"\n[[{tables[1]}\n[search]\ntrigrams = true\n'
    reordered += 'source_boosts = { "notes/" = 0.8, "docs/" = 1.20 }\nstrategy = "mine"\n[multi_query]\n'
    assert fingerprint(_of(reordered, tmp_path / "two", monkeypatch)) == plain
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAMIFY_CONFIG", str(tmp_path / "one" / "ramify.toml"))
    assert fingerprint(load_settings()) == plain


def test_a_pool_that_is_given_the_settings_as_environment_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = _of(_OWN, tmp_path, monkeypatch)
    (tmp_path / "ramify.toml").unlink()
    for name, value in commands.environment(given).items():
        monkeypatch.setenv(name, value)
    assert fingerprint(load_settings()) == fingerprint(given)


def test_what_decides_no_answer_is_left_out() -> None:
    one = load_settings(
        embedding={"provider": "endpoint", "model": "m", "base_url": "http://one.example/v1", "api_key": "k"}
    )
    two = load_settings(
        embedding={"provider": "endpoint", "model": "m", "base_url": "http://two.example/v1", "batch_size": 4},
        data_dir="/elsewhere", redis={"timeout_s": 9}, pools={"plan": 1}, cache={"enabled": False}, llm_timeout_s=3,
    )  # fmt: skip
    assert differences(fingerprint(one), fingerprint(two)) == ()
    assert "one.example" not in str(fingerprint(one))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"rerank": {"provider": "none"}}, "section rerank"),
        ({"search": {"excludes": ["old/"]}}, "section search"),
        ({"routing": {"types": {"enumeration": {"strategy": "deep"}}}}, "section routing"),
        ({"llm_model": "m", "llm_base_url": "http://llm.example/v1"}, "section llm"),
        ({"decomposition": {"max_total_leaves": 3}}, "section decomposition"),
        ({"strategies": {"deep": [{"stage": "lexical"}, {"stage": "fusion"}]}}, "strategy deep"),
        ({"strategies": {"new": [{"stage": "lexical"}, {"stage": "fusion"}]}}, "strategy new (which only they have)"),
    ],
)
def test_what_decides_answers_is_named(change: dict[str, object], part: str) -> None:
    assert differences(fingerprint(load_settings()), fingerprint(load_settings(**change))) == (part,)
