"""Makes a route of every way to an operation: parameters and body from its input, the response from its output."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain, islice
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, TypeAdapter, create_model
from pydantic.fields import FieldInfo
from starlette.datastructures import Headers

from orchestrator.access.caller import Caller, Scope
from orchestrator.access.dependency import caller_with
from orchestrator.access.places import Places
from orchestrator.client import Ramify
from orchestrator.operations.operation import HttpRoute, Operation
from orchestrator.operations.wording import over_http
from orchestrator.server.problems import MEDIA_TYPE
from shared.errors import InputError
from shared.models.base import Model
from shared.models.told import told_by

JSON_LINES = "application/jsonl"
#: Rows that one step of a stream writes.
_ROWS = 200
_NAMES = re.compile(r"\{(\w+)\}")
#: What each status says in the OpenAPI document.
_PROBLEMS = {
    400: "The body is no JSON.",
    401: "No key, or one that is not known.",
    403: "The key may not do that.",
    404: "There is no such thing, or it is not the caller's.",
    408: "The body did not come in time.",
    409: "There is nothing to give (yet), or something is in the way.",
    413: "The body is too large.",
    415: "The body is not declared as JSON, or is packed.",
    422: "A value cannot be used; `field` says which, `fix` what to give instead.",
    429: "Too much waits, or was asked; Retry-After says for how long.",
    500: "A fault of the server.",
    503: "A part of Ramify does not answer.",
}


def responses_of(route: HttpRoute) -> dict[int | str, dict[str, Any]]:
    """The problems that any route may answer with, for the OpenAPI document."""
    schema = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    has_body = route.method == "POST"
    told = {status: said for status, said in _PROBLEMS.items() if has_body or status not in {400, 408, 413, 415}}
    return {status: {"description": said, "content": schema, "model": None} for status, said in told.items()}


def client_of(request: Request, caller: Caller, scope: Scope = Scope.READ) -> Ramify:
    """The client of this process, bound to the caller's tenant; for operators one of all tenants."""
    client: Ramify = request.app.state.ramify
    return caller.client(client, scope)


def router_of(operations: Iterable[Operation[Any]]) -> APIRouter:
    """The routes of these operations, without those that are written by hand."""
    router = APIRouter()
    for operation in operations:
        for number, route in enumerate(operation.routes):
            if not route.by_hand:
                _add(router, operation, route, number)
    return router


def _add(router: APIRouter, operation: Operation[Any], route: HttpRoute, number: int) -> None:
    output = route.output or operation.output
    kind = route.fixed.get("kind")
    router.add_api_route(
        route.path,
        _endpoint(operation, route, TypeAdapter(output)),
        methods=[route.method],
        status_code=route.status,
        operation_id=f"{kind}_{operation.name}" if number and kind else operation.name,
        summary=operation.description,
        response_model=None if operation.rows else output,
        responses=responses_of(route) | (_lines_of(output) if operation.rows else {}),
        tags=[route.path.split("/")[2]],
    )


def _lines_of(output: Any) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": "One JSON object a line.", "model": output, "content": {JSON_LINES: {}}}}


def _endpoint(operation: Operation[Any], route: HttpRoute, output: TypeAdapter[Any]) -> Callable[..., Response]:
    """A function with the signature that FastAPI reads: path, headers, and one model for query or body."""
    named, headed = _NAMES.findall(route.path), dict(route.headers)

    def endpoint(request: Request, caller: Caller, options: BaseModel | None = None, **parts: Any) -> Response:
        sent = {name: one_value(header, request.headers, getattr(options, name)) for name, header in headed.items()}
        given = _given(operation.input, options, parts, sent, route.fixed)
        places: Places = request.app.state.waiting
        with places.take(caller) if operation.waits else nullcontext(), _fields_as_sent(headed, parts):
            found = operation.run(client_of(request, caller, operation.scope), given)
        batch_id = parts["id"] if route.fixed.get("kind") == "batch" else ""
        context = told_by(partial(over_http, None, batch_id=batch_id), remote=caller.remote)
        return streamed(found, context) if operation.rows else _written(found, output, route, context)

    endpoint.__name__ = endpoint.__qualname__ = operation.name
    endpoint.__doc__ = operation.description
    endpoint.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*_own(operation.scope), *_parts(operation.input, named, headed), *_options(operation, route, named)]
    )
    return endpoint


def _own(scope: Scope) -> Iterator[inspect.Parameter]:
    yield _parameter("request", Request)
    yield _parameter("caller", Annotated[Caller, Depends(caller_with(scope))])


def _parts(taken: type[Model], named: list[str], headed: Mapping[str, str]) -> Iterator[inspect.Parameter]:
    for name in named:
        field = taken.model_fields[name]
        yield _parameter(
            name, Annotated[_with(field, Path(description=field.description, json_schema_extra=_extra(field)))]
        )
    for name, header in headed.items():
        field = taken.model_fields[name]
        yield _parameter(
            f"header_{name}",
            Annotated[_with(field, Header(alias=header, json_schema_extra=_extra(field)))],
            default=None,
        )


def _with(field: FieldInfo, marker: FieldInfo) -> tuple[Any, ...]:
    return (field.annotation, *field.metadata, marker)


def _extra(field: FieldInfo) -> dict[str, Any] | None:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else None


def _options(operation: Operation[Any], route: HttpRoute, named: list[str]) -> Iterator[inspect.Parameter]:
    """What else the input has, as one model: unknown names are refused."""
    without = {*named, *route.fixed}
    fields = {name: field for name, field in operation.input.model_fields.items() if name not in without}
    if not fields:
        return
    model: type[BaseModel] = operation.input
    if without:
        kind = str(route.fixed.get("kind", "")).capitalize()
        own: Any = {name: (field.annotation, field) for name, field in fields.items()}
        model = create_model(f"{kind}{operation.input.__name__}Options", __base__=Model, **own)
    marker = Body() if route.method == "POST" else Query()
    default = inspect.Parameter.empty if any(field.is_required() for field in fields.values()) else model()
    yield _parameter("options", Annotated[model, marker], default=default)


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _given(
    taken: type[Model],
    options: BaseModel | None,
    parts: Mapping[str, Any],
    sent: Mapping[str, Any],
    fixed: Mapping[str, Any],
) -> Model:
    """The operation's input. `sent`: what headers say."""
    given = {name: getattr(options, name) for name in options.model_fields_set} if options else {}
    given |= {name: value for name, value in sent.items() if value is not None}
    own = {name: value for name, value in parts.items() if not name.startswith("header_")}
    return taken(**{**given, **own, **fixed})


def one_value(header: str, sent: Headers, beside: str | None = None) -> str | None:
    """What a header and the body's field `beside` it say. Raises: InputError where that is not one thing."""
    said = dict.fromkeys([*sent.getlist(header), *([] if beside is None else [beside])])
    if len(said) > 1:
        raise InputError(header, list(said), "it is given twice, and differs: send one of the two")
    return next(iter(said), None)


@contextmanager
def _fields_as_sent(headed: Mapping[str, str], parts: Mapping[str, Any]) -> Iterator[None]:
    """An error of a field that came as a header names the header."""
    try:
        yield
    except InputError as error:
        if error.field in headed and parts.get(f"header_{error.field}"):
            raise type(error)(headed[error.field], error.value, error.fix) from None
        raise


def _written(found: Any, output: TypeAdapter[Any], route: HttpRoute, context: Any) -> Response:
    location = {"Location": route.location.format(**vars(found))} if route.location else None
    return Response(output.dump_json(found, context=context), route.status, location, "application/json")


def streamed(rows: Iterable[BaseModel], context: Any = None) -> Response:
    """One line for each. The first page is made before the response begins: what it raises is a problem."""
    rows = iter(rows)
    first = list(islice(rows, _ROWS))

    def pages() -> Iterator[bytes]:
        page = first
        while page:
            yield b"".join(row.model_dump_json(context=context).encode() + b"\n" for row in page)
            page = list(islice(rows, _ROWS))

    return StreamingResponse(chain(pages()), media_type=JSON_LINES)
