"""Who is let in over HTTP: keys, scopes, rates and places; names, sites and logins; and what they see of others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import redis
from fastapi.testclient import TestClient

from orchestrator.access.caller import Scope
from orchestrator.access.callers import Callers
from orchestrator.access.keys import KeyStore
from orchestrator.client import Ramify
from orchestrator.operations.registry import OPERATIONS
from orchestrator.server import entrance
from orchestrator.server.app import make_app
from orchestrator.server.page.router import page_router
from orchestrator.server.serve import check_start
from shared.connections.connect import connect
from shared.errors import NotRunningError, SettingsError
from shared.settings import Settings, load_settings
from tests.support.callers import BROWSER, asked, bearer, keys, settings
from tests.support.http_server import served

UNKNOWN = "0000000000000deadbeef"
#: A path that every key may ask for.
PROBE = "/v1/jobs"
__all__ = ["keys", "settings"]


@pytest.fixture
def acme(keys: KeyStore) -> dict[str, str]:
    return bearer(keys.create("acme", ["read", "ask", "write"]))


def test_without_a_key_nothing_but_health_answers(http: TestClient) -> None:
    paths = {route.path: route.method for one in OPERATIONS.values() for route in one.routes}
    for path, method in {**paths, "/openapi.json": "GET", "/mcp": "POST", "/v1/nothing": "GET", "/": "GET"}.items():
        reply = http.request(method, path.replace("{id}", "x"), json={})
        assert (reply.status_code, reply.headers.get("www-authenticate")) == (401, "Bearer"), path
        found = reply.json()
        said = found["error"]["message"] if "error" in found else found["detail"]
        assert said.startswith("this needs an API key"), path
    assert [http.get(path).status_code for path in ("/healthz", "/readyz", "/metrics")] == [200, 200, 401]


def test_openai_clients_are_refused_in_their_form(http: TestClient) -> None:
    for refused in (http.get("/v1/models"), http.post("/v1/chat/completions", json={})):
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")


def test_the_description_says_how_a_key_is_sent(http: TestClient, acme: dict[str, str]) -> None:
    document = http.get("/openapi.json", headers=acme).json()
    assert document["security"] == [{"bearer": []}, {"header": []}]
    assert document["components"]["securitySchemes"]["header"]["name"] == "X-API-Key"
    assert document["paths"]["/healthz"]["get"]["security"] == []


def test_a_key_comes_in_either_header_and_never_in_the_url(http: TestClient, keys: KeyStore) -> None:
    made = keys.create("acme")
    plain = made.secret.get_secret_value()
    assert http.get(PROBE, headers={"Authorization": f"bearer {plain}"}).status_code == 200
    assert http.get(PROBE, headers={"X-API-Key": plain}).status_code == 200
    for url in (f"/v1/jobs?key={plain}", f"/v1/jobs?access_token={plain}", f"/v1/jobs?api_key={plain}"):
        assert http.get(url).status_code == 401
    assert http.get(PROBE, headers={"Authorization": f"Basic {plain}"}).status_code == 401


def test_what_a_key_may_do_is_its_scopes(http: TestClient, keys: KeyStore) -> None:
    reader = bearer(keys.create("acme", ["read"]))
    asker = bearer(keys.create("acme", ["ask"]))
    refused = http.post("/v1/jobs", json={"question": "why?"}, headers=reader)
    assert (refused.status_code, refused.json()["detail"]) == (
        403, "this key may not do that: it needs one with the scope ask",
    )  # fmt: skip
    job_id = asked(http, asker)
    assert http.get(f"/v1/jobs/{job_id}", headers=asker).status_code == 403
    assert http.get(f"/v1/jobs/{job_id}", headers=reader).json()["tenant"] == "acme"


def test_an_operator_looks_after_keys_and_webhooks_of_all_tenants(http: TestClient, keys: KeyStore) -> None:
    operator, other = bearer(keys.create("ops", ["admin"])), keys.create("acme")
    url = {"url": "https://hooks.example/x", "events": ["batch.done"], "tenant": "acme"}
    made = http.post("/v1/webhooks", json=url, headers=operator)
    assert (made.status_code, made.json()["secret"][:6]) == (201, "whsec_")
    (endpoint,) = http.get("/v1/webhooks?tenant=acme", headers=operator).json()["endpoints"]
    assert (endpoint["id"], "secret" in endpoint) == (made.json()["id"], False)
    inner = http.post("/v1/webhooks", json={"url": "https://169.254.169.254/"}, headers=operator)
    assert (inner.status_code, inner.json()["field"]) == (422, "webhook")
    assert http.delete(f"/v1/webhooks/{endpoint['id']}", headers=operator).status_code == 200
    assert http.get("/v1/deliveries", headers=operator).json() == {"deliveries": []}
    assert {key["tenant"] for key in http.get("/v1/keys", headers=operator).json()["keys"]} == {"ops", "acme"}
    assert http.post("/v1/keys", json={}, headers=operator).status_code == 405, "they are made on the machine"
    assert http.delete(f"/v1/keys/{other.key.id}", headers=operator).json()["revoked_at"]
    assert http.get(PROBE, headers=bearer(other)).status_code == 401
    assert http.get(PROBE, headers=operator).status_code == 403, "no scope holds another"


def test_a_key_that_is_revoked_or_too_fast_is_told_so(http: TestClient, keys: KeyStore) -> None:
    made = keys.create("acme", requests_per_minute=2)
    replies = [http.get(PROBE, headers=bearer(made)) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [200, 200, 429]
    assert 1 <= int(replies[-1].headers["retry-after"]) <= 30
    assert replies[-1].headers["content-type"] == "application/problem+json"
    keys.revoke(made.key.id)
    last = http.get(PROBE, headers=bearer(made))
    assert (last.status_code, last.json()["detail"]) == (401, "this key was revoked: send another one")


def test_a_key_has_so_many_open_jobs_by_all_ways_of_making_them(
    http: TestClient, keys: KeyStore, settings: Settings
) -> None:
    key = bearer(keys.create("acme", ["read", "ask", "write"], open_jobs=2))
    jobs = [asked(http, key), asked(http, key)]
    ways = [
        ("/v1/jobs", {"json": {"question": "why?"}}),
        ("/v1/batches", {"content": '{"question": "why?"}\n', "headers": {"Content-Type": "application/jsonl"}}),
    ]
    for path, given in ways:
        reply = http.post(path, **{**given, "headers": {**key, **given.get("headers", {})}})  # type: ignore[dict-item]
        assert (reply.status_code, reply.headers.get("retry-after")) == (429, "5"), (path, reply.text)
        assert "2 open jobs and batches" in reply.json()["detail"]
    with Ramify(settings, "acme") as ramify:
        ramify.cancel(jobs[0])
    asked(http, key)


def _of_page(router: Any) -> Iterator[tuple[str, str]]:
    """Method and path of each route of the page that names a job or a batch."""
    for route in router.routes:
        if not (path := getattr(route, "path", "")):
            yield from _of_page(route.original_router)
        elif "{job_id}" in path or "{batch_id}" in path:
            yield from ((method, path) for method in route.methods)


def test_ids_of_other_tenants_are_answered_as_ids_that_never_were(
    http: TestClient, keys: KeyStore, acme: dict[str, str], settings: Settings
) -> None:
    other = bearer(keys.create("other", ["read", "ask", "write"]))
    job_id = asked(http, acme)
    with Ramify(settings, "acme") as ramify:
        batch_id = ramify.submit_many(["why?"]).batch_id
    looked_at = 0
    for operation in OPERATIONS.values():
        for route in operation.routes:
            if "{id}" not in route.path or operation.scope is Scope.ADMIN:
                continue
            for given in (job_id, batch_id):
                body = {"verdict": "bad"} if "verdict" in operation.input.model_fields else {}
                more = {"json": body} if route.method == "POST" else {}
                replies = [
                    http.request(route.method, route.path.replace("{id}", one), headers=other, **more)
                    for one in (given, UNKNOWN)
                ]
                told = [reply.text.replace(one, "ID") for reply, one in zip(replies, (given, UNKNOWN), strict=True)]
                assert told[0] == told[1], route
                assert [reply.status_code for reply in replies] == [404, 404], (route, told)
                looked_at += 1
    assert looked_at >= 20
    own = asked(http, other)
    for path in (f"/v1/jobs/{own}/diff/{{}}", f"/v1/jobs/{{}}/diff/{own}", "/v1/show?document={}%231"):
        told = [http.get(path.format(one), headers=other) for one in (job_id, UNKNOWN)]
        assert told[0].text.replace(job_id, "ID") == told[1].text.replace(UNKNOWN, "ID"), path


def test_pages_of_other_tenants_are_shown_as_those_that_never_were(
    http: TestClient, keys: KeyStore, acme: dict[str, str], settings: Settings
) -> None:
    other = bearer(keys.create("other", ["read", "ask", "write"]))
    job_id = asked(http, acme)
    with Ramify(settings, "acme") as ramify:
        batch_id = ramify.submit_many(["why?"]).batch_id
    routes = list(_of_page(page_router()))
    assert len(routes) >= 15
    parts = {"number": "1", "ending": "csv", "written_as": "md"}
    for method, path in routes:
        told = []
        for job, batch in ((job_id, batch_id), (UNKNOWN, UNKNOWN)):
            url = path.format(job_id=job, batch_id=batch, **parts)
            reply = http.request(method, url, headers={**other, **BROWSER}, follow_redirects=False)
            told.append((reply.status_code, reply.text.replace(job, "ID").replace(batch, "ID")))
        assert told[0] == told[1], path
        assert told[0][0] == 404, (path, told)


def test_the_idempotency_key_of_a_tenant_names_no_job_of_another(
    http: TestClient, keys: KeyStore, acme: dict[str, str]
) -> None:
    other = bearer(keys.create("other"))
    same = {"Idempotency-Key": "order-17"}
    jobs = [asked(http, {**key, **same}) for key in (acme, other, acme)]
    assert jobs[0] == jobs[2] != jobs[1]


def test_lists_and_counts_hold_the_own_tenant_alone(http: TestClient, keys: KeyStore, acme: dict[str, str]) -> None:
    other = bearer(keys.create("other"))
    asked(http, acme)
    assert http.get("/v1/jobs", headers=other).json()["jobs"] == []
    assert http.get("/v1/batches", headers=other).json()["batches"] == []
    assert http.get("/v1/dead-letters", headers=other).json() == {"total": 0, "dead_letters": []}
    for path in ("/v1/lanes", "/v1/pools", "/v1/gates", "/v1/stats", "/v1/cache", "/v1/quarantine", "/v1/keys"):
        assert http.get(path, headers=acme).status_code == 403, path
    for path in ("/v1/webhooks", "/v1/deliveries", "/metrics"):
        assert http.get(path, headers=acme).status_code == 403, path


def test_a_caller_names_no_tenant(http: TestClient, acme: dict[str, str]) -> None:
    for given in ({"tenant": "other"}, {"filters": {"tenant": "other"}}):
        reply = http.post("/v1/jobs", json={"question": "why?", **given}, headers=acme)
        assert reply.status_code == 422, reply.text


def test_ids_that_are_none_lead_nowhere(http: TestClient, acme: dict[str, str]) -> None:
    for id_ in ("..%2f..%2fetc%2fpasswd", "%2e%2e/x", "a%00b", "*", "{x}", "%0d%0aX-Header:1", "a" * 300):
        reply = http.get(f"/v1/jobs/{id_}", headers=acme)
        assert reply.status_code in {404, 422}, id_
        assert "x-header" not in reply.headers
        assert "Traceback" not in reply.text


OWN_NAMES = ("localhost", "LOCALHOST:1", "127.0.0.1:8321", "[::1]:8321", "127.0.0.1")
OTHER_NAMES = (
    "evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "10.0.0.1", "localhost@evil.example",
    "evil.example:8321", "0.0.0.0",  # noqa: S104 - refused
)  # fmt: skip


def test_only_its_own_names_are_answered(http: TestClient, acme: dict[str, str]) -> None:
    for host in (*OWN_NAMES, *OTHER_NAMES):
        replies = [http.get(path, headers={**acme, "Host": host}).status_code for path in (PROBE, "/healthz")]
        assert replies == ([200, 200] if host in OWN_NAMES else [403, 403]), host


OWN_SITES = ({}, {"Origin": "http://localhost"}, {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"})
OTHER_SITES = (
    {"Origin": "http://localhost:3000"}, {"Origin": "http://evil.example"}, {"Origin": "null"},
    {"Origin": "http://[::1"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
)  # fmt: skip


def test_pages_of_other_sites_change_nothing(http: TestClient, acme: dict[str, str]) -> None:
    for headers in (*OWN_SITES, *OTHER_SITES):
        reply = http.post("/v1/jobs", json={"question": "why?"}, headers={**acme, **headers})
        assert reply.status_code == (202 if headers in OWN_SITES else 403), (headers, reply.text)
        assert "access-control-allow-origin" not in reply.headers


def test_a_site_of_the_settings_may_call_with_a_key_and_no_cookie(
    client: redis.Redis, settings: Settings, acme: dict[str, str]
) -> None:
    own = settings.server.model_copy(update={"origins": ("https://app.example",)})
    with TestClient(make_app(settings.model_copy(update={"server": own})), "http://localhost") as http:
        site = {"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"}
        asked_first = http.options("/v1/jobs", headers={**site, "Access-Control-Request-Method": "POST"})
        assert asked_first.headers["access-control-allow-origin"] == "https://app.example"
        assert "access-control-allow-credentials" not in asked_first.headers
        assert http.post("/v1/jobs", json={"question": "why?"}, headers={**acme, **site}).status_code == 202
        other = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        assert http.post("/v1/jobs", json={"question": "why?"}, headers={**acme, **other}).status_code == 403


def test_every_reply_has_the_headers_that_guard_it(http: TestClient, acme: dict[str, str]) -> None:
    for reply in (http.get("/healthz"), http.get("/v1/x"), http.get(PROBE, headers=acme)):
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"


def test_no_key_and_no_cookie_stands_in_logs_metrics_or_errors(
    http: TestClient, keys: KeyStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = keys.create("acme", ["read", "ask", "admin"])
    plain = made.secret.get_secret_value()
    http.post("/login", data={"key": plain}, follow_redirects=False)
    cookie = http.cookies["ramify_login"]
    replies = [
        http.get("/v1/jobs/x", headers=bearer(made)),
        http.get("/metrics", headers=bearer(made)),
        http.post("/v1/jobs", json={"question": plain, "x": 1}, headers=bearer(made)),
        http.get("/v1/jobs/x", headers={"Authorization": f"Bearer {plain}x"}),
        http.get("/v1/jobs/x", headers={"Authorization": plain}),
        http.get(f"/v1/jobs/x?key={plain}", headers={"Authorization": "Basic x"}),
    ]
    assert "ramify_http_requests" in replies[1].text
    logged = "\n".join(
        record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))
    )
    for secret in (plain, plain.split("_")[2], cookie):
        assert secret not in logged
        assert all(secret not in reply.text for reply in (*replies[:2], *replies[3:]))


def test_beyond_loopback_it_starts_with_a_key_alone(client: redis.Redis, settings: Settings) -> None:
    own = settings.server.model_copy(update={"host": "0.0.0.0"})  # noqa: S104
    callers = Callers(client, settings.model_copy(update={"server": own}))
    with pytest.raises(SettingsError, match="there is no API key yet: make one with `ramify keys create`"):
        callers.check_start()
    made = callers.keys.create("acme")
    callers.check_start()
    callers.keys.revoke(made.key.id)
    with pytest.raises(SettingsError):
        check_start(callers, settings)


@pytest.mark.parametrize("named", [True, False])
def test_a_redis_that_is_named_and_away_at_the_start_is_waited_for(
    settings: Settings, caplog: pytest.LogCaptureFixture, named: bool
) -> None:
    own = settings.server.model_copy(update={"host": "0.0.0.0"})  # noqa: S104
    away = load_settings(redis={"url": "redis://127.0.0.1:9/0"})
    with connect(away, retries=0) as client:
        callers = Callers(client, away.model_copy(update={"server": own}))
        if named:
            check_start(callers, away)
            assert "127.0.0.1:9 does not answer" in caplog.text
            assert "until it answers" in caplog.text
        else:
            with pytest.raises(NotRunningError):
                check_start(callers, load_settings())


def test_on_this_machine_no_key_is_needed_and_a_wrong_one_is_still_wrong(
    client: redis.Redis, settings: Settings
) -> None:
    alone = settings.model_copy(update={"keys": settings.keys.model_copy(update={"required": False})})
    with TestClient(make_app(alone), "http://localhost") as http:
        assert http.get(PROBE).status_code == 200
        assert http.get(PROBE, headers={"Authorization": "Bearer none-needed"}).status_code == 200
        assert http.get(PROBE, headers={"Authorization": "Bearer rmf_x"}).status_code == 401
        made = KeyStore(client, alone).create("acme")
        job_id = asked(http, bearer(made))
        assert http.get(f"/v1/jobs/{job_id}").status_code == 404, "without a key one is the tenant default"
        assert http.get(f"/v1/jobs/{job_id}", headers=bearer(made)).status_code == 200
    for hosts, host in ((("ramify.example",), "127.0.0.1"), ((), "192.168.1.5")):
        own = alone.server.model_copy(update={"hosts": hosts, "host": host})
        assert Callers(client, alone.model_copy(update={"server": own})).needs_key


def test_an_event_stream_ends_when_its_key_is_revoked(
    client: redis.Redis, settings: Settings, keys: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrance, "_LOOK_S", 0.1)
    made, other = keys.create("acme"), keys.create("acme")
    with Ramify(settings, "acme") as ramify, served(settings) as address:
        url = f"{address}/v1/jobs/{ramify.submit('why?')}/events"
        with (
            httpx.stream("GET", url, headers=bearer(made), timeout=10) as ended,
            httpx.stream("GET", url, headers=bearer(other), timeout=10) as open_,
        ):
            assert (ended.status_code, open_.status_code) == (200, 200)
            keys.revoke(made.key.id)
            list(ended.iter_raw())  # the reply is whole: the stream ends, the connection is not broken
            assert not open_.is_closed
            assert keys.still_holds(other.key.id)
        assert httpx.get(url, headers=bearer(made)).status_code == 401


def test_two_servers_share_the_rate_of_a_key(client: redis.Redis, settings: Settings, keys: KeyStore) -> None:
    key = bearer(keys.create("acme", requests_per_minute=10))
    with (
        TestClient(make_app(settings), "http://localhost") as one,
        TestClient(make_app(settings), "http://localhost") as two,
    ):
        told = [http.get(PROBE, headers=key).status_code for _ in range(8) for http in (one, two)]
    assert told.count(200) in {10, 11}
    assert set(told) == {200, 429}
