"""What people say of answers: by citation, path or id of a document, or of the answer as a whole."""

from __future__ import annotations

from collections.abc import Iterable

from shared.errors import InputError
from shared.models import Answer


def judged_documents(answer: Answer, names: Iterable[str]) -> list[str]:
    """The ids of the documents that `names` mean: `2` for the citation [2], else an id, path or title of a result.

    Raises: InputError for what the answer does not show.
    """
    return list(dict.fromkeys(_document(answer, name) for name in names))


def _document(answer: Answer, name: str) -> str:
    cited = {str(one.number): one.doc_id for one in answer.summary.citations if one.doc_id}
    if name in cited:
        return cited[name]
    for hit in answer.results:
        if name in {hit.doc_id, hit.path, hit.title}:
            return hit.doc_id
    shown = ", ".join(dict.fromkeys(hit.path for hit in answer.results[:5])) or "none"
    fix = f"name a citation by its number, or a document that the answer shows by its path ({shown} ...)"
    raise InputError("--doc", name, fix)
