"""Which names a server answers to, and which sites may send it requests from a browser. Pure.

A page of another site can bind its own name to 127.0.0.1 (DNS rebinding) and send forms anywhere (CSRF): the first is
told by the header Host, the second by Origin and Sec-Fetch-Site, which scripts cannot set.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from shared.settings.services import LOOPBACK

_EVERYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - names of no machine


def own_names(host: str, hosts: Collection[str]) -> frozenset[str]:
    """The names that requests may be for: loopback's, the address that is listened on, and those of the settings."""
    own = {host.lower()} - _EVERYWHERE
    return frozenset({*LOOPBACK, *own, *map(str.lower, hosts)})


def name_in(host: str) -> str:
    """The name in a Host header, without its port and brackets."""
    name, _, port = host.lower().rpartition(":")
    if not name or not port.isascii() or not port.isdigit():
        name = host.lower()
    return name.removeprefix("[").removesuffix("]")


def may_ask(host: str, names: Collection[str], local: str = "") -> bool:
    """True for a Host header with one of these names, whatever its port.

    `local`: the address of this machine that the connection came to; a request for it by its number is no rebinding.
    """
    name = name_in(host)
    return name in names or (bool(local) and name == local.lower() and _is_number(name))


def is_loopback(host: str) -> bool:
    """True for a name or address of this machine for itself."""
    name = name_in(host)
    return name in LOOPBACK or (_is_number(name) and ip_address(name).is_loopback)


def _is_number(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def from_elsewhere(host: str, origin: str | None, site: str | None, origins: Collection[str] = ()) -> bool:
    """True for a request that a page of another site makes, by its headers Host, Origin and Sec-Fetch-Site.

    `origins`: sites that may. Programs that are no browsers send neither header.
    """
    if origin is not None and origin.lower() in origins:
        return False
    if site is not None and site not in {"same-origin", "none"}:
        return True
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != host.lower()
    except ValueError:
        return True
