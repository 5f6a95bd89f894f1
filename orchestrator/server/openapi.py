"""The OpenAPI document: what FastAPI reads off the routes, with problems, links and the names that are known here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from orchestrator.operations.operation import HttpRoute, Operation
from orchestrator.server.problems import MEDIA_TYPE, Problem
from orchestrator.server.routes import responses_of

_UNUSED = ("HTTPValidationError", "ValidationError")
#: Field of an output that names what was made -> where that is found.
_MADE = {"job_id": "/v1/jobs/{id}", "batch_id": "/v1/batches/{id}"}
Described = dict[str, Any]
#: How a key is sent, and the paths that want none.
_SCHEMES: Described = {
    "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "rmf_<id>_<secret>"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
_PUBLIC = {"/healthz", "/readyz"}


def described(app: FastAPI, operations: Iterable[Operation[Any]], strategies: Iterable[str]) -> Described:
    """The document, made once."""
    if app.openapi_schema is None:
        document = FastAPI.openapi(app)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = Problem.model_json_schema()
        known = list(operations)
        schemas |= {name: schema for name, schema in _bodies(known).items() if name not in schemas}
        for operation in known:
            _name_strategies(schemas.get(operation.input.__name__, {}), sorted(strategies))
        for operation, route, method in _routes(document, known):
            method["x-scope"] = operation.scope.value
            if route.by_hand:
                method.update(summary=operation.description, description=operation.description)
                method["responses"] = {
                    str(status): {name: part for name, part in told.items() if part is not None}
                    for status, told in responses_of(route).items()
                } | {status: told for status, told in method["responses"].items() if not _is_frameworks(told)}
            _link(document, operation, method["responses"].get(str(route.status), {}))
        for unused in _UNUSED:
            schemas.pop(unused, None)
        document["components"]["securitySchemes"] = _SCHEMES
        needs_key = app.state.callers.needs_key
        document["security"] = [{name: []} for name in _SCHEMES] + ([] if needs_key else [{}])
        for path in _PUBLIC & document["paths"].keys():
            document["paths"][path]["get"]["security"] = []
        app.openapi_schema = document
    return app.openapi_schema


def _bodies(operations: Iterable[Operation[Any]]) -> Described:
    """The schemas of bodies that routes written by hand read themselves, by name."""
    inputs = {one.input for one in operations for route in one.routes if route.by_hand and route.method == "POST"}
    wanted: Any = [(model, "validation") for model in sorted(inputs, key=lambda model: model.__name__)]
    found: Described = models_json_schema(wanted, ref_template="#/components/schemas/{model}")[1].get("$defs", {})
    return found


def _routes(
    document: Described, operations: Iterable[Operation[Any]]
) -> Iterator[tuple[Operation[Any], HttpRoute, Described]]:
    for operation in operations:
        for route in operation.routes:
            yield operation, route, document["paths"][route.path.replace(":path", "")][route.method.lower()]


def _name_strategies(schema: Described, names: list[str]) -> None:
    """A request's field `strategy` takes the names that the settings have."""
    field = schema.get("properties", {}).get("strategy")
    if field:
        field["anyOf"] = [{"type": "string", "enum": names}, {"type": "null"}]


def _link(document: Described, operation: Operation[Any], response: Described) -> None:
    """Say where what was made is found, with all that can be asked of it."""
    for field, place in _MADE.items():
        if not operation.long or field not in getattr(operation.output, "model_fields", {}):
            continue
        asked = {path: methods for path, methods in document["paths"].items() if path.startswith(place)}
        links = response.setdefault("links", {})
        for methods in asked.values():
            for method in methods.values():
                name = method["operationId"]
                links[name] = {"operationId": name, "parameters": {"id": f"$response.body#/{field}"}}


def _is_frameworks(response: Described) -> bool:
    """FastAPI's own description of an invalid request, which is a problem here."""
    return MEDIA_TYPE not in response.get("content", {}) and "HTTPValidationError" in str(response)
