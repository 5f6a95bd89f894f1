"""What a text is about: a mail's subject without the marks of replies and lists, and that of an open question."""

from __future__ import annotations

import re

from shared.language import derived, languages, question_language


def thread_of(subject: str) -> str:
    """The subject without "Re:", "Fwd [2]:", "[list]" and the like, which a mail and its replies share."""
    return _marks().sub("", subject, count=1) or subject


@derived
def _marks() -> re.Pattern[str]:
    words = "|".join(word for language in languages() for word in language.lists.phrases.get("mail_reply", ()))
    mark = rf"\s*+(?:{words})\s*+(?:\[\d+\])?+\s*+[:\uff1a]"
    return re.compile(rf"(?:{mark}|\s*+\[[^\]]{{1,40}}\])++\s*+", re.IGNORECASE)


def subject_or_all(question: str) -> str:
    """Of whom or what a question wants to know anything that there is; of any other question all."""
    return (question_language(question) or languages()[0]).answers.open_subject(question) or question
