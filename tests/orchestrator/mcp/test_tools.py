"""Tools are the operations: what a model is told of each, and that neither has what the other lacks."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from orchestrator.mcp.tools import OperationTool, tools_of
from orchestrator.operations.registry import OPERATIONS

TOOLS = tools_of(OPERATIONS.values())
_DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_given_an_operation_when_described_then_its_words_types_and_hints_stand(tool: OperationTool) -> None:
    described, operation = tool.described, tool.operation
    assert described.description.startswith(operation.description)
    assert set(described.input_schema["properties"]) <= operation.parameters()
    assert described.annotations.idempotent_hint is operation.idempotent
    assert described.annotations.read_only_hint is (operation.scope == "read")
    for schema in (described.input_schema, described.output_schema):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert "$ref" not in str(schema)
    for name, argument in described.input_schema["properties"].items():
        assert argument["description"], name
    required = {name for name, field in operation.input.model_fields.items() if field.is_required()}
    assert set(described.input_schema.get("required", ())) == required


def test_given_the_words_for_models_when_compared_then_there_are_some_of_tools_alone() -> None:
    words = tomllib.loads(resources.files("orchestrator.mcp").joinpath("tools.toml").read_text("utf-8"))
    assert set(words) - {"filters"} == set(TOOLS)


def test_given_the_page_when_compared_then_it_has_each_tool() -> None:
    page = (_DOCS / "mcp.md").read_text()
    table = page.partition("## Tools")[2].partition("##")[0]
    named = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(named) == sorted(TOOLS)
