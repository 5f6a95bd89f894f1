"""Which kind of context a document is: memory, resource, skill, or a word of its own. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

RESOURCE = "resource"
_SKILL_FILE = "skill.md"


def kind_of(said: str, path: str, folders: Mapping[str, str]) -> str:
    """What the document says of itself; else by its name (SKILL.md) or the folder it stands in; else resource.

    `folders`: "memories/" = "memory". A folder counts as the root itself or right below it: `path` begins with the
    root's name.
    """
    if said:
        return said
    if PurePosixPath(path).name.lower() == _SKILL_FILE:
        return "skill"
    below = path.partition("/")[2]
    fitting = [folder for folder in folders if path.startswith(folder) or below.startswith(folder)]
    return folders[max(fitting, key=len)] if fitting else RESOURCE
