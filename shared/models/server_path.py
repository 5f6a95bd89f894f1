"""Paths of the machine that a part of Ramify runs on: callers from elsewhere get their last names only."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import PlainSerializer, SerializationInfo

#: The context of a dump to JSON that goes to another machine.
FOR_OTHERS: dict[str, Any] = {"for_others": True}
_ROOT = re.compile(r"(^|^ingest |, )(?:[\w.\-]+:)?/(?:[^,]*/)?")


def _told(value: str, info: SerializationInfo) -> str:
    if info.context is not FOR_OTHERS or "/" not in value:
        return value
    return _ROOT.sub(r"\1", value.rstrip("/"))


#: A path, `NAMESPACE:PATH`, or the name of a job that puts paths in. What does not begin so is left as it is.
ServerPath = Annotated[str, PlainSerializer(_told, when_used="json")]
