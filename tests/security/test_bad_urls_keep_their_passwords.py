"""A URL that cannot be used is refused in one sentence that repeats no part of its login, whatever its fault."""

from __future__ import annotations

import json
import logging
import traceback

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from shared.connections.connect import connect
from shared.errors import RamifyError, SettingsError
from shared.settings import load_settings
from shared.tasks.app import make_app

PASSWORD = "pw-secret"
#: Every fault that a URL may have, with the password where people put it.
BAD = (
    "htp://user:{}@host/v1",
    "user:{}@host:6379",
    "//user:{}@host",
    "http://user:{}@host:99999/v1",
    "http://user:{}@host:port/v1",
    "http://user:{}@/v1",
    "http://user:a/{}@host/v1",
    "http://user:a#{}@host/v1",
    "http://user:{}@[::1/v1",
    "http://us er:{}@ho st/v1",
    "redis://user:{}@host:99999",
    "rediss://user:{}@host:99999/0",
    "redis://user:{}@host:port",
    "redis://user:{}/x@host:6379",
    "redis://user:a/{}@host:6379",
    "redis://:{}@[::1:6379",
    "redis://user:12/{}@host:6379",
    "redis://user:12#{}@host:6379",
    "http://user:12/{}@host/v1",
    "redis://host:6379/0?password={}&socket_timeout=x",
    "redis://host:6379/0?nonsense={}",
    "redis://host:6379/0?db={}",
    "http://host:x/v1?api_key={}",
    "http:{}@host",
    "redis:user:{}@host:6379",
    "{}",
)
SETTINGS = ("llm_base_url", "embedding.base_url", "rerank.base_url", "store.url", "redis.url", "redis.sentinels")


def given(name: str, value: str) -> dict[str, object]:
    section, _, setting = name.rpartition(".")
    found: object = [value] if setting == "sentinels" else value
    return {section: {setting: found}} if section else {setting: found}


@pytest.mark.parametrize("url", BAD)
@pytest.mark.parametrize("name", SETTINGS)
def test_no_message_has_the_password(name: str, url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    values = given(name, url.format(PASSWORD))
    if name == "redis.sentinels":
        values["redis"] = {**values["redis"], "sentinel_master": "m"}  # type: ignore[dict-item]
    messages = []
    try:
        settings = load_settings(**values)
        if name.startswith("redis"):
            for use in (connect, make_app):
                try:
                    use(settings)
                except RamifyError as error:
                    messages += [str(error), "".join(traceback.format_exception(error))]
    except RamifyError as error:
        messages += [str(error), "".join(traceback.format_exception(error))]
    assert PASSWORD not in "".join((*messages, caplog.text))
    assert all("\n" not in message for message in messages[::2])


@pytest.mark.parametrize("url", ["rediss://host:99999", "redis://host:port", "redis://[::1:6379", "redis://host/x/y"])
def test_a_bad_address_of_redis_is_one_sentence(url: str) -> None:
    for command in (["status", "x"], ["jobs"], ["doctor"]):
        shown = CliRunner().invoke(app, ["--set", f"redis.url={url}", *command])
        assert not isinstance(shown.exception, ValueError | TypeError)
        assert "unforeseen" not in shown.output
        assert "Traceback" not in shown.output


@pytest.mark.parametrize("form", ["environment", "command line", "file"])
def test_wherever_it_stands(form: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"htp://user:{PASSWORD}@host/v1"
    options: list[str] = []
    if form == "environment":
        monkeypatch.setenv("RAMIFY_STORE__URL", url)
    elif form == "file":
        (tmp_path / "ramify.toml").write_text(f"[store]\nurl = {json.dumps(url)}\n", encoding="utf-8")
    else:
        options = ["--set", f"store.url={url}"]
    shown = CliRunner().invoke(app, [*options, "config"])
    assert shown.exit_code == 2
    assert "store.url" in shown.stderr
    assert PASSWORD not in shown.output


@pytest.mark.parametrize("name", ["broker.url", "redis.result_url"])
@pytest.mark.parametrize(
    "url",
    [
        "filesystem://u:s3cret@/", "file:///home/s3cret", "antigravity:fly://s3cret", "os.path+redis://s3cret", "db+sqlite:///s3cret",
        "memory://s3cret", "redis://h:1/0;file:///s3cret", "s3cret",
    ],
)  # fmt: skip
def test_given_a_server_of_celery_that_is_a_module_or_a_folder_then_it_is_refused(name: str, url: str) -> None:
    section, _, field = name.partition(".")
    with pytest.raises(SettingsError, match=r"begin it with .*redis://") as caught:
        load_settings(**{section: {field: url}})
    assert "s3cret" not in str(caught.value)
    assert load_settings(**{section: {field: "rediss://u:p@i:2/0"}})
