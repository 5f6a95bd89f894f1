"""Pages of a large corpus: views wait for a moment, whatever is counted; a filtered list goes on where it ended."""

from __future__ import annotations

import time
import uuid
from threading import Event
from typing import Any

import pytest
from fastapi.testclient import TestClient

from orchestrator.documents.corpus import Corpus
from orchestrator.server.page import documents
from orchestrator.server.page.overviews import CorpusOverviews
from shared.models.corpus import PAGE, DocumentsReply, StoredDocument
from tests.support.waiting import until

_FIRST = str(uuid.UUID(int=0))


class LargeCorpus(Corpus):
    """So many documents, of which each seventh is of a kind; a page of them takes so many seconds."""

    def __init__(self, many: int, page_s: float = 0.0) -> None:
        self.many, self.page_s, self.asked = many, page_s, list[str]()
        self.may_go_on = Event()
        self.may_go_on.set()
        self._ingests = list

    def page(self, start: str = "", most: int = PAGE, *, namespace: str | None = None) -> DocumentsReply:
        self.asked.append(start)
        self.may_go_on.wait(10)
        time.sleep(self.page_s)
        first = uuid.UUID(start).int if start else 0
        last = min(first + most, self.many)
        found = tuple(
            StoredDocument(
                doc_id=str(uuid.uuid5(uuid.NAMESPACE_OID, str(at))), path=f"notes/{at}.md", title=f"Page {at}",
                source="/notes", kind="memory" if at % 7 == 0 else "resource",
            )
            for at in range(first, last)
        )  # fmt: skip
        following = str(uuid.UUID(int=last)) if last < self.many else ""
        return DocumentsReply(documents=found, following=following, total=0 if start else self.many)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> LargeCorpus:
    corpus = LargeCorpus(5_000)
    monkeypatch.setattr("orchestrator.client.Ramify.corpus", property(lambda _: corpus))
    return corpus


def test_a_view_waits_for_a_moment_and_shows_how_far_the_count_is(http: TestClient, large: LargeCorpus) -> None:
    large.may_go_on.clear()
    began = time.monotonic()
    first = http.get("/corpus", headers={"accept-language": "en"})
    assert time.monotonic() - began < 3
    assert (first.status_code, "0 of 0 documents are counted so far" in first.text) == (200, True)
    large.may_go_on.set()
    large.asked.clear()
    until(lambda: "<b>5,000</b>" in http.get("/corpus").text, 10)
    assert "are counted so far" not in http.get("/corpus", headers={"accept-language": "en"}).text
    assert len(large.asked) <= 10, "the count of the first view went on"


def test_one_count_runs_at_a_time_and_rests_after_a_long_one() -> None:
    overviews, corpus = CorpusOverviews(), LargeCorpus(PAGE, page_s=0.2)
    corpus.may_go_on.clear()
    assert [overviews.of("a", lambda: corpus).overview for _ in range(2)] == [None, None]
    corpus.may_go_on.set()
    found = until(lambda: overviews.of("a", lambda: corpus).overview, 10)
    assert found == overviews.of("a", lambda: corpus).overview
    assert found.documents == PAGE
    assert corpus.asked == [""]
    overviews.close()


def test_a_filtered_list_goes_on_with_the_document_behind_the_last(http: TestClient, large: LargeCorpus) -> None:
    path: Any = "/corpus/documents?kinds=memory"
    titles = list[str]()
    for _ in range(4):
        page = http.get(path, headers={"accept": "text/html"}).text
        titles += [part.partition("<")[0] for part in page.split(">Page ")[1:]]
        path = page.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert titles == [str(7 * at) for at in range(200)]
    assert "" not in large.asked, "nothing is counted for it"


def test_what_is_rare_is_sought_for_a_moment_a_page(
    http: TestClient, large: LargeCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_SEARCH_S", 0.0)
    page = http.get("/corpus/documents?q=page+4999", headers={"accept-language": "en"}).text
    assert "the next page looks on" in page
    assert large.asked == [_FIRST]
    assert f"start={uuid.UUID(int=PAGE)}" in page
