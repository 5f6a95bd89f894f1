"""A secret goes only to a server named by a source trusted as much: the working folder's file may be anybody's."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.local import background
from shared.errors import RamifyError, SettingsError
from shared.providers.gates import Gate
from shared.providers.http import JsonClient
from shared.settings import load_settings
from shared.settings.sources import destinations
from tests.fakes.openai_server import FakeOpenAI

LLM = 'llm_model = "m"\nllm_base_url = "{}"\n'
EVIL = "http://evil.example/v1"
ENDPOINT = '[{}]\nprovider = "endpoint"\nmodel = "m"\nbase_url = "http://evil.example/v1"\n'
SENTINELS = '[redis]\nsentinels = ["evil.example:26379"]\nsentinel_master = "m"\n'
OTHER_UID = 12_345

#: A file in the working folder, the variables of the user, the setting that names the server.
ATTACKS = {
    "llm": (LLM.format(EVIL), {"RAMIFY_LLM_API_KEY": "sk-1"}, "llm_base_url"),
    "llm, for a host that the file chose": (
        'llm_api_key_for = "evil.example"\n' + LLM.format("https://evil.example/v1"),
        {"RAMIFY_LLM_API_KEY": "sk-1"},
        "llm_base_url",
    ),
    "llm, empty variables": (
        LLM.format(EVIL),
        {"RAMIFY_LLM_API_KEY": "sk-1", "RAMIFY_LLM_BASE_URL": "", "RAMIFY_LLM_API_KEY_FOR": ""},
        "llm_base_url",
    ),
    "embedding": (ENDPOINT.format("embedding"), {"RAMIFY_EMBEDDING__API_KEY": "sk-1"}, "embedding.base_url"),
    "embedding, as JSON": (
        ENDPOINT.format("embedding"),
        {"RAMIFY_EMBEDDING": '{"api_key": "sk-1"}'},
        "embedding.base_url",
    ),
    "rerank": (ENDPOINT.format("rerank"), {"RAMIFY_RERANK__API_KEY": "sk-1"}, "rerank.base_url"),
    "qdrant": (
        '[store]\nkind = "server"\nurl = "http://evil.example:6333"\n',
        {"RAMIFY_STORE__API_KEY": "sk-1"},
        "store.url",
    ),
    "the password of the Redis behind Sentinels": (
        SENTINELS,
        {"RAMIFY_REDIS__URL": "redis://:sk-1@redis.example:6379/0"},
        "redis.sentinels",
    ),
    "the password of the Sentinels": (SENTINELS, {"RAMIFY_REDIS__SENTINEL_PASSWORD": "sk-1"}, "redis.sentinels"),
}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def planted(text: str, name: str = "ramify.toml") -> Path:
    file = Path(name)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o644)
    return file


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_file_in_the_working_folder_does_not_send_a_secret_of_the_environment(
    attack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, variables, named = ATTACKS[attack]
    planted(text)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match="set both in one place") as caught:
        load_settings()
    assert caught.value.field == named
    assert "sk-1" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("attack", ATTACKS)
def test_nor_one_of_the_command_line(attack: str) -> None:
    text, variables, named = ATTACKS[attack]
    planted(text)
    given: dict[str, object] = {}
    for name, value in variables.items():
        if name == "RAMIFY_EMBEDDING":
            given["embedding"] = {"api_key": "sk-1"}
        elif value:
            *section, setting = name.removeprefix("RAMIFY_").lower().split("__")
            given |= {section[0]: {setting: value}} if section else {setting: value}
    with pytest.raises(SettingsError, match="set both in one place") as caught:
        load_settings(**given)
    assert caught.value.field == named


@pytest.mark.parametrize(
    ("permitted", "url", "goes"),
    [
        ("api.example", "https://api.example/v1", True),
        ("api.example", "http://api.example/v1", False),  # readable on the way
        ("api.example", "https://api.example:444/v1", False),
        ("api.example", "https://api.example.evil/v1", False),
        ("api.example", r"https://api.example\.evil.example/v1", True),  # as it is called: the rest is a path
        ("api.example", "https://api.example@evil.example/v1", False),
        ("api.example", "https://evil.example/api.example", False),
        ("localhost:8000", "http://localhost:8000/v1", True),
        ("localhost:8000", "http://localhost:8001/v1", False),
        ("https://api.example:8000", "http://api.example:8000/v1", False),
        ("https://api.example:8000", "https://API.example:8000/v1", True),
    ],
)
def test_a_key_goes_to_the_host_that_its_owner_names(
    permitted: str, url: str, goes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(LLM.format(url.replace("\\", "\\\\")))
    monkeypatch.setenv("RAMIFY_LLM_API_KEY", "sk-1")
    monkeypatch.setenv("RAMIFY_LLM_API_KEY_FOR", permitted)
    if goes:
        assert load_settings().has_llm
        return
    with pytest.raises(SettingsError, match="llm_api_key_for") as caught:
        load_settings()
    assert caught.value.field == "llm_base_url"


def test_a_key_keeps_to_its_host_whoever_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"KEY": "sk-1", "KEY_FOR": "api.example"}.items():
        monkeypatch.setenv(f"RAMIFY_LLM_API_{name}", value)
    with pytest.raises(SettingsError, match="llm_api_key_for"):
        load_settings(llm_base_url=EVIL, llm_model="m")


def test_what_one_source_names_together_goes_together(monkeypatch: pytest.MonkeyPatch) -> None:
    planted('llm_api_key = "sk-1"\n' + LLM.format("http://a.example/v1"))
    assert load_settings().has_llm
    assert load_settings(llm_base_url="http://b.example/v1").has_llm
    monkeypatch.setenv("RAMIFY_LLM_API_KEY", "sk-2")
    monkeypatch.setenv("RAMIFY_LLM_BASE_URL", "http://c.example/v1")
    assert str(load_settings().llm_base_url) == "http://c.example/v1"


def test_a_file_that_the_user_names_is_the_users_own_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMIFY_LLM_API_KEY", "sk-1")
    monkeypatch.setenv("RAMIFY_CONFIG", str(planted(LLM.format(EVIL), "mine.toml")))
    assert load_settings().has_llm


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
@pytest.mark.parametrize("named", [False, True])
def test_a_file_that_others_can_write_is_refused(mode: int, named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    file = planted("llm_timeout_s = 1\n")
    file.chmod(mode)
    if named:
        monkeypatch.setenv("RAMIFY_CONFIG", str(file))
    with pytest.raises(SettingsError, match=r"chmod go-w .*ramify\.toml") as caught:
        load_settings()
    assert "owner" in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
@pytest.mark.parametrize("named", [False, True])
def test_a_file_of_another_user_is_refused(named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    file = planted("llm_timeout_s = 1\n")
    if named:
        monkeypatch.setenv("RAMIFY_CONFIG", str(file))
    assert load_settings().llm_timeout_s == 1
    os.chown(file, OTHER_UID, -1)
    with pytest.raises(SettingsError, match=rf"{OTHER_UID}.*take a copy") as caught:
        load_settings()
    assert str(file.absolute()) in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away")
@pytest.mark.parametrize("named", [False, True])
def test_a_file_that_others_can_exchange_is_refused(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "inner").mkdir(parents=True)
    (theirs / "inner" / "ramify.toml").write_text("llm_timeout_s = 1\n", encoding="utf-8")
    (tmp_path / "link").symlink_to(theirs)  # a link of root's that leads through another user's folder
    monkeypatch.chdir(theirs / "inner")
    if named:
        monkeypatch.setenv("RAMIFY_CONFIG", str(tmp_path / "link" / "inner" / "ramify.toml"))
    assert load_settings().llm_timeout_s == 1
    for mode, uid in ((0o757, 0), (0o775, 0), (0o755, OTHER_UID)):
        os.chown(theirs, uid, OTHER_UID)
        theirs.chmod(mode)
        with pytest.raises(SettingsError, match="theirs"):
            load_settings()
    theirs.chmod(0o1777)
    os.chown(theirs, 0, 0)
    assert load_settings().llm_timeout_s == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="gives links away")
def test_a_link_of_another_user_is_refused_as_its_file_would_be() -> None:
    Path("ramify.toml").symlink_to(planted("llm_timeout_s = 1\n", "other.toml").absolute())
    assert load_settings().llm_timeout_s == 1
    os.chown("ramify.toml", OTHER_UID, -1, follow_symlinks=False)
    with pytest.raises(SettingsError, match=str(OTHER_UID)):
        load_settings()


def test_every_host_that_a_key_goes_to_is_named() -> None:
    assert destinations(load_settings()) == ()
    settings = load_settings(
        llm_model="m",
        llm_base_url="https://user:pw@api.example/v1",
        llm_api_key="sk-1",
        embedding={"provider": "endpoint", "model": "m", "base_url": "http://127.0.0.1:9/v1"},
        rerank={"provider": "endpoint", "model": "m", "base_url": "http://[::1]:9/v1", "api_key": "sk-2"},
    )
    assert destinations(settings) == (
        "llm_api_key goes to https://api.example",
        "rerank.api_key goes to http://[::1]:9",
    )


def test_the_log_of_a_process_names_the_server_of_a_key_once(caplog: pytest.LogCaptureFixture) -> None:
    url, providers = "http://127.0.0.1:9/v1", load_settings().providers
    caplog.set_level(logging.INFO)
    for key in ("", "sk-1", "sk-2"):
        JsonClient(url, SecretStr(key), Gate("llm", url, providers), 1).close()
    named = [record.getMessage() for record in caplog.records if "API key" in record.getMessage()]
    assert named == ["the API key of the LLM server at 127.0.0.1:9 is sent there"]


def test_up_names_the_server_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    planted('llm_api_key = "sk-1"\n' + LLM.format("http://a.example/v1"))

    def start(_: object) -> None:
        raise RamifyError("enough")

    monkeypatch.setattr(background, "start", start)
    shown = CliRunner().invoke(app, ["up", "-d"]).stderr
    assert shown.splitlines() == ["llm_api_key goes to http://a.example", "error: enough"]


def test_a_command_that_asks_the_llm_by_itself_names_its_server() -> None:
    with FakeOpenAI(api_key="sk-1") as fake:
        planted('llm_api_key = "sk-1"\n' + LLM.format(fake.url))
        shown = CliRunner().invoke(app, ["route", "What is it?", "--llm"]).stderr
        assert f"llm_api_key goes to {fake.url.removesuffix('/v1')}" in shown.splitlines()
        assert "goes to" not in CliRunner().invoke(app, ["route", "What is it?", "--no-llm"]).stderr


@pytest.mark.parametrize(
    "text",
    [
        'LLM_BASE_URL = "http://127.0.0.1:9/v1"',
        '[Embedding]\nbase_url = "http://127.0.0.1:9"',
        '[REDIS]\nsentinels = "x"',
    ],
)
def test_given_a_name_in_capitals_then_the_file_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMIFY_LLM_API_KEY", "sk-secret")
    planted(text)
    with pytest.raises(SettingsError, match="write it in small letters"):
        load_settings()
