"""The page's login: a cookie for a key, which alone changes nothing, leads nowhere else and is slow to guess."""

from __future__ import annotations

import pytest
import redis
from fastapi.testclient import TestClient

from orchestrator.access.keys import KeyStore
from orchestrator.server.app import make_app
from shared.settings import Settings
from tests.support.callers import BROWSER, bearer, keys, settings

__all__ = ["keys", "settings"]
PROBE = "/v1/jobs"


@pytest.fixture
def page(http: TestClient) -> TestClient:
    http.follow_redirects = False
    return http


def test_a_login_is_a_cookie_that_stands_for_the_key(page: TestClient, keys: KeyStore, client: redis.Redis) -> None:
    made = keys.create("acme")
    plain = made.secret.get_secret_value()
    lost = page.get("/?x=1", headers=BROWSER)
    assert (lost.status_code, lost.headers["location"]) == (303, "/login?next=/%3Fx%3D1")
    entered = page.post("/login", data={"key": plain, "next": "/corpus"})
    assert (entered.status_code, entered.headers["location"]) == (303, "/corpus")
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Max-Age=43200" in cookie
    assert plain not in cookie
    assert plain not in str([client.hgetall(name) for name in client.scan_iter("ramify:login:*")])
    assert page.get(PROBE).status_code == 200
    keys.revoke(made.key.id)
    assert page.get(PROBE).status_code == 401


def test_a_cookie_alone_changes_nothing(page: TestClient, keys: KeyStore, client: redis.Redis) -> None:
    page.post("/login", data={"key": keys.create("acme").secret.get_secret_value()})
    question = {"question": "why?"}
    assert page.post("/v1/jobs", json=question).status_code == 403
    assert page.post("/v1/jobs", json=question, headers={"X-CSRF-Token": "x"}).status_code == 403
    assert page.post("/v1/jobs", json=question, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 202
    (login,) = client.scan_iter("ramify:login:*")
    token = (client.hget(login, "csrf") or b"").decode()
    assert page.post("/v1/jobs", json=question, headers={"X-CSRF-Token": token}).status_code == 202
    assert page.post("/logout", headers={"X-CSRF-Token": "x"}).status_code == 403
    cookies = dict(page.cookies)
    ended = page.post("/logout", headers={"X-CSRF-Token": token})
    assert (ended.status_code, ended.headers["location"]) == (303, "/login")
    page.cookies.update(cookies)
    assert page.get(PROBE).status_code == 401, "the login is gone from Redis, too"


def test_beyond_loopback_the_cookie_goes_over_tls_alone(
    client: redis.Redis, settings: Settings, keys: KeyStore
) -> None:
    own = settings.server.model_copy(update={"hosts": ("ramify.example",)})
    plain = keys.create("acme").secret.get_secret_value()
    with TestClient(make_app(settings.model_copy(update={"server": own})), "https://ramify.example") as page:
        cookie = page.post("/login", data={"key": plain}, follow_redirects=False).headers["set-cookie"]
        assert cookie.startswith("__Host-ramify_login=")
        assert "Secure" in cookie
        assert "Path=/" in cookie
        assert page.get(PROBE).status_code == 200


def test_a_login_leads_to_no_other_site(page: TestClient, keys: KeyStore) -> None:
    plain = keys.create("acme").secret.get_secret_value()
    for there in ("//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nX: 1", "evil"):
        assert page.post("/login", data={"key": plain, "next": there}).headers["location"] == "/", there


def test_wrong_logins_are_slowed_down_and_lock_no_keys_out(page: TestClient, keys: KeyStore) -> None:
    made = keys.create("acme")
    plain = made.secret.get_secret_value()
    replies = [page.post("/login", data={"key": f"rmf_{number}"}).status_code for number in range(21)]
    assert replies == [401] * 20 + [429]
    right = page.post("/login", data={"key": plain}, headers=BROWSER)
    assert (right.status_code, right.headers["location"]) == (303, "/login?error=wait&next=/")
    assert page.get(PROBE, headers=bearer(made)).status_code == 200
