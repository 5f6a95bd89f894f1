"""The OpenAPI document tells the truth: schemathesis asks every route by it, with few examples of each."""

from __future__ import annotations

from typing import Any

import pytest
import redis
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from shared.errors import NotFoundError
from shared.settings import Settings
from tests.support.http_server import served

#: What waits for workers, of which there are none here, finds nothing.
_POOLS = ("orchestrator.searching", "orchestrator.documents.corpus", "orchestrator.early")
#: What goes on until a job ends.
_ENDLESS = r"events|chat"
_CHECKS: list[Any] = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
_FEW = settings(
    max_examples=2, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def test_given_any_request_when_asked_then_status_type_and_body_are_as_described(
    client: redis.Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> str:
        raise NotFoundError("document", "any", "there is none in this test")

    for room in _POOLS:
        monkeypatch.setattr(f"{room}.call_pool", nothing)
    with served(settings) as address:
        api = schemathesis.openapi.from_url(f"{address}/openapi.json").exclude(path_regex=_ENDLESS)
        asked = [_ask(found.ok()) for found in api.get_all_operations()]
    assert len(asked) > 50


def _ask(operation: Any) -> str:
    @_FEW
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        case.call_and_validate(checks=_CHECKS, timeout=20)

    ask()
    return str(operation.label)
