"""What each operation does, in one sentence. Imports no models: `ramify --help` reads it, too."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources


@cache
def _descriptions() -> dict[str, str]:
    text = resources.files(__package__).joinpath("descriptions.toml").read_text("utf-8")
    return {name: str(words) for name, words in tomllib.loads(text).items()}


def description(name: str) -> str:
    """The sentence of the operation of that name. Raises: KeyError without one."""
    return _descriptions()[name]


def description_of_command(command: str) -> str | None:
    """The sentence of the operation that a command of `ramify` does; None for one that does none, such as `up`."""
    return _descriptions().get(command.replace(" ", "_"))
