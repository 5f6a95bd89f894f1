"""The subject of a mail without the marks that replies and lists put before it."""

from __future__ import annotations

import re

from shared.language import derived, languages


def thread_of(subject: str) -> str:
    """The subject without "Re:", "Fwd [2]:", "[list]" and the like, which a mail and its replies share."""
    return _marks().sub("", subject, count=1) or subject


@derived
def _marks() -> re.Pattern[str]:
    words = "|".join(word for language in languages() for word in language.lists.phrases.get("mail_reply", ()))
    mark = rf"\s*+(?:{words})\s*+(?:\[\d+\])?+\s*+[:\uff1a]"
    return re.compile(rf"(?:{mark}|\s*+\[[^\]]{{1,40}}\])++\s*+", re.IGNORECASE)
