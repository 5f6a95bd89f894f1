"""Which files have a reader, and what a walk leaves out, in sentences that say how it would be read."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from shared.files.found import printable
from shared.models.ingest import FORMAT_PACKAGES, FORMATS, SUFFIXES
from shared.plugins import suffixes_of_readers

#: How to read what no reader of the plain install reads.
EXTRA = "pip install 'ramify[documents]'"
#: How what is not read becomes what is.
_OFFICE = "convert them with soffice --headless --convert-to"
CONVERSIONS = {
    ".doc": f"{_OFFICE} docx", ".dot": f"{_OFFICE} docx", ".rtf": f"{_OFFICE} docx", ".xls": f"{_OFFICE} xlsx",
    ".ppt": f"{_OFFICE} pptx", ".zip": "unpack them", ".7z": "unpack them", ".rar": "unpack them",
    ".gz": "unpack them", ".bz2": "unpack them", ".xz": "unpack them", ".tar": "unpack them", ".tgz": "unpack them",
    ".msg": "save them as .eml", ".pst": "save them as .mbox", ".ps": "convert them with ps2pdf",
}  # fmt: skip
#: Suffixes without a reader that are named one by one.
_MOST_SUFFIXES = 8


class PassedOver:
    """What a walk leaves out: sentences for what a person may miss, and how many files of each kind have no reader."""

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self.without_reader: Counter[str] = Counter()
        self.empty: list[Path] = []
        self.hidden = 0

    def append(self, sentence: str) -> None:
        """One thing that was left out."""
        self._sentences.append(sentence)

    def sentences(self) -> list[str]:
        """All of them; files without a reader by suffix, most first, with what to install where that would help."""
        found = list(self._sentences)
        if self.empty:
            more = f" and {len(self.empty) - 1} more" if len(self.empty) > 1 else ""
            found.append(f"{printable(self.empty[0])}{more}: empty")
        if self.hidden:
            found.append(f"{self.hidden:,} hidden: their names begin with a dot")
        groups: dict[str, Counter[str]] = {}
        for suffix, count in self.without_reader.items():
            why = EXTRA if suffix in FORMATS else CONVERSIONS.get(suffix, "no reader for them")
            groups.setdefault(why, Counter())[suffix] = count
        for why in sorted(groups, key=lambda why: (why == "no reader for them", why != EXTRA, why)):
            counts = sorted((-count, suffix) for suffix, count in groups[why].items())
            named = ", ".join(f"{-count:,} {_suffix(suffix)}" for count, suffix in counts[:_MOST_SUFFIXES])
            rest = sum(-count for count, _ in counts[_MOST_SUFFIXES:])
            found.append(f"{named}{f', {rest:,} others' if rest else ''}: {why}")
        return found


def _suffix(suffix: str) -> str:
    return printable(Path(suffix)) if suffix else "without suffix"


def has_reader(suffix: str) -> bool:
    """Whether files of this suffix, in small letters, are read: by Ramify, or by a plugin."""
    return suffix in SUFFIXES or suffix in suffixes_of_readers()


def missing_package(suffix: str) -> str:
    """The package that the parser of these files needs and that is not installed here; "" where nothing is missing."""
    package = "" if suffix in suffixes_of_readers() else FORMAT_PACKAGES.get(FORMATS.get(suffix, ""), "")
    return package if package and find_spec(package) is None else ""


def no_reader(suffix: str) -> str:
    """Why files of this suffix are refused."""
    if hint := CONVERSIONS.get(suffix):
        return f"there is no reader for {suffix}: {hint}"
    return f"there is no reader for it; readers: {', '.join(sorted(SUFFIXES | suffixes_of_readers().keys()))}"
