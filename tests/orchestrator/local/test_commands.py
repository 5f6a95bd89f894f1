"""Command lines and environment of the embedded stack."""

import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.local import commands
from shared.contract import POOL_QUEUES, Queue
from shared.errors import SettingsError
from shared.settings import Settings, load_settings


def test_given_settings_when_sent_as_environment_then_a_child_reads_the_same(tmp_path, monkeypatch):
    given = load_settings(
        data_dir=tmp_path / "数据 dir",
        llm_model="m",
        llm_base_url="http://llm.example/v1",
        llm_api_key="sk-秘",
        enable_summary=True,
        search={"strategy": "bm25_only", "source_boosts": {"docs/": 1.5, "笔记/": 0.5}},
        pools={"plan": 7, "task_events": False},
        redis={"url": "redis://:p%40ss@db.example:6379/1"},
        embedding={"provider": "endpoint", "base_url": "http://e.example/v1", "model": "bge", "api_key": "k"},
    )
    (tmp_path / "ramify.toml").write_text("llm_timeout_s = 5\n[pools]\nplan = 2\n")  # the environment wins
    for name, value in commands.environment(given).items():
        monkeypatch.setenv(name, value)
    assert load_settings() == given


def test_given_default_settings_when_sent_as_environment_then_nothing_empty_is_sent(tmp_path, monkeypatch):
    env = commands.environment(Settings())
    assert all(env.values())
    assert env["RAMIFY_DATA_DIR"] == str(tmp_path / ".ramify")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert load_settings().model_copy(update={"data_dir": Path(".ramify")}) == Settings(data_dir=Path(".ramify"))


def test_given_model_servers_when_the_pools_are_made_then_those_that_wait_for_them_have_64_threads() -> None:
    llm = {"llm_base_url": "http://127.0.0.1:9/v1", "llm_model": "m"}
    server = {"provider": "endpoint", "model": "m", "base_url": "http://127.0.0.1:9"}

    def threads(**given: Any) -> list[int]:
        made = commands.pools(load_settings(**given))
        return [made[name].threads for name in ("plan", "search", "rerank", "merge", "ops")]

    assert threads() == [4, 4, 4, 4, 1]
    assert threads(**llm) == [64, 4, 64, 64, 1]
    assert threads(rerank=server) == [4, 4, 64, 4, 1]
    assert threads(**llm, rerank={"provider": "fastembed", "model": "m"}) == [64, 4, 4, 64, 1], "it computes"
    assert threads(**llm, pools={"plan": 3, "merge": 5}) == [3, 4, 64, 5, 1]


def test_given_the_contract_when_the_pools_are_made_then_every_queue_has_one_pool(tmp_path):
    pools = commands.pools(load_settings(pools={"rerank": 9}))
    assert set(pools) == set(POOL_QUEUES)
    assert sorted(queue for pool in pools.values() for queue in pool.queues) == sorted(Queue)
    assert pools["rerank"].threads == 9
    assert pools["search"].queues == ("search", "index")


def test_given_a_pool_when_its_command_is_made_then_threads_queues_and_events_are_in_it():
    pool = commands.Pool(app="workers.app", queues=("search", "index"), threads=3)
    argv = commands.worker("search", pool, Settings(), {}).argv
    assert argv[:5] == (sys.executable, "-m", "shared.tasks.celery_command", "-A", "workers.app")
    text = " ".join(argv)
    assert "-Q search,index -P threads -c 3 -n search@%h" in text
    assert argv[-1] == "-E"
    quiet = load_settings(pools={"task_events": False})
    assert "-E" not in commands.worker("search", pool, quiet, {}).argv


def test_given_a_login_when_flower_is_started_then_it_travels_in_the_environment_only():
    settings = load_settings()
    program = commands.flower("orchestrator.app", 5555, settings, {"A": "b"}, "ann:s3cret")
    assert program.env == {"A": "b", "FLOWER_BASIC_AUTH": "ann:s3cret"}
    assert not any("s3cret" in word for word in program.argv)


def test_given_a_comma_in_the_login_when_settings_are_read_then_it_is_refused_without_showing_it():
    with pytest.raises(SettingsError, match=r"flower.basic_auth.*commas") as caught:
        load_settings(flower={"basic_auth": "ann:s3,cret"})
    assert "cret" not in str(caught.value)


def test_given_events_switched_off_when_flower_is_started_then_it_does_not_switch_them_on_again():
    quiet = load_settings(pools={"task_events": False})
    assert "--enable_events=False" in commands.flower("orchestrator.app", 1, quiet, {}, "a:b").argv


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:80"), ("::1", "http://[::1]:80"), ("0.0.0.0", "http://127.0.0.1:80")],  # noqa: S104
)
def test_given_an_address_when_shown_then_it_is_a_link_that_opens(host, url):
    assert commands.url(host, 80) == url


def test_given_a_wildcard_when_it_is_served_then_what_is_bound_is_told():
    assert [commands.bound_url(host, 80) for host in ("0.0.0.0", "::")] == ["http://0.0.0.0:80", "http://[::]:80"]  # noqa: S104
