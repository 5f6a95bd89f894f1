"""Definitions of code as they are stored with their chunks, and what a list of them may ask for."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from shared.models.base import Model


class CodeDefinition(Model):
    """One definition: `name` within its module ("Store.open"), `line` from 1, `signature` as written, on one line.

    `decorators`, `bases` and `calls` are names without their arguments, as they are written and, where an import of the
    file says more, in full as well. `test` is a function that a test runner collects.
    """

    kind: str
    name: str
    line: int
    signature: str = ""
    is_async: bool = False
    test: bool = False
    decorators: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


class CodeAspect(StrEnum):
    """What a condition of a list of definitions is about. The last three are about the whole file."""

    NAME = "name"
    OWNER = "owner"
    DECORATOR = "decorator"
    BASE = "base"
    CALL = "call"
    ASYNC = "async"
    IMPORT = "import"
    MODULE = "module"
    FILE = "file"


class CodeCondition(Model):
    """One of `values` must hold, or with `negated` none. Without values: any at all, "decorated" or "without bases".

    `values`: patterns with "*" for NAME, the name of a class for OWNER, parts of a path for FILE, dotted names for the
    others; a MODULE that ends with ".*" is a package with all below it.
    """

    aspect: CodeAspect
    values: tuple[str, ...] = ()
    negated: bool = False


class CodeScan(Model):
    """Which definitions belong to a list; `rows` says whether these are its rows or the files that have such a one.

    `kinds`: "function" means methods as well, "test" tests only; empty for files of which no definition is asked.
    `lacking`: the files that have no such definition.
    """

    rows: Literal["definitions", "files"] = "definitions"
    kinds: tuple[str, ...] = ()
    conditions: tuple[CodeCondition, ...] = ()
    lacking: bool = False
