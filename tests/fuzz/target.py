"""What a target is: how an input is made, what is run on it, and the errors that may come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.fuzz.guard import MOST_CPU_S
from tests.fuzz.mutate import Mutator

Run = Callable[[Any], None]


@dataclass(frozen=True)
class Target:
    """`opened` gives the function to run, while the context lasts. `full` and `short` are numbers of inputs."""

    name: str
    make: Callable[[Mutator], Any]
    opened: Callable[[], AbstractContextManager[Run]]
    allowed: tuple[type[BaseException], ...] = ()
    tokens: Sequence[str] = ()
    full: int = 100_000
    short: int = 300
    most_cpu_s: float = MOST_CPU_S

    def made(self, seed: str, number: int) -> Any:
        """The input of this number."""
        return self.make(Mutator(f"{seed}:{self.name}:{number}", self.tokens))


def always(run: Run) -> Callable[[], AbstractContextManager[Run]]:
    """For what needs nothing around it."""

    @contextmanager
    def opened() -> Iterator[Run]:
        yield run

    return opened
