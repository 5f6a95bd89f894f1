"""Takes out of a question which definitions of code, or files by what they define and import, it wants. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.planning.lists.words import GAP, HOLD, Sentence, compiled, unique
from shared.language.text import HAN
from shared.models.code import CodeAspect, CodeCondition, CodeScan
from shared.models.enumeration import Values

#: Kinds with a list of words "code_<kind>" each, those first whose words contain others' words.
_KINDS = (
    "test", "definition", "method", "interface", "struct", "trait", "enum", "record", "type", "macro", "class",
    "function",
)  # fmt: skip
_KIND = f"(?:{'|'.join(f'<code_{kind}>' for kind in _KINDS)})"
_JOINT_KIND = rf"(?:<both>|<either>|[,、])\s*(?:<code_filler>\s*)?{_KIND}"
_KIND_NAMES = rf"(?:<code_defines>\s*)?(?:<code_filler>\s*)?(?P<nouns>{_KIND}(?:\s*{_JOINT_KIND})*)"
#: The same where negations were taken out between them: "neither functions nor classes".
_DENIED_KIND_NAMES = rf"(?:<code_defines>\s*)?(?P<nouns>{_KIND}(?:\s*(?:{_JOINT_KIND}|{GAP}\s*{_KIND}))*)"
_W = rf"[^\W{HAN}]"
#: A name of code as a question has it: dotted, with "*", called, quoted.
_NAME = rf"(?:{HOLD}.|@?(?:{_W}|[$*])+(?:(?:\.|::|/)(?:{_W}|[$*\-])+)*(?:\(\))?)"
_FILLER = r"(?:<code_filler>\s*)*"
_MORE = rf"(?:\s*(?:[,、]\s*(?:<last!>)?|<both>|<either>)\s*{_FILLER}(?!<code_verb>|<code_noun>){_NAME})*"
_NAMES = rf"(?<!{_W})(?<![.@*]){_FILLER}(?!<code_verb>|<code_noun>)(?P<{{group}}>{_NAME}{_MORE})"
_BEHIND = r"(?:\s*<code_behind>)?"
_NO = r"(?P<no>(?:<negation>|<code_no>)(?:\s*<code_no_tail>)*\s*)?"
_JOINT = "<both>|<either>|<code_filler>"
_EACH_NAME = re.compile(_NAME)
_FILE = rf"(?<![\w./])(?P<name>(?:{_W}|[.\-/])*{_W}\.(?:pyi?|[cm]?tsx?|[cm]?jsx?|go|rs|java))(?!{_W}|\.{_W})"
_GLOB = rf"(?<!\S)(?=(?:{_W}|\*)*\*)(?=\**{_W})(?P<name>(?:{_W}|\*)+)(?!\S)"
_NAMED_KIND = rf"(?:<code_class>|<code_function>|<code_method>)\s+(?P<name>{_NAME})"
_DOTTED = rf"{_W}+(?:\.{_W}+)+"
_AND_DOTTED = rf"(?:\s*(?:<both>|<either>|[,、])\s*(?:<code_in>\s*)?{_DOTTED})*"
_PLACE = (
    rf"<code_in>\s*(?P<name>{_NAME}{_AND_DOTTED})(?!{_W}|/)"
    rf"|(?<!{_W})(?<![.@*])(?P<name_2>(?:{_DOTTED}{_AND_DOTTED}|{_NAME}))\s*<code_in_after>"
)
_SPELT_AS_CODE = re.compile(r"[A-Z_]")
_MOST = 12


class _Relation(NamedTuple):
    """What definitions and files are asked for by. `form` makes the value of a name; `words` names its lists."""

    words: str
    aspect: CodeAspect
    form: str = "{}"


#: In this order: what begins with the words of another one stands before it.
_RELATIONS = (
    _Relation("code_import", CodeAspect.IMPORT),
    _Relation("code_decorator", CodeAspect.DECORATOR),
    _Relation("code_base", CodeAspect.BASE),
    _Relation("code_starts", CodeAspect.NAME, "{}*"),
    _Relation("code_ends", CodeAspect.NAME, "*{}"),
    _Relation("code_contains", CodeAspect.NAME, "*{}*"),
    _Relation("code_named", CodeAspect.NAME),
    _Relation("code_call", CodeAspect.CALL),
    _Relation("code_owner", CodeAspect.OWNER),
    _Relation("code_package", CodeAspect.MODULE, "{}.*"),
    _Relation("code_module", CodeAspect.MODULE),
)


def take_definitions(sentence: Sentence, question: str, values: Values) -> CodeScan | None:
    """The definitions, or the files by what they define and import, that the question asks for; None for neither.

    Nothing is taken where no code is stored, or where the question asks for documents as such: "notes about classes".
    """
    if not values.code or (head := _head(sentence.text)) is None:
        return None
    before = sentence.text
    conditions = list(_conditions(sentence, question, values, head))
    lacking = _take_lacking(sentence) if head == "file" else False
    kinds = _take_kinds(sentence, head, denied=lacking)
    if head == "file" and not (kinds or conditions) and compiled("<code_file_only>").search(before) is None:
        sentence.text = before
        return None
    _take_all(sentence, "<code_file>|<code_defining>|<code_left>")
    rows = "files" if head == "file" else "definitions"
    if rows == "definitions" and not kinds and head != "definition":
        kinds = (head,)
    if rows == "files" and not kinds and any(one.aspect is CodeAspect.OWNER for one in conditions):
        kinds = ("class",)  # a file that defines the class
        named = {"aspect": CodeAspect.NAME}
        conditions = [one.model_copy(update=named) if one.aspect is CodeAspect.OWNER else one for one in conditions]
    wanted = () if "definition" in kinds else kinds
    return CodeScan(rows=rows, kinds=wanted, conditions=tuple(conditions[:_MOST]), lacking=lacking)


def _head(text: str) -> str | None:
    """The kind of what is asked for, "file" for files; None where it is documents as such.

    The noun behind "which", else the last one that all else describes (`code_head_lead`), else the first.
    """
    found = [(each.start(), kind) for kind in (*_KINDS, "file") for each in compiled(f"<code_{kind}>").finditer(text)]
    others = [each.start() for each in compiled("<noun>").finditer(text)]
    if not found:
        return "definition" if not others and re.search(rf"(?<!\S)@{_W}", text) else None
    found.sort(key=lambda item: item[0])
    if asked := compiled("<code_asked>").search(text):
        behind = [item for item in found if item[0] >= asked.end() and not text[asked.end() : item[0]].strip()]
        if behind:
            return behind[0][1]
    leads = list(compiled(r"<code_head_lead>\s*(?=<code_noun>)").finditer(text))
    if behind := [item for item in found if leads and item[0] >= leads[-1].end()]:
        return behind[0][1]
    first = found[0]
    return first[1] if not any(start < first[0] for start in others) else None


def _conditions(sentence: Sentence, question: str, values: Values, head: str) -> Iterator[CodeCondition]:
    """All conditions, taken out one after the other."""
    for words, aspect in (("code_undecorated", CodeAspect.DECORATOR), ("code_baseless", CodeAspect.BASE)):
        if _take_all(sentence, f"<{words}>"):
            yield CodeCondition(aspect=aspect, negated=True)
    for relation in _RELATIONS:
        yield from _related(sentence, question, relation)
    yield from _decorators(sentence, question)
    for template, aspect in ((_FILE, CodeAspect.FILE), (_GLOB, CodeAspect.NAME)):
        while found := compiled(rf"(?:{_NO}(?:<code_in>)\s*)?{template}(?:\s*<code_in_after>)?").search(sentence.text):
            negated = found["no"] is not None
            yield CodeCondition(aspect=aspect, values=(_spelt(found["name"], sentence, question),), negated=negated)
            sentence.take(found.start(), found.end())
    if found := compiled(rf"{_NO}<code_async>").search(sentence.text):
        yield CodeCondition(aspect=CodeAspect.ASYNC, negated=found["no"] is not None)
        sentence.take(found.start(), found.end())
    yield from _places(sentence, question, values, head)


def _related(sentence: Sentence, question: str, relation: _Relation) -> Iterator[CodeCondition]:
    """The conditions that name something by one relation: before the name, or around and behind it."""
    words = relation.words
    but = rf"(?:\s*<code_but>\s*(?:<{words}>\s*)?{_NAMES.format(group='others')})?"
    before = rf"{_NO}<{words}>\s*{_NAMES.format(group='names')}{_BEHIND}{but}"
    around = rf"{_NO}(?:<{words}_open>)?\s*{_NAMES.format(group='names')}\s*<{words}_after>"
    for template in (before, around):
        place = 0
        while found := compiled(template).search(sentence.text, place):
            place = found.end()
            names = _names(found["names"], relation, sentence, question)
            if not names:
                continue
            negated = found["no"] is not None
            if negated or len(names) == 1 or compiled("<either>").search(found["names"]):
                yield CodeCondition(aspect=relation.aspect, values=names, negated=negated)
            else:
                yield from (CodeCondition(aspect=relation.aspect, values=(name,)) for name in names)
            if others := _names(found.groupdict().get("others") or "", relation, sentence, question):
                yield CodeCondition(aspect=relation.aspect, values=others, negated=not negated)
            sentence.take(found.start(), found.end())
            place = 0


def _names(joined: str, relation: _Relation, sentence: Sentence, question: str) -> tuple[str, ...]:
    """The values of names with "and", "or" and commas between them."""
    found = (each[0] for each in _EACH_NAME.finditer(joined) if not compiled(_JOINT).fullmatch(each[0]))
    spelt = (_spelt(name, sentence, question) for name in found)
    return unique([relation.form.format(name) for name in spelt if name and not _is_word(name)])


def _decorators(sentence: Sentence, question: str) -> Iterator[CodeCondition]:
    """Decorators as they are written, wherever they stand: "with @property", "@app.task functions"."""
    while found := compiled(rf"{_NO}(?:<code_with>\s*)?(?P<name>@{_W}(?:{_W}|[./])*)(?:\(\))?{_BEHIND}").search(
        sentence.text
    ):
        value = _spelt(found["name"].rstrip("./"), sentence, question)
        yield CodeCondition(aspect=CodeAspect.DECORATOR, values=(value,), negated=found["no"] is not None)
        sentence.take(found.start(), found.end())


def _places(sentence: Sentence, question: str, values: Values, head: str) -> Iterator[CodeCondition]:
    """Names in "in workers.search.engine", "of Engine", "class Engine": modules have dots, classes capitals."""
    folders = {part for folder in values.folders for part in folder.lower().split("/")}
    for template in (_NAMED_KIND, _PLACE):
        place = 0
        while found := compiled(rf"{_NO}(?:{template})").search(sentence.text, place):
            place = found.end()
            groups = found.groupdict()
            joined = groups["name"] or groups.get("name_2") or ""
            name, *more = [_spelt(each[0], sentence, question) for each in _EACH_NAME.finditer(joined)] or [""]
            more = [each for each in more if "." in each]
            if not name or "/" in name or name[0].isdigit() or _is_word(name):
                continue
            aspect = _aspect_of(name, named=template == _NAMED_KIND, head=head, folders=folders)
            if aspect is None:
                continue
            values_of = (f"{each}.*" if aspect is CodeAspect.MODULE else each for each in (name, *more))
            yield CodeCondition(aspect=aspect, values=tuple(values_of), negated=found["no"] is not None)
            named_only = template == _NAMED_KIND and aspect is CodeAspect.NAME
            sentence.take(found.start("name") if named_only else found.start(), found.end())
            place = 0


def _aspect_of(name: str, *, named: bool, head: str, folders: set[str]) -> CodeAspect | None:
    """What a name stands for behind "class" (`named`), or behind "in" and "of"; None where it may be any word."""
    last = name.rpartition(".")[2]
    if named:
        about = CodeAspect.OWNER if head in {"method", "function"} and last[:1].isupper() else CodeAspect.NAME
        return about if _SPELT_AS_CODE.search(last) else None
    if last[:1].isupper():
        return CodeAspect.OWNER
    return CodeAspect.MODULE if "." in name or name in folders else None


def _take_lacking(sentence: Sentence) -> bool:
    """True for "files that define no class": the negations that stand before kinds."""
    return _take_all(sentence, r"(?:<negation>|<code_no>)(?:\s*(?:<code_defines>|<code_filler>))*\s*(?=<code_noun>)")


def _take_kinds(sentence: Sentence, head: str, *, denied: bool) -> tuple[str, ...]:
    """The kinds that stand beside each other, the head among them: "functions and methods".

    Nouns elsewhere ("methods of classes that ...") stay in the sentence, where nothing reads them.
    """
    for found in compiled(_DENIED_KIND_NAMES if denied else _KIND_NAMES).finditer(sentence.text):
        nouns = found["nouns"]
        if head != "file" and not compiled(f"<code_{head}>").search(nouns):
            continue
        kinds = []
        for kind in _KINDS:
            nouns, times = compiled(f"<code_{kind}>").subn(" ", nouns)
            kinds += [kind] if times else []
        sentence.take(found.start(), found.end())
        return tuple(kinds)
    return ()


def _take_all(sentence: Sentence, template: str) -> bool:
    taken = False
    while found := compiled(template).search(sentence.text):
        sentence.take(found.start(), found.end())
        taken = True
    return taken


def _spelt(name: str, sentence: Sentence, question: str) -> str:
    """A name as the question spells it, without "@" and "()"; the sentence is in lower case."""
    restored = sentence.restored(name)
    whole = rf"(?<![\w./]){re.escape(restored)}(?![\w/])"
    found = re.search(whole, question, re.IGNORECASE | re.ASCII) or re.search(
        re.escape(restored), question, re.IGNORECASE
    )
    return (found[0] if found else restored).strip("`'\" ").removeprefix("@").removesuffix("()").replace("::", ".")


def _is_word(name: str) -> bool:
    """True for a word of the language, which names nothing: "another", "any"."""
    return compiled("<code_word>").fullmatch(name) is not None


def asks_bases_of_functions(code: CodeScan) -> bool:
    """True for "methods of classes that inherit from X": what is asked of the class would be sought of its methods."""
    based = any(one.aspect is CodeAspect.BASE for one in code.conditions)
    return based and code.rows == "definitions" and bool(code.kinds) and {*code.kinds} <= {"method", "function", "test"}


def told_conditions(code: CodeScan) -> Iterator[str]:
    """What a scan of code looks for, in its parts: "function or method, decorated with app.task"."""
    kinds = " or ".join(code.kinds) or ("definition" if code.rows == "definitions" else "")
    if code.rows == "files":
        defining = f" {'without any' if code.lacking else 'that define a'} {kinds}" if kinds else ""
        yield f"file of code{defining}"
    else:
        yield kinds
    for condition in code.conditions:
        yield _TOLD[condition.aspect, condition.negated].format(" or ".join(condition.values)).strip()


_TOLD = {
    (CodeAspect.NAME, False): "named {}",
    (CodeAspect.NAME, True): "not named {}",
    (CodeAspect.OWNER, False): "in class {}",
    (CodeAspect.OWNER, True): "not in class {}",
    (CodeAspect.DECORATOR, False): "decorated with {}",
    (CodeAspect.DECORATOR, True): "not decorated {}",
    (CodeAspect.BASE, False): "directly derived from {}",
    (CodeAspect.BASE, True): "not directly derived {}",
    (CodeAspect.CALL, False): "calling {}",
    (CodeAspect.CALL, True): "not calling {}",
    (CodeAspect.ASYNC, False): "async",
    (CodeAspect.ASYNC, True): "not async",
    (CodeAspect.IMPORT, False): "importing {}",
    (CodeAspect.IMPORT, True): "not importing {}",
    (CodeAspect.MODULE, False): "in module {}",
    (CodeAspect.MODULE, True): "not in module {}",
    (CodeAspect.FILE, False): "in file {}",
    (CodeAspect.FILE, True): "not in file {}",
}
