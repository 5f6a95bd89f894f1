"""Sessions over HTTP are shared between keys and tenants: in an application in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from fastapi.testclient import TestClient

from orchestrator.access.keys import KeyStore
from orchestrator.server.app import make_app
from shared.settings import Settings

_HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
_LISTING = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
#: Of 12 sessions a key may have 3, and a tenant 6.
_MOST = 12


@pytest.fixture
def http(client: redis.Redis, settings: Settings) -> Iterator[TestClient]:
    own = {
        "keys": settings.keys.model_copy(update={"required": True}),
        "server": settings.server.model_copy(update={"connections": _MOST}),
    }
    with TestClient(make_app(settings.model_copy(update=own)), "http://localhost") as http:
        yield http


class Keys:
    """Posts of messages with keys that are made as they are named: `tenant:name`."""

    def __init__(self, http: TestClient, store: KeyStore) -> None:
        self._http, self._store = http, store
        self._made = dict[str, tuple[str, str]]()

    def post(self, name: str, body: object, session: str = "") -> tuple[int, str]:
        """Status and id of the session."""
        if name not in self._made:
            made = self._store.create(name.partition(":")[0])
            self._made[name] = (made.key.id, made.secret.get_secret_value())
        headers = {
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self._made[name][1]}",
            **({"Mcp-Session-Id": session} if session else {}),
        }
        reply = self._http.post("/mcp", json=body, headers=headers)
        return reply.status_code, reply.headers.get("mcp-session-id", "")

    def opened(self, name: str, times: int) -> list[str]:
        found = [self.post(name, _HELLO) for _ in range(times)]
        assert {status for status, _ in found} == {200}
        return [session for _, session in found]

    def revoke(self, name: str) -> None:
        self._store.revoke(self._made[name][0])


@pytest.fixture
def keys(http: TestClient, client: redis.Redis, settings: Settings) -> Keys:
    return Keys(http, KeyStore(client, settings))


def test_given_a_key_with_its_share_when_it_opens_more_then_its_own_oldest_session_makes_room(keys: Keys) -> None:
    first, second, _ = keys.opened("evil:1", 3)
    assert keys.post("evil:1", _LISTING, first)[0] == 200
    keys.opened("evil:1", 1)
    assert keys.post("evil:1", _LISTING, second)[0] == 404
    assert keys.post("evil:1", _LISTING, first)[0] == 200


def test_given_a_tenant_with_its_share_when_another_key_of_it_asks_then_429_and_other_tenants_are_served(
    keys: Keys,
) -> None:
    keys.opened("evil:1", 3)
    keys.opened("evil:2", 3)
    assert keys.post("evil:3", _HELLO)[0] == 429
    keys.opened("acme:1", 3)


def test_given_sessions_of_a_revoked_key_when_room_is_needed_then_they_end(keys: Keys) -> None:
    keys.opened("evil:1", 3)
    kept = keys.opened("evil:2", 3)
    keys.revoke("evil:1")
    keys.opened("evil:3", 3)
    assert [keys.post("evil:2", _LISTING, session)[0] for session in kept] == [200, 200, 200]


def test_given_requests_that_open_nothing_when_sent_often_then_they_take_no_share(keys: Keys) -> None:
    for _ in range(2 * _MOST):
        assert keys.post("evil:1", _LISTING)[0] >= 400
    keys.opened("evil:1", 3)
