"""The corpus of the fault suite: some hundred chunks, English and Chinese, the same ones every time."""

from __future__ import annotations

import random
from pathlib import Path

from tests.faults.harness.words import CHINESE, CHINESE_SECTIONS, ENGLISH, ENGLISH_SECTIONS, Service

_YEARS = range(2020, 2026)


def write_corpus(root: Path) -> int:
    """Write the notes under `root`; returns how many."""
    dice = random.Random(7)
    notes = 0
    for folder, services, sections in (("en", ENGLISH, ENGLISH_SECTIONS), ("zh", CHINESE, CHINESE_SECTIONS)):
        for service in services:
            others = [other for other in services if other is not service]
            for year in _YEARS:
                notes += 1
                file = root / folder / str(year) / f"{notes:03d}.md"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(_note(service, dice.choice(others), year, sections, dice), encoding="utf-8")
    return notes


def _note(service: Service, other: Service, year: int, sections: dict[str, str], dice: random.Random) -> str:
    date = f"{year}-{dice.randrange(1, 13):02d}-{dice.randrange(1, 28):02d}"
    said = [f"---\ntags: [incident]\ndate: {date}\n---\n# {service.name} {year}\n\n[[{other.name} {year}]]\n"]
    for heading, text in sections.items():
        fields = {"year": year, "date": date, "minutes": dice.randrange(5, 300), "late": dice.randrange(10, 900)}
        said.append(f"## {heading}\n\n{text.format(**service._asdict(), other=other.name, **fields)}\n")
    return "\n".join(said)
