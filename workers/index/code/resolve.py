"""From a use to the qualified names that it may mean, through a file's imports, types and own definitions. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from workers.index.code.expressions import (
    TYPE_KEYWORDS,
    called_on,
    constructor_of,
    dotted_parts,
    last_part,
    type_names,
)
from workers.index.code.imports import rust_name
from workers.index.code.languages import CONTAINERS, Unresolved
from workers.index.code.names import NameParts
from workers.index.code.occurrences import NameBinding, NameUse, Occurrences, UseKind
from workers.index.code.outline import SourceFile

#: Languages that have the common names of another one.
_SAME_NAMES = {"typescript": "javascript", "cpp": "c"}
#: How far up a class's bases a method is looked for.
_MAX_BASES = 8
#: Modules taken whole, and base classes, that one name is looked for in.
_MAX_GUESSES = 3
_MIN_METHOD_CHARS = 2
#: Where the members of a class are seen inside of it without a head.
_OF_CLASSES = frozenset({Unresolved.CLASS, Unresolved.PROGRAM})


@dataclass(frozen=True, slots=True)
class CommonNames:
    """Names that say nothing about a corpus, by the lists of builtins.toml."""

    calls: frozenset[str]
    methods: frozenset[str]
    outside: frozenset[str]
    wrappers: frozenset[str]


@lru_cache(maxsize=16)
def common_names(language: str) -> CommonNames:
    """Those of one language."""
    text = (resources.files("workers.index.code") / "builtins.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)[_SAME_NAMES.get(language, language)]
    return CommonNames(**{name: frozenset(words.split()) for name, words in table.items()})


class Resolver:
    """For one file."""

    def __init__(self, file: SourceFile, found: Occurrences) -> None:
        self._language, self._owner, self._found = file.language, file.owner, found
        self._scopes = Scopes(file, found)
        self._common = common_names(file.language.name)
        self._seen: dict[tuple[int, str, UseKind], list[NameParts]] = {}

    def names_by_row(self) -> dict[int, list[NameParts]]:
        """Row -> qualified names used there: imports, calls, bases, and values and types that the file knows."""
        rows: dict[int, list[NameParts]] = {}
        for row, name in self._found.imports.all:
            # One part is a package from elsewhere, or a module beside this one; a method may have the same name.
            if len(name) > 1 and name[0] not in self._common.outside:
                rows.setdefault(row, []).append(name)
        for use in self._found.uses:
            place = (self._owner[use.row], use.text, use.kind)
            if place not in self._seen:
                self._seen[place] = self._resolved(use, place[0])
            if self._seen[place]:
                rows.setdefault(use.row, []).extend(self._seen[place])
        return rows

    def _resolved(self, use: NameUse, scope: int) -> list[NameParts]:
        if use.kind is UseKind.CALL:
            aliased = self._scopes.aliases(dotted_parts(use.text), scope)
            names = [*aliased, *self._called_names(use.text, scope)]
        elif use.kind is UseKind.VALUE:
            name = dotted_parts(use.text)
            known = self._scopes.known(name, scope) if name else None
            names = [known] if known else []
        else:
            types = type_names(use.text)[: 1 if use.kind is UseKind.BASE else None]
            names = [known for name in types if (known := self._scopes.known_type(name, scope))]
        return [name for name in names if name[0] not in self._common.outside]

    def _called_names(self, text: str, scope: int) -> list[NameParts]:
        name = dotted_parts(text)
        if not name:
            return self._method_of_result(text, scope)
        head, rest = name[0], name[1:]
        if head in self._language.self_names:
            own = self._scopes.own_type(scope)
            return self._method_of(own, rest) if own and rest else [own] if own else self._by_method_name(name[-1])
        if head == "super":
            return [(*base, *rest) for base in self._scopes.bases_of(scope)[:_MAX_GUESSES]] if rest else []
        if rest and (held := self._scopes.variable(head, scope)):
            return self._method_of(held, rest)
        if known := self._scopes.known(name[:1], scope):
            return self._of_known(known, rest)
        return self._of_unknown(name, scope)

    def _of_known(self, known: NameParts, rest: NameParts) -> list[NameParts]:
        if len(rest) == 1 and known in self._scopes.methods:
            return self._method_of(known, rest)
        if rest and known in self._scopes.constants:
            return [known]
        # A function has no methods: a parameter or a variable hides it.
        return self._by_method_name(rest[-1]) if rest and known in self._scopes.functions else [(*known, *rest)]

    def _method_of_result(self, text: str, scope: int) -> list[NameParts]:
        """A method of what a call gives: `Foo(1).bar`, `super().bar`."""
        found = called_on(text)
        if found is None:
            return self._by_method_name(last_part(text))
        made, method = found
        if made == ("super",):
            return [(*base, method) for base in self._scopes.bases_of(scope)[:_MAX_GUESSES]]
        held = self._scopes.made_type(made, scope)
        return self._method_of(held, (method,)) if held else self._by_method_name(method)

    def _method_of(self, held: NameParts, rest: NameParts) -> list[NameParts]:
        """A method of a typed value, over its typed fields."""
        for attribute in rest[:-1]:
            inner = self._scopes.fields.get((held, attribute))
            if inner is None:
                return self._by_method_name(rest[-1])
            held = inner
        if methods := self._scopes.method(held, rest[-1]):
            return methods
        # A field that holds a function, or a method that a macro or a mixin gives.
        return [] if self._language.name == "python" else self._by_method_name(rest[-1])

    def _of_unknown(self, name: NameParts, scope: int) -> list[NameParts]:
        """A name that the file neither defines nor imports."""
        typed = name[0][:1].isupper()
        if name[0] in self._common.calls or name[0] in self._common.outside:
            return []
        if len(name) > 1 and not typed:
            return self._by_method_name(name[-1])
        module, stars = self._scopes.module, [(*star, *name) for star in self._found.imports.stars[:_MAX_GUESSES]]
        if self._language.unresolved is Unresolved.PACKAGE:
            return [(*module, *name)]
        if self._language.unresolved is Unresolved.CLASS:
            bases = [(*base, *name) for base in self._scopes.bases_of(scope)[:_MAX_GUESSES]]
            return [(*module, *name), *stars] if typed else bases or self._by_method_name(name[-1])
        if self._language.unresolved is Unresolved.PROGRAM:
            return [name]
        script = self._language.name == "javascript" and not self._found.imports.all
        lonely = script or (typed and (len(name) > 1 or self._language.name == "rust"))
        return stars or ([name] if lonely else [])

    def _by_method_name(self, method: str) -> list[NameParts]:
        known = method in self._common.methods or method in self._common.calls
        return [] if known or len(method) < _MIN_METHOD_CHARS or method.startswith("__") else [(method,)]


class Scopes:
    """The names of one file. All that it gives are qualified names; `module` is the file's own."""

    def __init__(self, file: SourceFile, found: Occurrences) -> None:
        module, definitions, owner = file.module, file.definitions, file.owner
        self.module = module
        #: Type -> its methods; (type, field) -> the field's type.
        self.methods: dict[NameParts, set[str]] = {}
        self.fields: dict[tuple[NameParts, str], NameParts] = {}
        self.functions = {(*module, *item.names) for item in definitions if item.kind == "function"}
        self.constants = {(*module, *names) for _, names in definitions[0].members}
        self._language, self._path, self._imports = file.language, file.path, found.imports
        self._definitions = definitions
        self._common = common_names(file.language.name)
        self._names = {definition.names for definition in definitions if definition.kind not in CONTAINERS}
        self._variables: dict[tuple[int, str], NameParts] = {}
        #: By (scope, variable) or (type, field), what was assigned to it by name.
        self._aliases: dict[tuple[int | NameParts, str], list[NameParts]] = {}
        self._imported = {imported for _, imported in found.imports.all}
        self._bases: dict[NameParts, list[NameParts]] = {}
        self._returns: dict[NameParts, tuple[str, int]] = {}
        self._list_members()
        for row, text in found.returns:
            self._returns.setdefault((*module, *definitions[owner[row]].names), (text, owner[row]))
        for use in found.uses:
            if use.kind is UseKind.BASE and (own := self.own_type(owner[use.row])) and (types := type_names(use.text)):
                base = self._type(types[0], owner[use.row])
                if base and base != own:
                    self._bases.setdefault(own, []).append(base)
        for binding in found.bindings:
            self._bind(binding, owner[binding.row])

    def known(self, name: NameParts, scope: int) -> NameParts | None:
        """A name that the file defines or imports, its head put in full."""
        head = name[0]
        if self._language.name == "rust" and head in {"crate", "super", "self"} and len(name) > 1:
            return rust_name(name, self._path)
        for prefix in self._prefixes(scope):
            if (*prefix, head) in self._names:
                return (*self.module, *prefix, *name)
        # An import before what the module itself has: `const m = require("m")` is both.
        if (imported := self._imports.names.get(head)) is not None:
            return (*imported, *name[1:])
        return (*self.module, *name) if (head,) in self._names else None

    def known_type(self, name: NameParts, scope: int) -> NameParts | None:
        """The same for a type: where no import has to name it, it may also stand in another file."""
        if known := self.known(name, scope):
            return known
        unknown = name[0] in self._common.calls or name[0] in self._common.wrappers or not name[0][:1].isupper()
        shared = self._language.unresolved is not Unresolved.LOCAL and len(name) == 1 and len(name[0]) > 1
        if unknown or not shared:
            return None
        return name if self._language.unresolved is Unresolved.PROGRAM else (*self.module, *name)

    def variable(self, name: str, scope: int) -> NameParts | None:
        """The type of a variable, looked for outwards."""
        return next((held for at in self._outwards(scope) if (held := self._variables.get((at, name)))), None)

    def aliases(self, name: NameParts, scope: int) -> list[NameParts]:
        """What a name stands for that others were assigned to: `g = f`, `self.g = f`; of modules, what is in them."""
        if not name:
            return []
        if name[0] in self._language.self_names:
            own = self.own_type(scope)
            return self._aliases.get((own, name[1]), []) if own and len(name) == 2 else []
        held = next((found for at in self._outwards(scope) if (found := self._aliases.get((at, name[0])))), [])
        return [(*one, *name[1:]) for one in held if len(name) == 1 or one in self._imported]

    def _outwards(self, scope: int) -> Iterator[int]:
        while scope:
            yield scope
            scope = self._definitions[scope].parent
        yield 0

    def own_type(self, scope: int) -> NameParts | None:
        """The type that a definition is or belongs to."""
        names = self._definitions[scope].names if self._definitions[scope].parent == 0 else ()
        if inner := self._type_scope(scope):
            return (*self.module, *self._definitions[inner].names)
        return (*self.module, *names[:-1]) if len(names) > 1 else None

    def bases_of(self, scope: int) -> list[NameParts]:
        """The base classes of the type that a definition belongs to."""
        own = self.own_type(scope)
        return self._bases.get(own, []) if own else []

    def method(self, held: NameParts, method: str) -> list[NameParts]:
        """The method of a type: its own, a base's that this file has, or what the bases of other files may have."""
        todo, outside = [held], []
        for _ in range(_MAX_BASES):
            if not todo:
                break
            kind = todo.pop(0)
            if kind not in self.methods:
                outside.append(kind)
            elif method in self.methods[kind]:
                return [(*kind, method)]
            else:
                todo += self._bases.get(kind, [])
        return [(*kind, method) for kind in outside[:_MAX_GUESSES]]

    def made_type(self, made: NameParts, scope: int, surely: bool = False) -> NameParts | None:
        """The type of what calling `made` gives: a constructor's class, a known function's written result."""
        if not made:
            return None
        full = self.known(made, scope)
        if made[0] in self._language.self_names and (own := self.own_type(scope)):
            full = (*own, *made[1:])
        if full in self._returns and not surely:
            return self._type_of(*self._returns[full])
        last = made[-1]
        if self._language.name == "go" and not surely:
            name = last.removeprefix("New").removeprefix("Must")
            known = full or ((*self.module, *made) if len(made) == 1 else None)
            return (*known[:-1], name) if last.startswith("New") and name and known else None
        if surely or last[:1].isupper():
            return self._type(made, scope)
        if len(made) > 1 and made[-2][:1].isupper():
            return self.own_type(scope) if made[-2] in self._language.self_names else self._type(made[:-1], scope)
        return None

    def _list_members(self) -> None:
        types = {item.names for item in self._definitions if item.is_type and item.names}
        every = [names for item in self._definitions for _, names in item.members]
        self._names |= set(every)
        for names in types:
            self.methods[(*self.module, *names)] = set()
        for names in (*self._names, *every):
            if names[:-1] in types:
                self.methods[(*self.module, *names[:-1])].add(names[-1])

    def _prefixes(self, scope: int) -> list[NameParts]:
        """The scopes within the module whose names are seen from a definition, innermost first."""
        found: list[NameParts] = []
        while scope:
            item = self._definitions[scope]
            if item.kind in {"mod", "namespace"} or self._language.unresolved in _OF_CLASSES:
                found.append(item.names)
            scope = item.parent
        return found

    def _bind(self, binding: NameBinding, scope: int) -> None:
        held = self._type_of(binding.type, scope) if binding.type else self._value_type(binding.value, scope)
        name = dotted_parts(binding.name)
        self._bind_alias(name, dotted_parts(binding.value), scope)
        if held is None or not name:
            return
        if len(name) == 1 and (binding.field or self._definitions[scope].is_type):
            if own := self.own_type(scope):
                self.fields.setdefault((own, name[0]), held)
                if self._language.unresolved in _OF_CLASSES:
                    self._variables.setdefault((self._type_scope(scope), name[0]), held)
        elif len(name) == 1:
            self._variables[scope, name[0]] = held
        elif len(name) == 2:
            own = self.own_type(scope) if name[0] in self._language.self_names else self.variable(name[0], scope)
            if own:
                self.fields.setdefault((own, name[1]), held)

    def _bind_alias(self, name: NameParts, value: NameParts, scope: int) -> None:
        own, of_self = self.own_type(scope), name[:1] and name[0] in self._language.self_names
        if not (name and value) or self._language.name != "python" or len(name) != (2 if of_self else 1):
            return
        if value[0] in self._language.self_names:
            found = [(*own, value[1])] if own and len(value) == 2 and value[1] in self.methods.get(own, ()) else []
        else:
            known = self.known(value, scope)
            found = self.aliases(value, scope) or ([known] if known else [])
        if of_self or self._definitions[scope].is_type:
            held = self._aliases.setdefault((own, name[-1]), []) if own else []
        else:
            held = self._aliases.setdefault((scope, name[0]), [])
        held += [one for one in found if one not in held][: _MAX_GUESSES - len(held)]

    def _type_scope(self, scope: int) -> int:
        while scope and not self._definitions[scope].is_type:
            scope = self._definitions[scope].parent
        return scope

    def _value_type(self, value: str, scope: int) -> NameParts | None:
        if name := dotted_parts(value):
            return self.variable(name[0], scope) if len(name) == 1 else None
        made = constructor_of(value)
        return self.made_type(made[0], scope, surely=made[1]) if made else None

    def _type_of(self, text: str, scope: int) -> NameParts | None:
        """The type that a variable of the written type has; None for lists, maps, functions and builtins."""
        clean = text.strip(" :&*")
        if clean.startswith("[") or clean.endswith("[]"):  # the methods of a list are not those of what it holds
            return None
        for name in type_names(text):
            if name[-1] not in self._common.wrappers:
                return self._type(name, scope)
        return None

    def _type(self, name: NameParts, scope: int) -> NameParts | None:
        if not name or name[-1] in self._common.calls or name[-1] in TYPE_KEYWORDS:
            return None
        if name[0] in self._language.self_names:
            return self.own_type(scope)
        return self.known_type(name, scope) or (name if name[-1][:1].isupper() else None)
