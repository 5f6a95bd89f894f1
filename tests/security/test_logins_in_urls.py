"""A login in the URL of a server reaches that server, the processes of the stack, and nobody's eyes."""

from __future__ import annotations

import base64
import json
import pickle
from types import SimpleNamespace

import pytest
from celery.utils.saferepr import saferepr as safe_repr
from celery.utils.serialization import jsonify
from celery.worker.consumer.connection import Connection
from kombu.utils.json import dumps

from orchestrator.cli.render.system import setting_rows
from orchestrator.local import checks, commands
from shared.errors import SettingsError
from shared.providers.llm.client import ChatClient
from shared.settings import Settings, load_settings
from shared.settings.server_url import with_login
from shared.tasks.app import make_app
from tests.fakes.openai_server import FakeOpenAI

URL = "http://ann:s3cret@127.0.0.1:9/v1"


@pytest.fixture
def settings() -> Settings:
    endpoint = {"provider": "endpoint", "model": "m", "base_url": URL}
    store = {"kind": "server", "url": URL}
    return load_settings(llm_base_url=URL, llm_model="m", embedding=endpoint, rerank=endpoint, store=store)


def test_given_logins_in_urls_when_settings_are_shown_or_dumped_then_they_are_left_out(settings: Settings) -> None:
    shown = (
        repr(settings), str(settings), settings.model_dump_json(), str(settings.model_dump()),
        str(setting_rows(settings)),
        f"{settings.llm_base_url}", f"{settings.store.url!r}", json.dumps(settings.model_dump(mode="json")),
    )  # fmt: skip
    assert all("127.0.0.1" in text and "s3cret" not in text and "ann:" not in text for text in shown)


def test_given_logins_in_urls_when_doctor_cannot_reach_the_servers_then_they_are_not_repeated(
    settings: Settings,
) -> None:
    found = [checks.llm(settings), checks.embedding(settings), checks.rerank(settings)]
    assert [check.ok for check in found] == [False] * 3
    assert "s3cret" not in str(found)


def test_given_logins_in_urls_when_children_get_them_then_they_are_whole(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in commands.environment(settings).items():
        monkeypatch.setenv(name, value)
    again = load_settings()
    for one in (again, pickle.loads(pickle.dumps(again))):  # noqa: S301 - our own
        for url in (one.llm_base_url, one.embedding.base_url, one.rerank.base_url, one.store.url):
            assert with_login(url) == URL


def test_given_a_login_in_the_url_when_the_server_is_asked_then_it_gets_it(server: FakeOpenAI) -> None:
    url = server.url.replace("http://", "http://ann:s3cret@")
    settings = load_settings(llm_base_url=url, llm_model="m")
    client = ChatClient(settings)
    client.complete("Say something.", timeout_s=10)
    client.close()
    sent = server.requests()[-1].headers["authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"ann:s3cret"


@pytest.mark.parametrize(
    "url", ["http://ann:s3cret@", "ftp://ann:s3cret@h/", "ann:s3cret@h", "http://ann:s3cret@h:99999/"]
)
def test_given_a_bad_url_with_a_login_when_it_is_refused_then_the_login_is_not_repeated(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(llm_base_url=url, llm_model="m")
    assert "s3cret" not in str(caught.value)


def test_given_passwords_of_redis_sentinels_and_keys_when_a_worker_is_inspected_then_it_tells_none() -> None:
    redis = {
        "url": "rediss://me:s3cret@127.0.0.1:9/0?ssl_password=s3cret", "sentinels": ["127.0.0.1:9"],
        "sentinel_master": "jobs", "sentinel_username": "me", "sentinel_password": "s3cret",
    }  # fmt: skip
    with make_app(load_settings(redis=redis)) as app:
        connection = app.connection_for_read()
        step = Connection(consumer := SimpleNamespace())
        consumer.connection = SimpleNamespace(info=connection.info)
        stats = step.info(consumer)
        told = (
            dumps(stats), dumps(jsonify(app.conf.table(with_defaults=True), unknown_type_filter=safe_repr)),
            app.bugreport(), app.backend.as_uri(), connection.as_uri(), repr(connection),
        )  # fmt: skip
        assert all("s3cret" not in text for text in told)
        assert app.conf.broker_transport_options["sentinel_kwargs"]["password"] == "s3cret"
        assert stats["broker"]["transport_options"]["master_name"] == "jobs", "the rest is told"
