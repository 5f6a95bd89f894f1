"""Log lines: one a record, with ids, without secrets and without what a terminal obeys."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from shared.logs import JsonFormatter, SafeFormatter, about, formatter, secrets_of
from shared.settings import load_settings

SETTINGS = load_settings(
    llm_api_key="sk-llm-0123456789",
    redis={"url": "redis://ramify:p4ssw0rd@127.0.0.1:6379/0"},
    store={"kind": "server", "url": "http://user:qdr4nt-p4ss@127.0.0.1:6333"},
)


def record(message: str, *args: object, error: BaseException | None = None) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("ramify.tasks", logging.WARNING, __file__, 1, message, args, info)


def as_json(**telemetry: str) -> logging.Formatter:
    return formatter(SETTINGS.model_copy(update={"telemetry": type(SETTINGS.telemetry)(logs="json", **telemetry)}))


def test_given_a_task_when_it_logs_then_its_line_is_one_object_with_its_ids():
    with about(job="j1", node="0.1", task="search.leaf"), about(node=""):
        line = as_json().format(record("searched %d of %s", 3, "数据库"))
    found = json.loads(line)
    assert "数据库" in line, "other alphabets stay readable"
    assert found["message"] == "searched 3 of 数据库"
    assert {name: found[name] for name in ("job", "node", "task", "level", "logger")} == {
        "job": "j1", "node": "0.1", "task": "search.leaf", "level": "WARNING", "logger": "ramify.tasks",
    }  # fmt: skip
    assert found["time"].endswith("+00:00")
    assert "job" not in json.loads(as_json().format(record("later")))


@pytest.mark.parametrize("kind", ["text", "json"])
def test_given_control_characters_when_logged_then_they_make_no_line_and_move_no_cursor(kind: str):
    made = as_json() if kind == "json" else formatter(SETTINGS)
    line = made.format(record("%s", "a\n2026 ERROR forged\r\x1b[2J\x9b31m\u2028\u202eb\ta"))
    assert line.isprintable() or line.replace("\t", "").isprintable()
    assert "\n" not in line
    assert "u001b" in line
    if kind == "json":
        assert json.loads(line)["message"] == "a\n2026 ERROR forged\r\x1b[2J\x9b31m\u2028\u202eb\ta"


@pytest.mark.parametrize("kind", ["text", "json"])
def test_given_secrets_of_the_settings_when_logged_then_they_are_not_told(kind: str):
    made = as_json() if kind == "json" else formatter(SETTINGS)
    error = ValueError("cannot reach http://x:other-p4ss@host with sk-llm-0123456789")
    line = made.format(record("redis://ramify:p4ssw0rd@127.0.0.1 and %s", "qdr4nt-p4ss", error=error))
    assert "ValueError" in line
    for secret in ("sk-llm-0123456789", "p4ssw0rd", "qdr4nt-p4ss", "other-p4ss"):
        assert secret not in line


def test_the_secrets_of_the_settings_are_their_keys_and_the_passwords_of_their_addresses():
    found = secrets_of(SETTINGS)
    assert {"sk-llm-0123456789", "qdr4nt-p4ss"} <= found
    assert "" not in found


def test_a_traceback_keeps_its_lines_in_text_and_is_one_field_in_json():
    try:
        1 // 0  # noqa: B018
    except ZeroDivisionError:
        info = sys.exc_info()
    failed = logging.LogRecord("a", logging.ERROR, __file__, 1, "broken", (), info)
    assert len(SafeFormatter().format(failed).split("\n")) > 3
    assert "ZeroDivisionError" in json.loads(JsonFormatter().format(failed))["exception"]
