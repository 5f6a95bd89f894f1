"""The words of the page: `page.toml` of each language, chosen by the visitor or by what the browser asks for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from shared.language import languages
from shared.language.tables import toml

_FOR_SCRIPTS = frozenset({"js", "state", "leaf", "facet"})


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """All texts of a language by "section.key"; empty where its folder has no page.toml."""
    try:
        sections = toml(language, "page")
    except FileNotFoundError:
        return {}
    return {f"{section}.{key}": text for section, keys in sections.items() for key, text in keys.items()}


#: Code of a language that the page speaks -> its own name.
LANGUAGES = {one.code: texts["page.language"] for one in languages() if (texts := catalogue(one.code))}
DEFAULT = next(iter(LANGUAGES))


class Words:
    """One language: `words("job.leaves", n=3)`. A text "one|many" is chosen by `n`."""

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else DEFAULT
        self._texts = catalogue(self.language)

    def __call__(self, key: str, /, **values: Any) -> str:
        """The text of `key` with `values` in its braces. Raises: KeyError for an unknown key or a value that lacks."""
        text = self._texts[key]
        one, bar, many = text.partition("|")
        if bar and "n" in values:
            text = one if values["n"] == 1 else many
        shown = {name: f"{value:,}" if type(value) is int else value for name, value in values.items()}
        return text.format_map(shown) if values else text

    def named(self, section: str, code: str) -> str:
        """The word for a code of ours; the code itself, in plain, where a newer release has one that is not known."""
        return self._texts.get(f"{section}.{code}") or code.replace("_", " ")

    def known(self, key: str) -> str | None:
        """The text of `key`, if there is one."""
        return self._texts.get(key)

    def for_scripts(self) -> dict[str, str]:
        """What the scripts say: the section "js" by key, states of jobs and leaves and facets as "state_done"."""
        found = {}
        for key, text in self._texts.items():
            section, _, name = key.partition(".")
            if section in _FOR_SCRIPTS:
                found[name if section == "js" else f"{section}_{name}"] = text
        return found


def asked_language(accepted: str) -> str:
    """Of the languages of an Accept-Language header, the one that we have and that is wanted most."""
    wanted: list[tuple[float, int, str]] = []
    for place, part in enumerate(accepted[:1000].split(",")):
        name, _, options = part.partition(";")
        wanted.append((-_weight(options), place, name.strip().lower().partition("-")[0]))
    return next((name for weight, _, name in sorted(wanted) if name in LANGUAGES and weight), DEFAULT)


def _weight(options: str) -> float:
    name, _, value = options.strip().partition("=")
    try:
        return min(1.0, max(0.0, float(value))) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
