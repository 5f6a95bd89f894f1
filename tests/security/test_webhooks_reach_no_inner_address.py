"""Webhooks go to public addresses only, however an inner one is written or bound, unless the settings name it."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import pytest

from orchestrator.webhooks import request
from orchestrator.webhooks.addresses import check_url, is_public, resolve
from shared.errors import InputError, PermanentError, TransientError
from shared.models.webhook import webhook_url
from shared.settings import Settings, load_settings
from shared.settings.access import WebhookSettings
from tests.fakes.webhook_receiver import WebhookReceiver

HTTP = WebhookSettings(allow_http=True, timeout_s=2)
#: Hosts of loopback, private, link-local, shared, unique-local and metadata addresses, as somebody might hide them.
INNER = (
    "127.0.0.1", "127.1", "127.000.000.001", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "2130706433", "017700000001",
    "0", "0.0.0.0", "127.255.255.254",  # noqa: S104 - refused
    "localhost", "LOCALHOST.", "foo.localhost", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::7f00:1]",
    "[64:ff9b::10.0.0.1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2001:0:0:0:0:0:5601:5601]",
    "10.0.0.1", "10.1", "172.16.0.1", "192.168.1.1", "3232235777", "100.64.0.1", "100.100.100.200",
    "169.254.169.254", "0xa9fea9fe", "2852039166", "[fe80::1]", "[fd00:ec2::254]", "[fc00::1]", "[fec0::1]",
    "168.63.129.16", "192.0.0.192", "224.0.0.1", "255.255.255.255", "[ff02::1]", "198.18.0.1", "203.0.113.1",
    "[2001:db8::1]",
)  # fmt: skip


@pytest.mark.parametrize("host", INNER)
def test_an_inner_address_is_refused_when_it_is_named_and_when_it_is_called(host: str) -> None:
    url = f"https://{host}/hook"
    with pytest.raises(InputError, match="is no address of a public server"):
        check_url(webhook_url(url), HTTP)
    with pytest.raises((PermanentError, TransientError)):
        request.post(url, {}, "{}", HTTP)


@pytest.mark.parametrize(
    "public", ["93.184.215.14", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_a_public_address_may_be_called(public: str) -> None:
    assert is_public(ip_address(public))
    check_url(f"https://[{public}]/" if ":" in public else f"https://{public}/", HTTP)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "//example.com/", "example.com", "https://",
        "https://:443/", "https://example.com:0/", "https://example.com:99999/", "https://user:pw@example.com/",
        "https://example.com@127.0.0.1/", "https://example.com/#x",
        "https://example.com/\r\nX-Header: 1", "https://example.com/a b",
        "https://example.com/\x00", "https://ⓔxample.com/", "https://[::1",
        "https://exa{mple.com/", f"https://example.com/{'a' * 2000}",
    ],
)  # fmt: skip
def test_what_is_no_plain_url_is_refused(url: str) -> None:
    with pytest.raises(InputError) as caught:
        webhook_url(url)
    assert caught.value.field == "webhook"
    assert "\n" not in str(caught.value)


def bound(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[Any]:
    """A name server that answers so, one look-up after another; the look-ups that were made."""
    left, asked = list(answers), list[Any]()

    def found(host: str, port: int, **_: object) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in left.pop(0)]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    return asked


def test_every_address_of_a_name_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    bound(monkeypatch, ["1.1.1.1", "127.0.0.1"])
    with pytest.raises(PermanentError, match=r"127\.0\.0\.1 is no address of a public server"):
        request.post("http://hook.example/", {}, "{}", HTTP)


def test_a_name_is_resolved_once_and_the_address_that_was_checked_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    with WebhookReceiver() as receiver:
        asked = bound(monkeypatch, ["1.1.1.1"], ["127.0.0.1"])
        called = list[Any]()

        def connect(address: Any, timeout: float) -> socket.socket:
            called.append(address)
            raise ConnectionRefusedError

        monkeypatch.setattr(socket, "create_connection", connect)
        with pytest.raises(TransientError):
            request.post(f"http://hook.example:{receiver.port}/", {}, "{}", HTTP)
        assert asked == ["hook.example"]
        assert called == [("1.1.1.1", receiver.port)]
        assert receiver.received == []


def test_networks_of_the_settings_may_be_called_and_no_others() -> None:
    own = WebhookSettings(allow_networks=("10.1.0.0/16", "::1"))
    assert [str(one) for one in resolve(urlsplit("https://10.1.2.3/"), own)] == ["10.1.2.3"]
    check_url("https://[::ffff:10.1.2.3]/", own)
    for url in ("https://10.2.0.1/", "https://127.0.0.1/"):
        with pytest.raises(InputError):
            check_url(url, own)
    with pytest.raises(InputError, match=r"webhooks\.allow_http"):
        check_url("http://10.1.2.3/", own)
    with pytest.raises(InputError, match="is no network"):
        load_settings(webhooks={"allow_networks": ["10.0.0.0/99"]})


def test_a_redirect_leads_nowhere() -> None:
    with WebhookReceiver() as inner, WebhookReceiver(307) as receiver:
        receiver.headers = {"Location": inner.url}
        allowed = HTTP.model_copy(update={"allow_networks": ("127.0.0.1",)})
        assert request.post(receiver.url, {}, "{}", allowed).status == 307
        assert inner.received == []


def test_a_reply_without_an_end_is_read_up_to_a_bound(settings: Settings) -> None:
    with WebhookReceiver() as receiver:
        receiver.headers = {"X-Long": "a" * 70_000}
        allowed = HTTP.model_copy(update={"allow_networks": ("127.0.0.1",)})
        with pytest.raises(TransientError, match="16,384 bytes of headers"):
            request.post(receiver.url, {}, "{}", allowed)
