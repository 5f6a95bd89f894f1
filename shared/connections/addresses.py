"""The address of Redis, read once from `redis.url` and the Sentinel settings, for redis-py and for Celery.

The two spell TLS options and Sentinel differently.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from redis.connection import parse_url

from shared.errors import SettingsError
from shared.settings.services import RedisSettings

#: The kernel notices a half-open connection (a machine lost power, a firewall forgot it) after 10 + 3 x 5 s. Not every
#: system has all of these.
KEEPALIVE: Mapping[int, int] = MappingProxyType(
    {
        getattr(socket, name): value
        for name, value in {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}.items()
        if hasattr(socket, name)
    }
)
_CERTIFICATES = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_SENTINEL_PORT = 26_379


def health_check_s(settings: RedisSettings) -> float:
    """Idle seconds after which a connection is checked with a PING; without a reply for as long it is dead."""
    return settings.timeout_s


class SecretOptions(Mapping[str, Any]):
    """Options of connections, passwords among them: read by name, but shown and sent as their names alone.

    Celery tells a worker's transport options to whoever asks for its `stats`, as Flower does.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)

    def __getitem__(self, name: str) -> Any:
        return self._options[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._options)})"

    def __json__(self) -> str:
        """As kombu sends it."""
        return repr(self)


class Address:
    """One Redis, or the one that Sentinel names the master now."""

    def __init__(self, settings: RedisSettings) -> None:
        """Raises: SettingsError when `redis.url` has an option that cannot be used."""
        self._settings = settings
        self.url = settings.url.get_secret_value()
        untyped: Any = parse_url
        try:
            self.options: dict[str, Any] = dict(untyped(self.redis_url))
        except ValueError as error:
            raise SettingsError("redis.url", self.label, f"{error}") from None
        self.tls = self.options.pop("connection_class", None) is not None

    @property
    def master(self) -> str:
        """The name of the master that Sentinel watches; empty without Sentinel."""
        return self._settings.sentinel_master if self._settings.sentinels else ""

    @cached_property
    def sentinels(self) -> tuple[tuple[str, int], ...]:
        """Host and port of each Sentinel."""
        return tuple(host_and_port(one) for one in self._settings.sentinels)

    @property
    def label(self) -> str:
        """For people: host and port, or the master's name; without a password."""
        if self._settings.sentinels:
            return f"{self._settings.sentinel_master} (by Sentinel)"
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port or 6379}" if parts.hostname else parts.path

    @property
    def certificates(self) -> dict[str, Any]:
        """The TLS options as redis-py takes them; certificates are checked unless the URL says otherwise."""
        if not self.tls:
            return {}
        return {"ssl_cert_reqs": "required"} | {k: v for k, v in self.options.items() if k.startswith("ssl_")}

    @property
    def sentinel_options(self) -> dict[str, Any]:
        """Options for the connections to the Sentinels: their own login, TLS where the master has it."""
        seconds, given = self._settings.timeout_s, self._settings
        login = {"username": given.sentinel_username, "password": given.sentinel_password.get_secret_value()}
        timeouts = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
        tls = {"ssl": True, **self.certificates} if self.tls else {}
        return timeouts | tls | {name: value for name, value in login.items() if value}

    @property
    def celery_url(self) -> str:
        """As broker and as result backend of Celery; TLS options stand in `celery_tls`."""
        parts = urlsplit(self.url)
        if not self._settings.sentinels:
            return urlunsplit(parts._replace(query="", fragment=""))
        login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
        database = self.options.get("db", 0)
        hosts = [(f"[{host}]" if ":" in host else host, port) for host, port in self.sentinels]
        return ";".join(f"sentinel://{login}{quote(host, safe='[]:')}:{port}/{database}" for host, port in hosts)

    @property
    def celery_tls(self) -> SecretOptions | None:
        """For broker_use_ssl and redis_backend_use_ssl; None without TLS."""
        if not self.tls:
            return None
        found = self.certificates
        return SecretOptions({**found, "ssl_cert_reqs": _CERTIFICATES[found["ssl_cert_reqs"]]})

    @property
    def celery_options(self) -> dict[str, Any]:
        """Transport options of broker and backend: how to find the master."""
        if not self._settings.sentinels:
            return {}
        return {"master_name": self.master, "sentinel_kwargs": SecretOptions(self.sentinel_options)}

    @property
    def redis_url(self) -> str:
        """As redis-py reads it: Celery's documentation writes CERT_REQUIRED where redis-py wants `required`."""
        url = self.url
        for name in _CERTIFICATES:
            url = url.replace(f"ssl_cert_reqs=CERT_{name.upper()}", f"ssl_cert_reqs={name}")
        return url


def host_and_port(text: str) -> tuple[str, int]:
    """`host`, `host:port` or `[v6]:port`; the port is Sentinel's usual one unless given. Raises: ValueError."""
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.path or parts.username or parts.query:
        raise ValueError(f"{text!r} is no host:port")
    return parts.hostname, parts.port or _SENTINEL_PORT
