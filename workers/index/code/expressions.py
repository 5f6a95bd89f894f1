"""The names in expressions and written types of any language, by their text. Pure."""

from __future__ import annotations

import re

from workers.index.code.names import NameParts

# Every pattern is linear in its text.
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
_JOINT = re.compile(r"[?!&]\.|\?->|::|->|\\")
#: How deep type arguments within type arguments are taken out.
_DEPTH = 4
#: Type words that are no names of types, in any of the languages.
TYPE_KEYWORDS = frozenset({"map", "func", "chan", "interface", "struct", "keyof", "typeof", "readonly", "unique", "fn"})


def flattened(text: str) -> str:
    """An expression without spaces and type arguments, its parts joined by dots."""
    clean = _SPACE.sub("", text).lstrip("@")
    if _JOINT.search(clean):
        clean = _JOINT.sub(".", clean)
    for _ in range(_DEPTH if "<" in clean else 0):
        clean = _GENERIC.sub("", clean)
    return clean


def dotted_parts(text: str) -> NameParts:
    """`a.b.c` as its parts; empty for anything that is no plain chain of names."""
    if text.isidentifier():
        return (text,)
    if "(" in text and "<" not in text:  # a call, of which flattening leaves the bracket
        return ()
    clean = flattened(text)
    return tuple(part.lstrip("#") for part in clean.split(".")) if _CHAIN.fullmatch(clean) else ()


def called_on(text: str) -> tuple[NameParts, str] | None:
    """`a.b(...).c` as ((a, b), c), if only one call stands before the last name."""
    found = _CALLED.fullmatch(flattened(text))
    return (dotted_parts(found["head"]), found["last"].lstrip("#")) if found else None


def last_part(text: str) -> str:
    """The method's name at the end of any chain."""
    found = _LAST.search(flattened(text))
    return found[1] if found else ""


def constructor_of(text: str) -> tuple[NameParts, bool] | None:
    """(NameParts, True if it is surely a type) of what `Foo(...)`, `new Foo(...)` or `&Foo{...}` calls."""
    found = _MAKES.match(text)
    return (dotted_parts(found["head"]), bool(found["new"]) or found["open"] == "{") if found else None


def type_names(text: str) -> list[NameParts]:
    """The names in a written type, in order."""
    return [name for found in _TYPE.findall(_LIFETIME.sub("", text)) if (name := dotted_parts(found))]
