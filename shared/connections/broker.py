"""The address of RabbitMQ, read once from `broker.url`, and its errors as one sentence. Pure."""

from __future__ import annotations

import re
import ssl
import tomllib
from functools import cache
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from shared.errors import SettingsError, shown
from shared.settings.broker import BrokerSettings

_PORTS = {"amqp": 5672, "amqps": 5671}
#: TLS options by the names that RabbitMQ's own URLs have for them, and those of Python's ssl.
_FILES = {"cacertfile": "ca_certs", "certfile": "certfile", "keyfile": "keyfile"}
_VERIFY = {"verify_peer": ssl.CERT_REQUIRED, "verify_none": ssl.CERT_NONE}


class RabbitAddress:
    """One RabbitMQ, or the nodes of one cluster."""

    def __init__(self, settings: BrokerSettings) -> None:
        """Raises: SettingsError for an option of the URL that there is not."""
        self._nodes = [urlsplit(one) for one in settings.url.get_secret_value().split(";") if one]
        self._options = {name: found[-1] for name, found in parse_qs(self._nodes[0].query).items()}
        if unknown := sorted({*self._options} - {*_FILES, "verify"}):
            known = ", ".join((*_FILES, "verify"))
            raise SettingsError("broker.url", unknown[0], f"it has no such option; those are {known}")
        if (verify := self._options.get("verify", "verify_peer")) not in _VERIFY:
            raise SettingsError("broker.url", verify, f"verify is one of {', '.join(_VERIFY)}")

    @property
    def label(self) -> str:
        """For people, as the beginning of a sentence: hosts, ports and virtual host; without a login."""
        hosts = ", ".join(f"{one.hostname or 'localhost'}:{one.port or _PORTS[one.scheme]}" for one in self._nodes)
        vhost = unquote(self._nodes[0].path[1:]) or "/"
        return f"RabbitMQ at {hosts}, virtual host {shown(vhost)}"

    @property
    def celery_url(self) -> str:
        """As kombu reads it: TLS options stand in `tls`."""
        return ";".join(urlunsplit(one._replace(query="", fragment="")) for one in self._nodes)

    @property
    def tls(self) -> dict[str, Any] | None:
        """For broker_use_ssl; None without TLS. Certificates are checked unless the URL says otherwise.

        A plain dictionary: of any other mapping py-amqp takes nothing, and checks no host name then.
        """
        if self._nodes[0].scheme != "amqps":
            return None
        verify = _VERIFY[self._options.get("verify", "verify_peer")]
        files = {ours: self._options[name] for name, ours in _FILES.items() if name in self._options}
        # kombu puts the host of the URL in the place of None.
        return {"cert_reqs": verify, **({"server_hostname": None} if verify else {}), **files}


def broker_label(settings: BrokerSettings) -> str:
    """Where RabbitMQ is; empty where Redis is the broker. Raises: SettingsError."""
    return RabbitAddress(settings).label if settings.rabbitmq else ""


class _BrokerFault(NamedTuple):
    words: re.Pattern[str]
    says: str
    final: bool


@cache
def _faults() -> tuple[_BrokerFault, ...]:
    table = resources.files("shared.connections").joinpath("broker_errors.toml").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(table)["faults"]
    return tuple(_BrokerFault(re.compile(row["words"]), row["says"], row.get("final", False)) for row in rows)


def broker_fault(error: BaseException) -> tuple[str, bool]:
    """The end of a sentence that begins with a label; whether it stays so until somebody changes something."""
    said = f"{type(error).__name__}: {error}"
    for known in _faults():
        if known.words.search(said):
            return known.says, known.final
    return f"refused a command ({shown(said)}): `ramify doctor` says more", False
