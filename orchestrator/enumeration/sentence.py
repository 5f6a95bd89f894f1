"""A question while it is read: what was understood is taken out, so that what is left are words to look for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.language.text import plain

#: Stands where something was taken out.
GAP = "\x1f"
#: Stands before the number of a quoted text.
HOLD = "\ue000"
MAX_CHARS = 1000
_QUOTED = re.compile(
    r"“([^“”\n]{1,80})”|\"([^\"\n]{1,80})\"|「([^「」\n]{1,80})」|『([^『』\n]{1,80})』|《([^《》\n]{1,80})》"
    r"|(?<![\w])'([^'\n]{1,80})'(?!\w)|`([^`\n]{1,80})`"
)
_HELD = re.compile(HOLD + "(.)")
_FIRST_HELD = 0xE100
_MOST_HELD = 20


class Sentence:
    """The folded text of a question with quoted parts put aside (`quoted`)."""

    def __init__(self, question: str) -> None:
        self.quoted: list[str] = []
        bare = "".join(c if c.isprintable() and not "\ue000" <= c <= "\uf8ff" else " " for c in question[:MAX_CHARS])
        # Bounded again: folded, one character may be eighteen.
        self.text = " ".join(plain(_QUOTED.sub(self._hold, bare))[:MAX_CHARS].split())

    def _hold(self, found: re.Match[str]) -> str:
        text = next(part for part in found.groups() if part is not None).strip()
        if not text or len(self.quoted) >= _MOST_HELD:
            return " "
        self.quoted.append(text)
        return f" {HOLD}{chr(_FIRST_HELD + len(self.quoted) - 1)} "

    def held(self, start: int) -> tuple[str, int] | None:
        """The quoted text that stands at `start`, and where its place ends."""
        found = _HELD.match(self.text, start)
        return (self.quoted[ord(found[1]) - _FIRST_HELD], found.end()) if found else None

    def take(self, start: int, end: int) -> None:
        """Take a part out."""
        self.text = f"{self.text[:start]} {GAP} {self.text[end:]}"

    def restored(self, text: str) -> str:
        """`text` with its quoted parts back in it."""
        return _HELD.sub(lambda found: self.quoted[ord(found[1]) - _FIRST_HELD], text)


def unique(items: Sequence[str]) -> tuple[str, ...]:
    """Each once, in order."""
    return tuple(dict.fromkeys(items))
