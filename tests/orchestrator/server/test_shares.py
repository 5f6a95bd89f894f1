"""What one key may take of listeners, of bodies that are read, and of calls that wait: others are served meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import redis
from fastapi import Request
from fastapi.testclient import TestClient

from orchestrator.access.caller import Caller
from orchestrator.access.keys import KeyStore
from orchestrator.client import Ramify
from orchestrator.server.app import make_app
from orchestrator.server.bodies import BodyReaders
from shared.errors import TooManyRequestsError
from shared.settings import Settings

_EVIL, _ACME = (Caller(tenant=name, key_id=name, remote=True) for name in ("evil", "acme"))


@pytest.fixture
def http(client: redis.Redis, settings: Settings) -> Iterator[TestClient]:
    keyed = {"keys": settings.keys.model_copy(update={"required": True})}
    with TestClient(make_app(settings.model_copy(update=keyed)), "http://localhost") as http:
        yield http


def test_given_a_key_that_has_its_share_of_calls_that_wait_when_it_asks_more_then_it_alone_gets_429(
    http: TestClient, client: redis.Redis, settings: Settings
) -> None:
    evil, acme = (KeyStore(client, settings).create(name) for name in ("evil", "acme"))

    def status(secret: str) -> int:
        said = {"Authorization": f"Bearer {secret}"}
        return http.get("/v1/jobs/none/result", headers=said).status_code

    with ExitStack() as stack:
        caller = Caller(tenant="evil", key_id=evil.key.id, remote=True)
        for _ in range(settings.server.threads // 8):
            stack.enter_context(http.app.state.waiting.take(caller))
        assert status(evil.secret.get_secret_value()) == 429
        assert status(acme.secret.get_secret_value()) == 404


def test_given_a_key_with_its_share_of_requests_under_way_when_it_sends_more_then_429_and_others_are_answered(
    http: TestClient, client: redis.Redis, settings: Settings
) -> None:
    evil, acme = (KeyStore(client, settings).create(name) for name in ("evil", "acme"))
    with ExitStack() as stack:
        caller = Caller(tenant="evil", key_id=evil.key.id, remote=True)
        for _ in range(settings.server.connections // 4):
            stack.enter_context(http.app.state.requests.take(caller))
        found = {
            one.key.id: http.get("/v1/jobs", headers={"X-API-Key": one.secret.get_secret_value()})
            for one in (evil, acme)
        }
        assert (found[evil.key.id].status_code, found[evil.key.id].headers["retry-after"]) == (429, "2")
        assert found[acme.key.id].status_code == 200
    assert http.app.state.requests.taken == 0


def test_given_a_key_that_follows_its_share_of_events_when_it_asks_more_then_429_for_batches_too(
    http: TestClient, client: redis.Redis, settings: Settings, ramify: Ramify
) -> None:
    evil = KeyStore(client, settings).create("evil")
    own = ramify.for_tenant("evil")
    paths = (f"jobs/{own.submit('why?')}", f"batches/{own.open_batch()}")
    said = {"Authorization": f"Bearer {evil.secret.get_secret_value()}"}
    with ExitStack() as stack:
        caller = Caller(tenant="evil", key_id=evil.key.id, remote=True)
        for _ in range(settings.server.max_listeners // 4):
            stack.enter_context(http.app.state.events.places.take(caller))
        for path in paths:
            reply = http.get(f"/v1/{path}/events", headers=said)
            assert (reply.status_code, reply.headers["retry-after"]) == (429, "15")


def test_given_a_key_whose_bodies_come_slowly_when_it_has_its_share_then_others_are_read() -> None:
    async def scenario() -> None:
        readers, over = BodyReaders(8), asyncio.Event()

        def request(caller: Caller, *, slow: bool) -> Request:
            async def receive() -> dict[str, object]:
                if slow:
                    await over.wait()
                return {"type": "http.request", "body": b"x", "more_body": False}

            return Request({"type": "http", "headers": [], "state": {"caller": caller}}, receive)

        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(readers.run(request(_EVIL, slow=True), lambda body: body.read_whole()))
            await asyncio.sleep(0.05)
            with pytest.raises(TooManyRequestsError, match="this key has 3"):
                await readers.run(request(_EVIL, slow=False), lambda body: body.read_whole())
            assert await readers.run(request(_ACME, slow=False), lambda body: body.read_whole()) == b"x"
            over.set()

    asyncio.run(scenario())
