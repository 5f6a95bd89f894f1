"""Which addresses a webhook may be sent to: public ones, and those that the settings allow.

A name is resolved once, every address that it has is checked, and the connection is made to one of those: a name that
is bound to another address afterwards (DNS rebinding) changes nothing.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import SplitResult, urlsplit

from shared.errors import InputError, PermanentError, TransientError
from shared.settings.access import WebhookSettings

Address = IPv4Address | IPv6Address
#: Global by their number, but a service of the machine's own cloud (Azure, Oracle) or of its network.
_INNER_IPV4 = tuple(map(IPv4Network, ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24")))
#: What is assigned to public hosts so far.
_GLOBAL_IPV6 = IPv6Network("2000::/3")
#: Addresses of IPv6 that end with one of IPv4: for translators (RFC 6052, RFC 8215), and the IPv4-compatible form.
_HOLDING_IPV4 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/96"), IPv6Network("::/96"))
_NEVER = "is no address of a public server"


def check_url(url: str, settings: WebhookSettings) -> None:
    """What can be said of a URL without asking a name server. Raises: InputError."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not settings.allow_http:
        raise InputError("webhook", url, "write https://, or allow plain HTTP with webhooks.allow_http")
    try:
        _checked(_literal(parts.hostname or ""), settings)
    except PermanentError as error:
        raise InputError("webhook", url, str(error)) from None


def resolve(parts: SplitResult, settings: WebhookSettings) -> list[Address]:
    """All addresses of a URL's host. Raises: PermanentError when one may not be called, TransientError without any."""
    host = parts.hostname or ""
    try:
        found = socket.getaddrinfo(host, port_of(parts), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise TransientError("its name cannot be resolved") from None
    return _checked([_address(entry[4][0]) for entry in found], settings)


def port_of(parts: SplitResult) -> int:
    """The port of a URL."""
    return parts.port or (443 if parts.scheme == "https" else 80)


def _literal(host: str) -> list[Address]:
    """The address that a host is written as, in any way that the resolver reads (0x7f.1, 017700000001); else none."""
    if host == "localhost" or host.endswith((".localhost", ".localhost.")) or host == "localhost.":
        return [ip_address("127.0.0.1")]
    try:
        return [_address(host)] if ":" in host else [ip_address(socket.inet_aton(host))]
    except (OSError, ValueError):
        return []


def _address(given: Any) -> Address:
    return ip_address(str(given).partition("%")[0])


def _checked(found: list[Address], settings: WebhookSettings) -> list[Address]:
    networks = [ip_network(one) for one in settings.allow_networks]
    for address in found:
        allowed = any(one in network for network in networks for one in (address, _meant(address)))
        if not allowed and not is_public(address):
            raise PermanentError(
                f"{address} {_NEVER}: webhooks go to others only where webhooks.allow_networks names them"
            )
    return found


def is_public(address: Address) -> bool:
    """False for loopback, private, link-local, unique-local, shared, reserved and multicast addresses."""
    meant = _meant(address)
    if not meant.is_global or meant.is_multicast:
        return False
    if isinstance(meant, IPv6Address):
        return meant in _GLOBAL_IPV6
    return not any(meant in network for network in _INNER_IPV4)


def _meant(address: Address) -> Address:
    """The address of IPv4 that one of IPv6 stands for; any other as it is."""
    if isinstance(address, IPv4Address):
        return address
    if address.teredo:
        return address.teredo[1]
    held = address.ipv4_mapped or address.sixtofour
    if held is None and any(address in network for network in _HOLDING_IPV4):
        held = IPv4Address(int(address) & 0xFFFFFFFF)
    return held or address
