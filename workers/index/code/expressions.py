"""Called expressions and written types as name parts, over all languages. Pure; every pattern is linear in its text."""

from __future__ import annotations

import re

from workers.index.code.names import Name

_CHAIN = re.compile(r"#?[\w$]++(?:\.#?[\w$]++)*+")
_CALLED = re.compile(r"(?:await|new)?(?P<head>[\w$.]++)\([^()]*+\)\.(?P<last>#?[\w$]++)")
_LAST = re.compile(r"\.#?([\w$]+)$")
_GENERIC = re.compile(r"\.?<[^<>]*+>")
_SPACE = re.compile(r"\s+")
_MAKES = re.compile(
    r"(?:await\s++)?+(?P<new>new\s++)?+(?:&\s*+)?+(?P<head>[\w$.:]++)\s*+(?:<[^<>]*+>)?+\s*+(?P<open>[({])"
)
_TYPE = re.compile(r"[A-Za-z_$\u0080-\uffff][\w$]*+(?:(?:\.|::)[A-Za-z_$\u0080-\uffff][\w$]*+)*+")
_LIFETIME = re.compile(r"'[a-z_]+\b(?!')")
_JOINT = re.compile(r"[?!]\.|::|->")
#: How deep type arguments within type arguments are taken out.
_DEPTH = 4


def flat(text: str) -> str:
    """An expression without spaces and type arguments, its parts joined by dots."""
    clean = _SPACE.sub("", text)
    if _JOINT.search(clean):
        clean = _JOINT.sub(".", clean)
    for _ in range(_DEPTH if "<" in clean else 0):
        clean = _GENERIC.sub("", clean)
    return clean


def chain(text: str) -> Name:
    """`a.b.c` as its parts; empty for anything that is no plain chain of names."""
    if text.isidentifier():
        return (text,)
    clean = flat(text)
    return tuple(part.lstrip("#") for part in clean.split(".")) if _CHAIN.fullmatch(clean) else ()


def called_on(text: str) -> tuple[Name, str] | None:
    """`a.b(...).c` as ((a, b), c), if only one call stands before the last name."""
    found = _CALLED.fullmatch(flat(text))
    return (chain(found["head"]), found["last"].lstrip("#")) if found else None


def last_of(text: str) -> str:
    """The method's name at the end of any chain."""
    found = _LAST.search(flat(text))
    return found[1] if found else ""


def maker(text: str) -> tuple[Name, bool] | None:
    """What makes a value: (name, True if it is surely a type) of `Foo(...)`, `new Foo(...)`, `&Foo{...}`."""
    found = _MAKES.match(text)
    return (chain(found["head"]), bool(found["new"]) or found["open"] == "{") if found else None


def type_names(text: str) -> list[Name]:
    """The names in a written type, in order."""
    return [name for found in _TYPE.findall(_LIFETIME.sub("", text)) if (name := chain(found))]


def is_many(text: str) -> bool:
    """Whether a written type is a list or map, whose methods are not those of what it holds."""
    clean = text.strip(" :&*")
    return clean.startswith("[") or clean.endswith("[]")
