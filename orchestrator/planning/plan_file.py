"""Reads and writes plan files: TOML or JSON. A mistake is one sentence with the entry, the field and the fix."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from shared.errors import InputError
from shared.models.base import Model
from shared.models.plan import Facet, Links, PlanFaultError, check_links, in_order, references, renumbered
from shared.models.request import MAX_ENTRIES, MAX_QUESTION_CHARS, Filters, Name, PlanEntry
from shared.settings.faults import json_fault, sentence
from shared.settings.sections import nearest

MAX_BYTES = 512_000
_FORM = "write TOML (question = ..., [[subqueries]] query = ...) or the same as JSON; `ramify plan --out` shows how"
_Id = Annotated[int, Field(ge=1, le=99)]


class FileEntry(Model):
    """One subquestion. `id` is its number for `depends_on`, `under` and `#n`; without one it is its place, from 1."""

    id: _Id | None = None
    query: str = Field(min_length=1, max_length=MAX_QUESTION_CHARS)
    dimension: Facet = Facet.CORE
    depends_on: tuple[_Id, ...] = Field(default=(), max_length=MAX_ENTRIES)
    under: _Id | None = None


class PlanFile(Model):
    """A question and its subquestions. With none, the question is searched as it is."""

    question: str | None = Field(default=None, max_length=MAX_QUESTION_CHARS)
    strategy: Name | None = None
    filters: Filters | None = None
    subqueries: tuple[FileEntry, ...] = Field(default=(), max_length=MAX_ENTRIES)

    def entries(self) -> tuple[PlanEntry, ...]:
        """The subquestions as a request has them: in an order in which each stands behind those that it waits for.

        Raises: PlanFaultError (its number is the entry's id).
        """
        given = self._by_id()
        links = {}
        for number, entry in given.items():  # a `#2` in the text waits for entry 2, if there is one
            implied = (n for n in references(entry.query) if n in given and n != number)
            links[number] = Links(tuple(sorted({*entry.depends_on, *implied})), entry.under)
        check_links(links)
        places = {number: place for place, number in enumerate(in_order(links), 1)}
        return tuple(
            PlanEntry(
                query=renumbered(given[number].query, places.get),
                dimension=given[number].dimension,
                depends_on=tuple(sorted(places[other] for other in links[number].depends_on)),
                under=places[under] if (under := links[number].under) is not None else None,
            )
            for number in places
        )

    def _by_id(self) -> dict[int, FileEntry]:
        found: dict[int, FileEntry] = {}
        for place, entry in enumerate(self.subqueries, 1):
            number = entry.id if entry.id is not None else place
            if number in found:
                raise PlanFaultError(number, "id", number, "two entries have that number: give each its own")
            if not entry.query.strip():
                raise PlanFaultError(number, "query", repr(entry.query), "it is empty: write a question")
            if entry.dimension is Facet.ORIGINAL:
                fix = "the question's own leaf is there anyway: use core, why, how, case or note"
                raise PlanFaultError(number, "dimension", entry.dimension.value, fix)
            found[number] = entry
        return found


def read_plan(path: Path) -> PlanFile:
    """A plan from a file. Raises: InputError naming the file, the entry, the field, the value and the fix."""
    name = str(path)
    if path.is_dir():
        raise InputError("--plan", name, "it is a folder: name a file")
    try:
        with path.open("rb") as handle:
            raw = handle.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError("--plan", name, "there is no such file") from None
    except OSError as error:
        raise InputError("--plan", name, f"it cannot be read ({error.strerror})") from None
    if len(raw) > MAX_BYTES:
        raise InputError("--plan", name, f"it has more than {MAX_BYTES:,} bytes: that is no plan")
    return as_plan(_parsed(raw, name), f"{name}: ")


def as_plan(given: object, where: str = "plan ") -> PlanFile:
    """A checked plan from an object. Raises: InputError; `where` is put before the field."""
    if isinstance(given, PlanFile):
        return _checked(given, where)
    if not isinstance(given, Mapping):
        raise InputError(f"{where}plan", given, f"it is no table: {_FORM}")
    try:
        plan = PlanFile.model_validate(given)
    except ValidationError as error:
        raise _fault(error, where) from None
    return _checked(plan, where)


def plan_fields(plan: PlanFile) -> dict[str, Any]:
    """The fields of a JobRequest that a plan gives."""
    fields: dict[str, Any] = {"subqueries": plan.entries()} if plan.subqueries else {"decompose": False}
    given = {"question": plan.question, "strategy": plan.strategy, "filters": plan.filters}
    return fields | {name: value for name, value in given.items() if value is not None}


def check_leaves(plan: PlanFile, most: int, where: str) -> None:
    """Raises: InputError when the plan has more leaves than `most` (decomposition.max_total_leaves) allows."""
    entries = plan.entries()
    leaves = len(entries) - len({entry.under for entry in entries} - {None})
    if leaves >= most:
        fix = f"with the question itself they may be {most}: leave some out, or raise decomposition.max_total_leaves"
        raise InputError(f"{where}subqueries", f"{leaves} leaves", fix)


def written(plan: PlanFile, *, as_toml: bool) -> str:
    """The plan as the text of a file."""
    fields = plan.model_dump(mode="json", exclude_defaults=True)
    if not as_toml:
        return json.dumps(fields, ensure_ascii=False, indent=2) + "\n"
    entries, filters = fields.pop("subqueries", []), fields.pop("filters", {})
    lines = [f"{name} = {_toml(value)}" for name, value in fields.items()]
    if filters:
        lines += ["", "[filters]", *(f"{name} = {_toml(value)}" for name, value in filters.items())]
    for entry in entries:
        lines += ["", "[[subqueries]]", *(f"{name} = {_toml(value)}" for name, value in entry.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """JSON's strings, numbers and lists are TOML's, but for one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _parsed(raw: bytes, name: str) -> object:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("--plan", name, f"byte {error.start} is not UTF-8: convert the file with iconv") from None
    if not text.strip():
        raise InputError("--plan", name, f"it is empty: {_FORM}")
    if text.lstrip()[0] in "{[" and not text.lstrip().startswith("[["):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            if not text.lstrip().startswith("["):  # a TOML table begins so too
                raise InputError("--plan", name, f"line {error.lineno} is no JSON ({error.msg}): {_FORM}") from None
        except (ValueError, RecursionError) as error:
            raise InputError("--plan", name, f"it is no JSON ({json_fault(error)})") from None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is no TOMLDecodeError
        yaml = "; YAML is not read" if name.endswith((".yaml", ".yml")) or ":\n" in text or text[:3] == "---" else ""
        raise InputError("--plan", name, f"it is neither TOML nor JSON ({error}){yaml}: {_FORM}") from None


def _checked(plan: PlanFile, where: str) -> PlanFile:
    try:
        plan.entries()
    except PlanFaultError as fault:
        raise InputError(f"{where}entry {fault.number}, {fault.field}", fault.value, fault.fix) from None
    except ValidationError as error:
        raise _fault(error, where) from None
    return plan


def _fault(error: ValidationError, where: str) -> InputError:
    """The first fault: `FILE: entry 3, query`."""
    fault = error.errors()[0]
    parts = list(fault["loc"])
    entry = ""
    if len(parts) > 1 and parts[0] == "subqueries":
        entry, parts = f"entry {int(parts[1]) + 1}", parts[2:]
    field = ".".join(map(str, parts))
    name = where + (", ".join(part for part in (entry, field) if part) or "plan")
    known = FileEntry.model_fields if entry else PlanFile.model_fields
    if parts[:1] == ["filters"] and len(parts) > 1:
        known, parts = Filters.model_fields, parts[1:]
    if fault["type"] == "extra_forbidden":
        hint = f"{nearest(str(parts[0]), known)}; there are {', '.join(known)}" if len(parts) == 1 else ""
        return InputError(name, fault["input"], f"there is no such field{hint}")
    if fault["type"] == "too_long" and field == "subqueries":
        return InputError(name, f"{len(fault['input'])} entries", f"at most {fault['ctx']['max_length']} fit")
    shown = fault["input"] if not isinstance(fault["input"], list | dict | date) else str(fault["input"])
    return InputError(name, shown, sentence(fault))
