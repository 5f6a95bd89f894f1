"""JSON Schemas as models read them best: without references, titles, and a null for each argument left out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]
#: What says nothing to who fills in arguments.
_NOISE = ("$defs", "title", "default", "additionalProperties", "pattern")


def input_schema(model: type[BaseModel], words: Mapping[str, str]) -> Schema:
    """The schema of the fields of `model` that `words` names, and of `filters.tags` and the like within them.

    `words` are the descriptions; a field of a field that has none there keeps its own.
    """
    whole = model.model_json_schema()
    lean = _lean(whole, whole.get("$defs", {}))
    shown = _chosen(lean, words)
    return {"type": "object", **shown, "additionalProperties": False}


def output_schema(views: Sequence[type[BaseModel]]) -> Schema:
    """The schema of what is one of these views."""
    wholes = [view.model_json_schema() for view in views]
    ways = [_lean(whole, whole.get("$defs", {})) for whole in wholes]
    return ways[0] if len(ways) == 1 else {"type": "object", "anyOf": ways}


def _chosen(schema: Schema, words: Mapping[str, str]) -> Schema:
    properties = {}
    for name, text in words.items():
        if "." in name:
            continue
        inner = {key.partition(".")[2]: value for key, value in words.items() if key.startswith(f"{name}.")}
        own = schema["properties"][name]
        if inner and own.get("type") == "object":
            own = {**own, **_chosen(own, inner)}
        properties[name] = {**own, "description": text}
    required = [name for name in schema.get("required", ()) if name in properties]
    return {"properties": properties, **({"required": required} if required else {})}


def _lean(schema: Any, known: Mapping[str, Schema]) -> Any:
    """`schema` with what it refers to in its place. Raises: RecursionError for a model that holds itself."""
    if isinstance(schema, list):
        return [_lean(one, known) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        meant = known[schema["$ref"].rpartition("/")[2]]
        return _lean({**meant, **{key: value for key, value in schema.items() if key != "$ref"}}, known)
    if "properties" in schema:
        fields = {name: _lean(field, known) for name, field in schema["properties"].items()}
        return {**_lean({k: v for k, v in schema.items() if k != "properties"}, known), "properties": fields}
    ways = schema.get("anyOf", ())
    if len(ways) == 2 and {"type": "null"} in ways:
        (way,) = (one for one in ways if one != {"type": "null"})
        return _lean({**way, **{key: value for key, value in schema.items() if key != "anyOf"}}, known)
    return {key: _lean(value, known) for key, value in schema.items() if key not in _NOISE}
