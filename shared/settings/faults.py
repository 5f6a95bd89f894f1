"""Turns pydantic's validation errors into one clear sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError

from shared.errors import InputError, MissingError, SettingsError
from shared.models.request import NAME_FORM, TENANT_FORM
from shared.plugins import STAGES, plugins
from shared.settings.sections import nearest
from shared.settings.strategies import BUILT_IN as _STAGES
from shared.settings.strategies import TAGS, stage_models

#: Of these names no value is repeated: a URL holds a login, and a bad one may hold it anywhere.
_MAY_BE_SECRET = re.compile("key|auth|password|url|sentinels")
_FIELD = re.compile(r'field "(\w+)"')
#: Stands for a value that may be a secret: one under a misspelt name could be anything.
HIDDEN = "the value given"
#: What a pattern wants.
_FORMS = {
    NAME_FORM: "use 1 to 64 letters, digits, dots, dashes and underscores",
    TENANT_FORM: "use 1 to 64 ASCII letters, digits, dots, dashes and underscores",
}
_TABLE, _LIST = "write a table of names and values", "write a list, in brackets"
_WANTED = {
    "model_type": _TABLE, "model_attributes_type": _TABLE, "dict_type": _TABLE, "mapping_type": _TABLE,
    "missing": "it is missing: give it", "extra_forbidden": "there is no such field: leave it out",
    "tuple_type": _LIST, "list_type": _LIST, "set_type": _LIST, "frozen_set_type": _LIST,
}  # fmt: skip


def first_fault(error: ValidationError, model: type[BaseModel]) -> SettingsError:
    """The first fault of settings, naming the setting with its section: `search.strategy`. `model`: all settings."""
    try:
        return _settings_fault(error.errors()[0], model)
    except UnicodeEncodeError:  # its message holds the value
        return SettingsError("settings", HIDDEN, "a value holds half a surrogate pair: write the character itself")


def _settings_fault(fault: Any, model: type[BaseModel]) -> SettingsError:
    where = [str(part) for part in fault["loc"] if part not in TAGS]
    if fault["type"] == "unknown_strategy":
        return SettingsError(fault["ctx"]["field"], fault["ctx"]["name"], fault["ctx"]["hint"])
    if fault["type"] in {"post_fault", "contradiction"}:
        return SettingsError(fault["ctx"]["field"], fault["ctx"].get("value", HIDDEN), fault["ctx"]["fix"])
    if where[:2] == ["routing", "types"] and where[3:4] == ["post"] and where[4:]:
        return _strategy_fault(fault, [".".join(where[:3]), *where[3:]])
    if where[:1] == ["strategies"] or (not where and "strategy" in fault["msg"]):
        return _strategy_fault(fault, where)
    name = ".".join(where) or "settings"
    if fault["type"] == "extra_forbidden":
        names, table = list(_names(where, model)), where[:2] == ["routing", "types"]
        listed = f"{where[-2]}: {', '.join(names)}" if table else "`ramify config` lists them"
        fix = f"there is no such setting{nearest(where[-1], names)}; {listed}"
        return SettingsError(name, HIDDEN, fix)
    hidden = isinstance(fault["input"], SecretStr | BaseModel | dict) or _MAY_BE_SECRET.search(name)
    return SettingsError(name, HIDDEN if hidden else fault["input"], sentence(fault))


def environment_fault(error: Exception) -> SettingsError:
    """A variable whose setting is a table or a list, and whose value is no JSON. Only its field is known."""
    found = _FIELD.search(str(error))
    name = f"RAMIFY_{found[1].upper()}" if found else "a RAMIFY_ variable"
    return SettingsError(name, HIDDEN, f"a table or a list is written as JSON, or one setting at a time: {name}__NAME")


def request_fault(error: ValidationError, where: str = "") -> InputError:
    """The first fault of a request, naming the field; `where` is put before it (a line number, say)."""
    return field_fault(error.errors()[0], where)


def field_fault(fault: Any, where: str = "") -> InputError:
    """The same of one of pydantic's faults: a mapping with `loc`, `input`, `type` and `msg`."""
    name = ".".join(str(part) for part in fault["loc"]) or "request"
    if fault["type"] == "missing":
        return MissingError(f"{where}{name}")
    return InputError(f"{where}{name}", fault["input"], sentence(fault))


def _strategy_fault(fault: Any, where: list[str]) -> SettingsError:
    """A mistake in a list of stages: which strategy, which stage (from 1), which option."""
    name = ".".join(where[:2]) or "strategies"
    if len(where) > 2:
        name += f", stage {int(where[2]) + 1}"
    if fault["type"] == "union_tag_invalid":
        given = str(fault["ctx"]["tag"])
        names, broken = sorted({*_STAGES, *stage_models()}), plugins().left_out(STAGES, given)
        fix = f"there is no such stage{nearest(given, names)}; stages: {', '.join(names)}{broken}"
        return SettingsError(name, given, fix)
    if fault["type"] == "union_tag_not_found":
        return SettingsError(name, HIDDEN, 'it names no stage: write stage = "lexical", say')
    if len(where) > 4:
        name += f" ({where[3]}), {where[4]}"
    if fault["type"] == "extra_forbidden":
        options = [option for option in _STAGES[where[3]].model_fields if option != "stage"]
        known = f"its options: {', '.join(options)}" if options else "it has none"
        return SettingsError(name, fault["input"], f"there is no such option{nearest(where[4], options)}; {known}")
    if len(where) <= 2 and fault["type"].endswith("_type"):
        return SettingsError(name, HIDDEN, "write a list of stages: [[strategies.NAME]] with stage = ...")
    given = HIDDEN if isinstance(fault["input"], dict | BaseModel) else fault["input"]
    return SettingsError(name, given, sentence(fault))


def json_fault(error: ValueError | RecursionError) -> str:
    """Why a text was refused as JSON. Python reads no whole number of more than 4,300 digits, and says so at length."""
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    return "is nested too deeply" if isinstance(error, RecursionError) else "a number in it has too many digits"


def sentence(fault: Any) -> str:
    """What is wrong with one of pydantic's faults, in words of a file, not of Python's types."""
    if fault["type"] in _WANTED:
        return _WANTED[fault["type"]]
    if fault["type"] in {"too_short", "too_long"}:
        least, most = fault["ctx"].get("min_length"), fault["ctx"].get("max_length")
        return f"give at least {least}" if most is None else f"give at most {most}"
    if fault["type"] == "string_pattern_mismatch":
        return _FORMS.get(fault["ctx"]["pattern"], "it has another form than its description says")
    text: str = fault["msg"].removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _names(where: list[str], model: type[BaseModel]) -> Iterable[str]:
    for part in where[:-1]:
        inner = model.model_fields[part].annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return ()
        model = inner
    return model.model_fields
