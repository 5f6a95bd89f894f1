"""From a use to the qualified names that it may mean, through imports, types and the file's own definitions. Pure."""

from __future__ import annotations

from workers.index.code.languages import Unresolved
from workers.index.code.names import Name
from workers.index.code.occurrences import NameUse, Occurrences, UseKind
from workers.index.code.outline import SourceFile
from workers.index.code.scopes import Scopes, called_on, common_names, dotted_parts, last_part, type_names

#: Modules taken whole, and base classes, that one name is looked for in.
_MAX_GUESSES = 3
_MIN_METHOD_CHARS = 2


class Resolver:
    """For one file."""

    def __init__(self, file: SourceFile, scopes: Scopes, found: Occurrences) -> None:
        self._language, self._owner, self._scopes, self._found = file.language, file.owner, scopes, found
        self._common = common_names(file.language.name)
        self._seen: dict[tuple[int, str, UseKind], list[Name]] = {}

    def names_by_row(self) -> dict[int, list[Name]]:
        """Row -> qualified names used there: imports, calls, bases, and values and types that the file knows."""
        rows: dict[int, list[Name]] = {}
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

    def _resolved(self, use: NameUse, scope: int) -> list[Name]:
        if use.kind is UseKind.CALL:
            names = self._called_names(use.text, scope)
        elif use.kind is UseKind.VALUE:
            name = dotted_parts(use.text)
            known = self._scopes.known(name, scope) if name else None
            names = [known] if known else []
        else:
            types = type_names(use.text)[: 1 if use.kind is UseKind.BASE else None]
            names = [known for name in types if (known := self._scopes.known_type(name, scope))]
        return [name for name in names if name[0] not in self._common.outside]

    def _called_names(self, text: str, scope: int) -> list[Name]:
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

    def _of_known(self, known: Name, rest: Name) -> list[Name]:
        if len(rest) == 1 and known in self._scopes.methods:
            return self._method_of(known, rest)
        if rest and known in self._scopes.constants:
            return [known]
        # A function has no methods: a parameter or a variable hides it.
        return self._by_method_name(rest[-1]) if rest and known in self._scopes.functions else [(*known, *rest)]

    def _method_of_result(self, text: str, scope: int) -> list[Name]:
        """A method of what a call gives: `Foo(1).bar`, `super().bar`."""
        found = called_on(text)
        if found is None:
            return self._by_method_name(last_part(text))
        made, method = found
        if made == ("super",):
            return [(*base, method) for base in self._scopes.bases_of(scope)[:_MAX_GUESSES]]
        held = self._scopes.made_type(made, scope)
        return self._method_of(held, (method,)) if held else self._by_method_name(method)

    def _method_of(self, held: Name, rest: Name) -> list[Name]:
        """A method of a typed value, over its typed fields."""
        for attribute in rest[:-1]:
            inner = self._scopes.fields.get((held, attribute))
            if inner is None:
                return self._by_method_name(rest[-1])
            held = inner
        method = self._scopes.method(held, rest[-1])
        if method is not None:
            return [method]
        # A field that holds a function, or a method that a macro or a mixin gives.
        return [] if self._language.name == "python" else self._by_method_name(rest[-1])

    def _of_unknown(self, name: Name, scope: int) -> list[Name]:
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
        script = self._language.name == "javascript" and not self._found.imports.all
        lonely = script or (typed and (len(name) > 1 or self._language.name == "rust"))
        return stars or ([name] if lonely else [])

    def _by_method_name(self, method: str) -> list[Name]:
        known = method in self._common.methods or method in self._common.calls
        return [] if known or len(method) < _MIN_METHOD_CHARS or method.startswith("__") else [(method,)]
