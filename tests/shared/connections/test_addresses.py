"""One `redis.url` for redis-py and for Celery: TLS, Sentinel, and passwords with every character."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
import redis

from shared.connections.addresses import Address, host_and_port
from shared.errors import NotRunningError, SettingsError
from shared.jobs import connect, reachable
from shared.settings import Settings, load_settings
from shared.tasks.app import make_app
from tests.faults.redis_proxy import Proxy


def address(**given: object) -> Address:
    return Address(load_settings(redis=given).redis)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl here")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*words.split(), "-keyout", key, "-out", cert], check=True, capture_output=True, timeout=30)
    return cert, key


@pytest.fixture
def tls(certificate: tuple[Path, Path], redis_url: str) -> Iterator[Proxy]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with Proxy(urlsplit(redis_url).port or 0, context) as proxy:
        yield proxy


def use_everything(settings: Settings) -> None:
    """Job store, broker and result backend."""
    client = connect(settings)
    try:
        assert client.ping()
    finally:
        client.close()
    with make_app(settings) as app:
        with app.connection_for_write() as line:
            line.ensure_connection(max_retries=1, timeout=5)
            line.default_channel.client.ping()
        assert app.backend.client.ping()
        app.backend.client.close()


@pytest.mark.parametrize("spelt", ["required", "CERT_REQUIRED", ""])
def test_tls_reaches_all_three(tls: Proxy, certificate: tuple[Path, Path], spelt: str) -> None:
    checked = f"&ssl_cert_reqs={spelt}" if spelt else ""
    url = f"rediss://127.0.0.1:{tls.port}/1?ssl_ca_certs={certificate[0]}{checked}"
    use_everything(load_settings(redis={"url": url}))


def test_a_certificate_that_nobody_vouches_for_is_refused_unless_told_otherwise(tls: Proxy) -> None:
    url = f"rediss://127.0.0.1:{tls.port}/0"
    settings = load_settings(redis={"url": url})
    with pytest.raises(NotRunningError, match="ssl_ca_certs=FILE"), connect(settings) as client, reachable(settings):
        client.ping()
    with make_app(settings) as app, app.connection_for_write() as line, pytest.raises(Exception, match="CERTIFICATE"):
        line.default_channel.client.ping()
    use_everything(load_settings(redis={"url": f"{url}?ssl_cert_reqs=none"}))


def test_a_redis_without_tls_is_said_to_be_one(redis_url: str) -> None:
    settings = load_settings(redis={"url": redis_url.replace("redis:", "rediss:"), "timeout_s": 1})
    with connect(settings) as client, pytest.raises(NotRunningError, match=r"does not (speak TLS|answer)"):  # noqa: SIM117
        with reachable(settings):
            client.ping()


@pytest.mark.parametrize("password", ["p/w", "a;b", "a@b:c", "密码", "100%", "a b#?&="])
def test_any_password_is_the_same_for_redis_and_celery(client: redis.Redis, redis_url: str, password: str) -> None:
    client.config_set("requirepass", password)
    try:
        own = redis.Redis.from_url(redis_url, password=password)
        port = urlsplit(redis_url).port
        use_everything(load_settings(redis={"url": f"redis://:{quote(password, safe='')}@127.0.0.1:{port}/0"}))
    finally:
        own.config_set("requirepass", "")
        own.close()


def test_sentinels_stand_for_the_host_of_the_url() -> None:
    found = address(
        url="rediss://me:p%2Fw@ignored:1/3?ssl_ca_certs=/ca",
        sentinels=["one", "[::1]:7"],
        sentinel_master="jobs",
        sentinel_password="guard",
        timeout_s=2,
    )
    assert found.sentinels == (("one", 26379), ("::1", 7))
    assert found.celery_url == "sentinel://me:p%2Fw@one:26379/3;sentinel://me:p%2Fw@[::1]:7/3"
    assert found.label == "jobs (by Sentinel)"
    kinds = {"ssl": True, "ssl_cert_reqs": "required", "ssl_ca_certs": "/ca"}
    times = {"socket_timeout": 2.0, "socket_connect_timeout": 2.0}
    assert found.celery_options == {"master_name": "jobs", "sentinel_kwargs": {**kinds, **times, "password": "guard"}}
    assert found.celery_tls == {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_ca_certs": "/ca"}


def test_with_sentinels_no_url_is_needed() -> None:
    assert address(sentinels=["a:1"], sentinel_master="m").celery_url == "sentinel://a:1/0"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sentinels": ["a:1"]}, "sentinel_master"),
        ({"sentinels": ["redis://a:1"], "sentinel_master": "m"}, 'no "host:port"'),
        ({"sentinels": ["a:1/0"], "sentinel_master": "m"}, 'no "host:port"'),
        ({"url": "http://a"}, "rediss://"),
        ({"url": "unix:///tmp/redis.sock"}, "rediss://"),
        ({"url": "redis://a/0?socket_timeout=soon"}, "socket_timeout"),
    ],
)
def test_what_is_no_address_is_one_sentence(given: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        address(**given)
    assert "\n" not in str(caught.value)


def test_a_sentinel_may_be_a_host_alone() -> None:
    assert host_and_port("guard.example") == ("guard.example", 26379)
    with pytest.raises(ValueError, match="no host:port"):
        host_and_port("/etc/passwd")
