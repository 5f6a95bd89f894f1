"""Turns pydantic's validation errors into one clear sentence."""

from __future__ import annotations

from difflib import get_close_matches

from pydantic import BaseModel, SecretStr, ValidationError

from shared.errors import InputError, SettingsError

#: Stands for a value that may be a secret: one under a misspelt name could be anything.
HIDDEN = "the value given"


def first_fault(error: ValidationError) -> SettingsError:
    """The first fault of a settings file, naming the setting with its section: `search.mode`."""
    from shared.settings import Settings  # noqa: PLC0415 - the model's names, for the nearest spelling

    fault = error.errors()[0]
    where = [str(part) for part in fault["loc"]]
    name = ".".join(where) or "settings"
    if fault["type"] == "extra_forbidden":
        fix = f"there is no such setting{_nearest(where, Settings)}; `ramify config` lists them"
        return SettingsError(name, HIDDEN, fix)
    hidden = isinstance(fault["input"], SecretStr | BaseModel | dict) or "key" in name or "auth" in name
    return SettingsError(name, HIDDEN if hidden else fault["input"], _sentence(fault["msg"]))


def request_fault(error: ValidationError, where: str = "") -> InputError:
    """The first fault of a request, naming the field; `where` is put before it (a line number, say)."""
    fault = error.errors()[0]
    name = ".".join(str(part) for part in fault["loc"]) or "request"
    given = f"{fault['input']}" if isinstance(fault["input"], dict) else fault["input"]
    return InputError(f"{where}{name}", given, _sentence(fault["msg"]))


def _sentence(message: str) -> str:
    text = message.removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _nearest(where: list[str], model: type[BaseModel]) -> str:
    for part in where[:-1]:
        inner = model.model_fields[part].annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return ""
        model = inner
    near = get_close_matches(where[-1], model.model_fields, n=1)
    return f", did you mean {near[0]!r}?" if near else ""
