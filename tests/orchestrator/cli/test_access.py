"""`ramify keys` and `ramify webhooks`, over a real Redis: secrets on stdout once, all else in lists."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import redis
from pydantic import SecretStr
from typer.testing import CliRunner, Result

from orchestrator.access.keys import KeyStore
from orchestrator.cli.main import app
from orchestrator.cli.stack import _waits_for_key
from orchestrator.client import Ramify
from orchestrator.webhooks.sender import Sender
from shared.errors import InputError, UnknownCallerError
from shared.jobs import JobStore
from shared.settings import Settings

Run = Callable[..., Result]


@pytest.fixture
def run(client: redis.Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("RAMIFY_REDIS__URL", settings.redis.url.get_secret_value())
    monkeypatch.setenv("RAMIFY_DATA_DIR", str(settings.data_dir))

    def invoke(*words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, words)
        assert result.exit_code == code, result.output
        return result

    return invoke


def document(result: Result) -> Any:
    return json.loads(result.stdout)


def test_a_key_is_shown_once_listed_and_revoked(run: Run, client: redis.Redis, settings: Settings) -> None:
    made = run(
        "keys", "create", "--tenant", "acme", "--scope", "read", "--scope", "write", "--name", "web", "--days", "9"
    )
    key = made.stdout.strip()
    assert re.fullmatch(r"rmf_[0-9a-f]{16}_[0-9a-f]{64}", key)
    assert key not in made.stderr
    store = KeyStore(client, settings)
    assert store.use(SecretStr(key)).scopes == ("read", "write")
    other = document(run("keys", "create", "--rate", "7", "--open-jobs", "3", "--json"))
    assert (other["requests_per_minute"], other["open_jobs"], other["tenant"]) == (7, 3, "default")
    (listed,) = document(run("keys", "list", "--tenant", "acme", "--json"))["keys"]
    assert (listed["name"], listed["tenant"]) == ("web", "acme")
    shown = run("keys", "list").stdout
    assert listed["id"] in shown
    assert key.split("_")[2] not in shown
    assert "is refused from now on" in run("keys", "revoke", listed["id"]).stderr
    with pytest.raises(UnknownCallerError):
        store.use(SecretStr(key))
    assert "there is no such key" in run("keys", "revoke", "0" * 16, code=2).stderr


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--days", "0"), "days"),
        (("--tenant", "a b"), "tenant"),
        (("--scope", "root"), "scopes"),
        (("--rate", "0"), "requests_per_minute"),
        (("--open-jobs", "0"), "open_jobs"),
    ],
)
def test_a_key_that_cannot_be_is_one_sentence(run: Run, words: tuple[str, ...], field: str) -> None:
    assert run("keys", "create", *words, code=2).stderr.startswith(f"error: {field}: ")


def test_an_endpoint_is_added_told_listed_and_removed(run: Run, client: redis.Redis, settings: Settings) -> None:
    url = "https://hooks.example/x"
    added = run("webhooks", "add", url, "--events", "job.failed, batch.done", "--tenant", "acme")
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", added.stdout.strip())
    (endpoint,) = document(run("webhooks", "list", "--json"))["endpoints"]
    assert (endpoint["url"], endpoint["events"], endpoint["tenant"]) == (url, ["job.failed", "batch.done"], "acme")
    assert "whsec" not in run("webhooks", "list", "--json").stdout
    with Ramify(settings, "acme") as ramify:
        ramify.close_batch(ramify.open_batch())
    Sender(
        JobStore(
            client, settings.model_copy(update={"webhooks": settings.webhooks.model_copy(update={"enabled": False})})
        )
    ).run()
    (delivery,) = document(run("webhooks", "deliveries", "--json"))["deliveries"]
    assert (delivery["event"], delivery["state"], delivery["endpoint"]) == ("batch.done", "waiting", endpoint["id"])
    assert document(run("webhooks", "deliveries", "--tenant", "other", "--json"))["deliveries"] == []
    assert delivery["id"] in run("webhooks", "deliveries", "--endpoint", endpoint["id"]).stdout
    assert "sent again" in run("webhooks", "redeliver", delivery["id"]).stderr
    assert "is on" in run("webhooks", "enable", endpoint["id"]).stderr
    assert "there is no such endpoint" in run("webhooks", "remove", endpoint["id"], "--tenant", "other", code=2).stderr
    run("webhooks", "remove", endpoint["id"], "--tenant", "acme")
    assert "no endpoints yet" in run("webhooks", "list").stderr


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://hooks.example/", "webhooks.allow_http"),
        ("https://127.0.0.1/", "is no address of a public server"),
        ("https://user:pw@hooks.example/", "holds a login"),
        ("hooks.example", "is no URL of a web server"),
    ],
)
def test_a_url_that_may_not_be_called_is_refused_where_it_is_named(run: Run, url: str, said: str) -> None:
    assert said in run("webhooks", "add", url, code=2).stderr
    run("webhooks", "secret")
    assert said in run("ask", "why?", "--notify-url", url, code=2).stderr


def test_a_request_names_a_webhook_once_there_is_a_secret(run: Run, settings: Settings, tmp_path: Any) -> None:
    url, questions = "https://hooks.example/x", tmp_path / "questions.jsonl"
    questions.write_text('"why?"\n')
    with Ramify(settings, "acme") as ramify:
        with pytest.raises(InputError, match="ramify webhooks secret --tenant acme"):
            ramify.submit("why?", webhook=url)
        assert run("webhooks", "secret", "--tenant", "acme").stdout.startswith("whsec_")
        ramify.submit("why?", webhook=url)
    run("batch", str(questions), "--tenant", "acme", "--notify-url", url)
    refused = run("batch", "--resume", "x", "--notify-url", url, code=2).stderr
    assert "--notify-url" in refused


def test_a_stack_that_waits_for_a_key_says_so(client: redis.Redis, settings: Settings) -> None:
    beyond = settings.model_copy(update={"server": settings.server.model_copy(update={"host": "0.0.0.0"})})  # noqa: S104
    assert _waits_for_key(settings) == ""
    assert _waits_for_key(beyond).startswith("HTTP waits for a key: server.host: ")
    KeyStore(client, settings).create("acme")
    assert _waits_for_key(beyond) == ""
