"""A corpus whose members of every list are known: it is made from a few fields of each document, in both languages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date

from shared.store import ChunkPoint
from tests.fakes.listing import point

_OWNERS = ("Ada", "Bob", "张三", "李四")
_CAUSES = ("DNS", "disk", "网络", "证书")
_KINDS = ("incident", "decision", "project")
_TAGS = ("redis", "celery", "缓存")
_FOLDERS = ("ops/", "ops/archive/", "plans/")
_COUNT = 72


@dataclass(frozen=True)
class Planted:
    """One document, by what is true of it."""

    number: int
    kind: str
    day: date
    tags: tuple[str, ...]
    owner: str
    cause: str
    folder: str

    @property
    def path(self) -> str:
        """Its path, which no other one has."""
        return f"{self.folder}{self.kind}{self.number}.md"

    @property
    def text(self) -> str:
        """What it says. Its kind, its date and its tags stand in no sentence."""
        name = "负责人" if self.number % 2 else "Owner"
        lines = [f"{name}: {self.owner}", f"Root cause: {self.cause}", f"Text number {self.number} says nothing else."]
        if self.number % 5 == 0:
            lines.append("The connection pool was full. 连接池已满。")
        return "\n\n".join(lines)


def planted() -> list[Planted]:
    """The documents, over 18 months from January 2025."""
    made = []
    for number in range(_COUNT):
        month = number // 3 % 18
        made.append(
            Planted(
                number=number,
                kind=_KINDS[number % 3],
                day=date(2025 + month // 12, month % 12 + 1, number % 28 + 1),
                tags=tuple(tag for place, tag in enumerate(_TAGS) if number >> place & 1)
                + (("sev3",) if number % 4 == 0 else ()),
                owner=_OWNERS[number * 7 % 4],
                cause=_CAUSES[number * 5 % 4],
                folder=_FOLDERS[number // 3 % 3],
            )
        )
    return made


CODE = {
    "code/a.py": "import asyncio\n\nasyncio.run(main())",
    "code/b.py": "from asyncio import gather\n\nawait gather()",
    "code/c.py": "# asyncio is not needed here\nimport os",
    "code/d.py": '@dramatiq.actor\ndef send(to):\n    """Send it."""',
    "code/e.py": "# an actor of dramatiq\ndef send(to): ...",
}


def points(documents: Iterable[Planted]) -> Iterable[ChunkPoint]:
    """The documents as they are stored."""
    for one in documents:
        yield point(
            f"d{one.number}", one.text, path=one.path, title=f"Entry {one.number}", kind=one.kind,
            date=one.day.isoformat(), tags=one.tags,
        )  # fmt: skip


def members(documents: Iterable[Planted], fits: Callable[[Planted], bool]) -> set[str]:
    """The paths of those that fit."""
    return {one.path for one in documents if fits(one)}
