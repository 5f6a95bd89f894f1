"""The page without a browser: everything is escaped, nothing runs but its own files, errors are pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.parser import HTMLParser

import pytest
import redis
from fastapi.testclient import TestClient

from orchestrator.access.caller import Scope
from orchestrator.access.keys import KeyStore
from orchestrator.client import Ramify
from orchestrator.documents.feeding import PushedDocument
from orchestrator.server.page.rendering import static_files
from shared.jobs import JobStore
from shared.models import Citation, Facet, LeafResult, LeafStatus, MergedHit, MergedPool, Node, Summary
from shared.models.answer import ReasoningStep
from shared.models.gaps import GapSignal, SearchedGap
from shared.models.support import AnswerSentence, Quotation, RemovedSentence, Support, SupportReport
from shared.models.verdicts import AnswerVerdict, Contradiction, StaleReason, StaleSource
from tests.fakes.walked_jobs import WalkedJob, answer

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202eabc\u200b\"'javascript:alert(1)"
PAGES = ("/", "/jobs", "/batches", "/compare", "/operate", "/corpus", "/jobs/none", "/corpus/documents")


class Markup(HTMLParser):
    """What a page may not have: scripts of its own, styles, handlers, addresses outside."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.faults = list[str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.faults += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and not (given.get("src") or "").startswith("/static/")):
            self.faults.append(tag)
        for name in ("href", "src", "action", "formaction"):
            if given.get(name) and not re.match(r"[/#](?!/)", given[name] or ""):
                self.faults.append(f"{tag} {name}={given[name]}")


def checked(http: TestClient, path: str, status: int = 200) -> str:
    """The page at a path, with all that holds for any."""
    found = http.get(path)
    assert found.status_code == status, found.text[-500:]
    assert "default-src 'none'" in found.headers["content-security-policy"]
    assert "unsafe" not in found.headers["content-security-policy"]
    assert (found.headers["x-content-type-options"], found.headers["cache-control"]) == ("nosniff", "no-store")
    assert Markup(found.text).faults == []
    assert not re.search("[\u202a-\u202e\u200b\ufeff]", found.text), "nothing hidden"
    assert "<script>alert" not in found.text
    return found.text


@pytest.fixture
def hostile(ramify: Ramify, store: JobStore) -> str:
    """A job whose question, plan, answer, sources, warnings and removed sentences are all made to run scripts."""
    job_id = ramify.submit(HOSTILE)
    walked = WalkedJob(store, job_id)
    assert walked.planning()
    node = Node(id="0.1", parent_id="0", level=1, facet=Facet.WHY, query=HOSTILE)
    assert store.start_searching(job_id, [node])
    hit = MergedHit(chunk_id="c", doc_id="d/../e", path=f"{HOSTILE}.md", title=HOSTILE, text=HOSTILE, score=0.5)
    leaf = LeafResult(node_id="0.1", status=LeafStatus.DONE, hits=(hit,), error=None)
    assert store.record_leaf(job_id, leaf) == 0
    assert store.start_merging(job_id, "w")
    assert store.start_summarising(job_id, MergedPool(hits=(hit,)))
    text = f"{HOSTILE} [1] not said"
    summary = Summary(
        text=text, kind="llm",
        citations=(Citation(number=1, chunk_id="c", path=HOSTILE, title=HOSTILE, quote=HOSTILE),),
        support=SupportReport(
            sentences=2, supported=1, repaired=0, unsupported=1,
            removed=(RemovedSentence(text=HOSTILE, kind=HOSTILE, reason=HOSTILE),),
            spans=(AnswerSentence(start=len(text) - 8, end=len(text), support=Support.UNSUPPORTED, reason=HOSTILE),),
        ),
        contradictions=(
            Contradiction(
                kind="number", one=Quotation(number=1, text=HOSTILE), other=Quotation(number=1, text=HOSTILE),
                values=(HOSTILE, HOSTILE),
            ),
        ),
        stale=(StaleSource(number=1, reason=StaleReason.SAYS_SO, said=HOSTILE),),
    )  # fmt: skip
    made = answer(walked.job).model_copy(
        update={
            "question": HOSTILE, "summary": summary, "results": (hit,), "leaves": (leaf,), "tree": (node,),
            "warnings": (HOSTILE,), "degraded": ("llm_unavailable", HOSTILE),
            "degraded_at": {HOSTILE: ("llm_unavailable",)},
            "steps": (ReasoningStep(
                number=3, kind="fact", node_id="0.1", facet="why", question=HOSTILE, text="- So it is. [1] And so.",
                spans=(AnswerSentence(start=0, end=15, quotes=(Quotation(number=1, text="So"),)),),
            ),),
            "gaps": (SearchedGap(signal=GapSignal.NAME, what=HOSTILE, text=HOSTILE),),
            "verdicts": (AnswerVerdict.CONTRADICTING_SOURCES.value,),
        }
    )  # fmt: skip
    assert store.finish(walked.job, made)
    return job_id


def test_nothing_of_a_hostile_job_is_more_than_text(http: TestClient, hostile: str) -> None:
    for language in ("en", "zh"):
        http.cookies.set("ramify_language", language)
        page = checked(http, f"/jobs/{hostile}")
        assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 8
    for path in ("/", "/jobs", f"/jobs/{hostile}/why", f"/?again={hostile}"):
        checked(http, path)


def test_an_answer_shows_what_is_wrong_with_it(http: TestClient, hostile: str) -> None:
    http.cookies.set("ramify_language", "en")
    page = checked(http, f"/jobs/{hostile}")
    assert f'/jobs/{hostile}/sources/1?sentence=0&amp;step=3"' in page
    assert "- So it is." in page
    for said in (
        "The sources contradict each other", "Sources that are out of date", "the LLM did not answer",
        "not in its sources", "removed,", "Gaps", "1 of 1 leaves answered",
    ):  # fmt: skip
        assert said in page, said


def test_answers_are_kept_as_files_that_browsers_do_not_open(http: TestClient, hostile: str) -> None:
    for ending in ("md", "html", "json", "bibtex", "csl"):
        found = http.get(f"/jobs/{hostile}/export.{ending}")
        assert found.headers["content-disposition"].startswith(f'attachment; filename="{hostile}.')
        assert found.text
    assert http.get(f"/jobs/{hostile}/export.exe").status_code == 422


def test_every_page_keeps_the_rules_without_pools(http: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.documents.corpus._READ_S", 0.2)
    for path in PAGES:
        checked(http, path, 404 if path.endswith("none") else 503 if path == "/corpus/documents" else 200)


def test_addresses_of_pages_that_were_made_up_are_told_so(http: TestClient, hostile: str) -> None:
    found = http.get("/corpus/documents?start=x", headers={"accept": "text/html"})
    assert (found.status_code, found.headers["content-type"]) == (422, "text/html; charset=utf-8")
    for path in (f"/jobs/{hostile}/rows", f"/jobs/{hostile}/rows.csv"):
        found = http.get(path, headers={"accept": "text/html"})
        assert (found.status_code, "has no list" in found.text) == (409, True)


def test_a_path_that_is_none_is_a_page_for_browsers_and_a_problem_for_programs(http: TestClient) -> None:
    found = http.get("/nowhere", headers={"accept": "text/html"})
    assert (found.status_code, "There is no such page" in found.text) == (404, True)
    for path, accept in (("/nowhere", "*/*"), ("/v1/nowhere", "text/html")):
        assert http.get(path, headers={"accept": accept}).headers["content-type"] == "application/problem+json"


def test_all_files_of_the_page_together_are_small(http: TestClient, hostile: str) -> None:
    page = http.get(f"/jobs/{hostile}")
    files = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)
    assert len(files) >= 4
    assert len(page.content) + sum(len(http.get(file).content) for file in files) < 100_000
    assert sum(len(content) for content, _ in static_files().values()) < 60_000


def test_static_files_are_only_those_that_are_shipped(http: TestClient) -> None:
    assert http.get("/static/x/page.css").headers["content-type"] == "text/css; charset=utf-8"
    for name in ("..%2frendering.py", "%2e%2e/rendering.py", "rendering.py", "page.css/..", ".hidden"):
        assert http.get(f"/static/x/{name}").status_code == 404


def test_a_form_of_another_site_is_refused(http: TestClient) -> None:
    form = {"question": "why?"}
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        assert http.post("/ask", data=form, headers=headers).status_code == 403
    headers = {"origin": str(http.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
    own = http.post("/ask", data=form, headers=headers, follow_redirects=False)
    assert own.status_code == 303
    assert re.fullmatch(r"/jobs/\w+", own.headers["location"])


def test_a_question_that_cannot_be_taken_is_shown_again_with_the_reason(http: TestClient) -> None:
    refused = http.post("/ask", data={"question": "why?", "top_n": "900", "strategy": "deep"})
    assert refused.status_code == 422
    assert "top_n" in refused.text
    assert "<option selected>deep</option>" in refused.text


def test_a_form_that_is_sent_twice_makes_one_job_and_a_changed_question_another(http: TestClient) -> None:
    def drawn() -> str:
        found = re.search(r'name="form_id" value="([^"]+)"', http.get("/").text)
        assert found
        return found[1]

    def asked(form_id: str, question: str) -> str:
        form = {"question": question, "form_id": form_id}
        return http.post("/ask", data=form, follow_redirects=False).headers["location"]

    first = drawn()
    made = asked(first, "why?")
    assert asked(first, "why?") == made
    assert len({made, asked(first, "why not?"), asked(drawn(), "why?")}) == 3


def test_a_question_that_is_too_long_is_not_cut_but_shown_again_whole(http: TestClient) -> None:
    assert "maxlength" not in http.get("/").text.partition("</textarea>")[0]
    taken = http.post("/ask", data={"question": "a\r\n" * 1_500 + "b" * 1_000}, follow_redirects=False)
    assert taken.status_code == 303, "a line end is one character"
    refused = http.post("/ask", data={"question": "word " * 5_000})
    assert refused.status_code == 422
    assert f">{'word ' * 5_000}</textarea>" in refused.text
    assert re.search("4,?000", refused.text.partition("<textarea")[0]), "the bound is told"


def test_a_plan_is_shown_before_it_costs_anything(http: TestClient) -> None:
    form = {"question": "Why did checkout slow down, and what did we change afterwards?"}
    inside = http.post("/preview", data=form, headers={"x-fragment": "1"}).text
    assert inside.lstrip().startswith("<section")
    assert "0.1" in inside
    whole = http.post("/preview", data=form).text
    assert "<!doctype html>" in whole
    assert form["question"] in whole
    assert not http.get("/jobs").text.count("data-row"), "no job was made"


def test_open_jobs_are_cancelled_and_ended_ones_tried_again(http: TestClient, ramify: Ramify, store: JobStore) -> None:
    job_id = ramify.submit("why?")
    WalkedJob(store, job_id).to("searching")
    open_page = http.get(f"/jobs/{job_id}").text
    assert f'action="/jobs/{job_id}/cancel"' in open_page
    assert "question 0.1" in open_page
    state = http.get(f"/jobs/{job_id}/state").json()
    assert (state["state"], state["open"], len(state["rows"])) == ("searching", True, 3)
    ended = http.post(f"/jobs/{job_id}/cancel")
    assert ended.status_code == 200
    assert ramify.status(job_id).state == "cancelled"
    assert f'action="/jobs/{job_id}/retry"' in ended.text
    assert http.post(f"/jobs/{job_id}/retry", data={"deadline_s": "soon"}).status_code == 422
    made = http.post(f"/jobs/{job_id}/retry", data={"deadline_s": "77"}, follow_redirects=False).headers["location"]
    assert made == f"/jobs/{ramify.status(job_id).retried_as}"
    assert ramify.status(made.rpartition("/")[2]).deadline_s == 77


def test_the_page_talks_of_no_commands_for_what_it_has(http: TestClient, ramify: Ramify, hostile: str) -> None:
    early = http.get(f"/jobs/{ramify.submit('why?')}?early=1").text
    assert "Nothing has been found yet." in early
    for page in (early, *(http.get(path).text for path in ("/jobs/none", "/compare?a=x&b=y", f"/jobs/{hostile}/why"))):
        assert "ramify " not in page.partition("<main")[2].partition("</main>")[0]


def test_files_are_sent_without_scripts_and_lead_to_their_pages(
    http: TestClient, ramify: Ramify, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 'action="/batches"' in http.get("/batches").text
    posted = {"file": ("mine.jsonl", b'{"question": "why?"}\nhow?\n')}
    page = http.post("/batches", files=posted)
    assert re.search(r"/batches/\w+$", str(page.url))
    assert "<h1>mine.jsonl</h1>" in page.text
    assert page.text.count("<tr data-row") == 2
    none = http.post("/batches", files={"file": ("", b"")}, headers={"accept": "text/html"})
    assert (none.status_code, "choose a file" in none.text, "<main" in none.text) == (422, True, True)

    taken = dict[str, object]()

    def upsert(_: Ramify, documents: Iterable[PushedDocument], **more: object) -> str:
        taken.update(more, content=[one.content for one in documents])
        return ramify.submit("stands for the ingest")

    monkeypatch.setattr(Ramify, "upsert", upsert)
    form = {"source": "mine", "namespace": "notes"}
    made = http.post("/corpus", files={"file": ("a.md", b"# A")}, data=form, follow_redirects=False)
    assert (made.status_code, made.headers["location"][:6]) == (303, "/jobs/")
    assert (taken["source"], taken["namespace"], taken["content"]) == ("mine", "notes", [b"# A"])
    assert http.post("/corpus", files={"file": ("a.md", b"# A")}, data={"source": "mine"}).status_code == 422


def test_lines_of_a_batch_are_filtered_and_paged(http: TestClient, ramify: Ramify) -> None:
    made = ramify.submit_many([f"number {number}" for number in range(1, 121)])
    batch_id = made.batch_id
    for job_id in made.job_ids[70:75]:
        ramify.cancel(job_id)
    page = http.get(f"/batches/{batch_id}").text
    assert page.count("<tr data-row") == 50
    assert f"/batches/{batch_id}?from=51" in page
    cancelled = http.get(f"/batches/{batch_id}?only=cancelled").text
    assert re.findall(r">number (\d+)<", cancelled) == ["71", "72", "73", "74", "75"]
    assert http.get(f"/batches/{batch_id}?from=101").text.count("<tr data-row") == 20
    lines = http.get(f"/batches/{batch_id}/answers.jsonl")
    assert lines.headers["content-disposition"] == f'attachment; filename="{batch_id}.jsonl"'
    assert len(lines.text.splitlines()) == 120
    assert http.get(f"/batches/{batch_id}/answers.csv").text.startswith('"line"')
    assert http.get(f"/batches/{batch_id}/answers.exe").status_code == 422
    assert http.get("/batches/none/answers.csv").status_code == 404


def test_batches_of_nobody_are_shown_to_operators_and_those_of_other_tenants_are_not(
    http: TestClient, ramify: Ramify, client: redis.Redis
) -> None:
    nobodys = ramify.submit_many(["of the machine's user"]).batch_id
    others = ramify.for_tenant("acme").submit_many(["theirs"]).batch_id
    keys = KeyStore(client, ramify.settings)
    for scopes, status in (([Scope.READ, Scope.ADMIN], 200), ([Scope.READ], 404)):
        made = keys.create("ops", scopes)
        http.headers["Authorization"] = f"Bearer {made.secret.get_secret_value()}"
        assert (f"/batches/{nobodys}" in http.get("/batches").text) is (status == 200)
        assert http.get(f"/batches/{nobodys}").status_code == status
        assert http.get(f"/batches/{nobodys}/answers.jsonl").status_code == status
        assert others not in http.get("/batches").text
        assert http.get(f"/batches/{others}").status_code == 404


def test_language_and_colours_are_kept_and_lead_nowhere_else(http: TestClient) -> None:
    for back, to in (
        ("/jobs?state=done", "/jobs?state=done"),
        ("//evil.example", "/"),
        ("https://evil", "/"),
        ("/\\evil", "/"),
    ):
        found = http.get("/look", params={"language": "zh", "theme": "dark", "back": back}, follow_redirects=False)
        assert (found.status_code, found.headers["location"]) == (303, to)
    page = http.get("/jobs").text
    assert 'lang="zh-Hans"' in page
    assert 'data-theme="dark"' in page
    http.get("/look", params={"language": "<b>", "theme": "pink"})
    assert 'lang="zh-Hans"' in http.get("/jobs").text


def test_a_visitor_with_a_key_sees_its_tenant_no_paths_and_no_more_than_it_may(
    http: TestClient, ramify: Ramify, client: redis.Redis
) -> None:
    keys = KeyStore(client, ramify.settings)
    made = keys.create("acme", [Scope.READ])
    http.headers["Authorization"] = f"Bearer {made.secret.get_secret_value()}"
    own, other = ramify.submit("ours?", tenant="acme"), ramify.submit("theirs?", tenant="default")
    assert "ours?" in checked(http, "/jobs")
    assert "theirs?" not in checked(http, "/jobs")
    checked(http, f"/jobs/{other}", 404)
    page = checked(http, f"/jobs/{own}")
    assert "/cancel" not in page
    assert "/operate" not in page
    assert 'action="/logout"' in page
    assert 'action="/ask"' not in checked(http, "/")
    assert "/?again=" not in page
    checked(http, "/operate", 403)
    assert http.post("/ask", data={"question": "more?"}).status_code == 403
    assert http.post(f"/jobs/{own}/cancel").status_code == 403
    for path in ("/batches", "/corpus"):
        assert http.post(path, files={"file": ("a.md", b"more?")}).status_code == 403
