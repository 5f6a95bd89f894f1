"""Callers over HTTP of a server that wants keys."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from fastapi.testclient import TestClient

from orchestrator.access.keys import KeyStore, NewKey
from shared.settings import Settings, load_settings

BROWSER = {"Accept": "text/html"}


@pytest.fixture
def settings(redis_url: str, tmp_path: Any) -> Settings:
    return load_settings(redis={"url": redis_url}, data_dir=tmp_path, keys={"required": True})


@pytest.fixture
def keys(client: redis.Redis, settings: Settings) -> KeyStore:
    return KeyStore(client, settings)


def bearer(made: NewKey) -> dict[str, str]:
    return {"Authorization": f"Bearer {made.secret.get_secret_value()}"}


def asked(http: TestClient, key: dict[str, str], **more: Any) -> str:
    """The id of a job that was made."""
    reply = http.post("/v1/jobs", json={"question": "why?", **more}, headers=key)
    assert reply.status_code == 202, reply.text
    return str(reply.json()["job_id"])
