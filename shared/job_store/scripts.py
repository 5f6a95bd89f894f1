"""Loads the Lua scripts: one per transition, each documents its keys and arguments at its head."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redis import Redis
    from redis.commands.core import Script

_WITH = re.compile(r"^-- with (\w+)\n", re.MULTILINE)


@cache
def source(name: str) -> str:
    """The text of `lua/<name>.lua`; its lines `-- with <part>` are replaced by `lua/parts/<part>.lua`."""
    text = resources.files("shared.job_store").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")
    return _WITH.sub(lambda found: source(f"parts/{found[1]}"), text)


class Scripts:
    """Registered scripts of one Redis client; redis-py sends the digest and reloads when Redis has forgotten it."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._scripts: dict[str, Script] = {}

    def __call__(self, name: str, keys: list[str], args: list[Any], client: Any = None) -> Any:
        script = self._scripts.get(name)
        if script is None:
            script = self._scripts[name] = self._client.register_script(source(name))
        return script(keys=keys, args=args, client=client)
