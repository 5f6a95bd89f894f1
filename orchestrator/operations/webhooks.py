"""Webhooks: the endpoints that hear of ended jobs and batches, and what was delivered to them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from orchestrator.access.caller import Scope
from orchestrator.client import Ramify
from orchestrator.operations.operation import HttpRoute, Operation
from orchestrator.webhooks.endpoints import Webhooks
from shared.jobs import reachable
from shared.models.base import Model
from shared.models.request import TenantName
from shared.models.webhook import WebhookDelivery, WebhookEndpoint, WebhookEvent, WebhookUrl
from shared.tenants import DEFAULT_TENANT

_Id = Annotated[str, Field(min_length=1, max_length=100)]
_Tenant = Annotated[TenantName | None, Field(description="whose jobs it hears of; none: everybody's")]


class OfTenant(Model):
    """Whose endpoints and deliveries; None: the operator's, who hears of all tenants and sees everybody's."""

    tenant: _Tenant = None


class NewEndpointInput(OfTenant):
    """A URL that is told of ended jobs and batches. No events: of all."""

    url: WebhookUrl
    events: tuple[WebhookEvent, ...] = Field(
        default=(), max_length=len(WebhookEvent), description="what it hears of; none, or an empty list: of all"
    )


class EndpointShown(WebhookEndpoint):
    """A new endpoint. `secret` signs what is sent to it, and is told this once."""

    secret: str


class EndpointList(Model):
    """Endpoints, the newest first."""

    endpoints: tuple[WebhookEndpoint, ...]


class EndpointId(OfTenant):
    """One endpoint."""

    id: _Id = Field(description="of an endpoint")


class DeliveriesInput(OfTenant):
    """Which deliveries."""

    endpoint: _Id | None = Field(default=None, description="of this endpoint only")
    limit: int = Field(default=20, ge=1, le=1000, description="how many")


class DeliveryList(Model):
    """Deliveries, the newest first."""

    deliveries: tuple[WebhookDelivery, ...]


class DeliveryId(OfTenant):
    """One delivery."""

    id: _Id = Field(description="of a delivery, as its header webhook-id has it")


class SecretInput(Model):
    """Whose requests name the URLs."""

    tenant: TenantName = DEFAULT_TENANT


class SecretShown(Model):
    """The secret that signs what goes to the URLs that requests name. It is told this once."""

    tenant: str
    secret: str


def _of(client: Ramify, given: OfTenant) -> Webhooks:
    return client.for_tenant(given.tenant).webhooks


def _add(client: Ramify, given: NewEndpointInput) -> EndpointShown:
    with reachable(client.settings):
        made = _of(client, given).add(given.url, given.events)
    return EndpointShown(**dict(made.endpoint), secret=made.secret.get_secret_value())


def _list(client: Ramify, given: OfTenant) -> EndpointList:
    with reachable(client.settings):
        return EndpointList(endpoints=tuple(_of(client, given).endpoints()))


def _remove(client: Ramify, given: EndpointId) -> WebhookEndpoint:
    with reachable(client.settings):
        return _of(client, given).remove(given.id)


def _enable(client: Ramify, given: EndpointId) -> WebhookEndpoint:
    with reachable(client.settings):
        return _of(client, given).enable(given.id)


def _deliveries(client: Ramify, given: DeliveriesInput) -> DeliveryList:
    with reachable(client.settings):
        return DeliveryList(deliveries=tuple(_of(client, given).deliveries(given.limit, given.endpoint)))


def _redeliver(client: Ramify, given: DeliveryId) -> WebhookDelivery:
    with reachable(client.settings):
        return _of(client, given).redeliver(given.id)


def _secret(client: Ramify, given: SecretInput) -> SecretShown:
    with reachable(client.settings):
        secret = client.for_tenant(given.tenant).webhooks.new_secret()
    return SecretShown(tenant=given.tenant, secret=secret.get_secret_value())


_ADMIN = Scope.ADMIN
ADD = Operation(
    "webhooks_add", NewEndpointInput, EndpointShown, _add, _ADMIN, command="webhooks add", idempotent=False,
    routes=(HttpRoute("POST", "/v1/webhooks", 201),),
)  # fmt: skip
LIST = Operation(
    "webhooks_list", OfTenant, EndpointList, _list, _ADMIN, command="webhooks list",
    routes=(HttpRoute("GET", "/v1/webhooks"),),
)  # fmt: skip
REMOVE = Operation(
    "webhooks_remove", EndpointId, WebhookEndpoint, _remove, _ADMIN, command="webhooks remove",
    routes=(HttpRoute("DELETE", "/v1/webhooks/{id}"),),
)  # fmt: skip
ENABLE = Operation(
    "webhooks_enable", EndpointId, WebhookEndpoint, _enable, _ADMIN, command="webhooks enable",
    routes=(HttpRoute("POST", "/v1/webhooks/{id}/enable"),),
)  # fmt: skip
DELIVERIES = Operation(
    "webhooks_deliveries", DeliveriesInput, DeliveryList, _deliveries, _ADMIN, command="webhooks deliveries",
    routes=(HttpRoute("GET", "/v1/deliveries"),),
)  # fmt: skip
REDELIVER = Operation(
    "webhooks_redeliver", DeliveryId, WebhookDelivery, _redeliver, _ADMIN, command="webhooks redeliver",
    idempotent=False, routes=(HttpRoute("POST", "/v1/deliveries/{id}/redeliver", 202),),
)  # fmt: skip
SECRET = Operation(
    "webhooks_secret", SecretInput, SecretShown, _secret, _ADMIN, command="webhooks secret", idempotent=False,
    routes=(HttpRoute("POST", "/v1/webhooks/secret", 201),),
)  # fmt: skip
OPERATIONS: tuple[Operation[Any], ...] = (ADD, LIST, REMOVE, ENABLE, DELIVERIES, REDELIVER, SECRET)
