"""Labelled sets: what is read, and the one sentence for each thing that can be wrong with their files."""

import json

import pytest

from orchestrator.evaluation.dataset import load_dataset
from orchestrator.evaluation.eval_folder import corpus_copy
from orchestrator.evaluation.labels import plans_of
from shared.errors import InputError
from tests.fakes.labelled import write_set


def test_given_a_folder_when_read_then_questions_documents_and_grades_are_there(tmp_path):
    data = load_dataset(write_set(tmp_path / "mini"))
    assert (data.name, data.relevant_from) == ("mini", 1)
    assert [q.id for q in data.questions] == ["q1", "q2", "q3"]
    assert data.questions[2].text == "消息 队列"
    assert data.corpus.ids == {"d1", "d2", "d3", "d4"}
    assert data.qrels == {"q1": {"d1": 1}, "q2": {"d2": 1}, "q3": {"d4": 1}}


def test_given_gzipped_files_when_read_then_the_set_and_the_corpus_digest_are_the_same(tmp_path):
    plain, packed = write_set(tmp_path / "a"), write_set(tmp_path / "b", packed=True)
    one, other = load_dataset(plain), load_dataset(packed)
    assert one.corpus.digest == other.corpus.digest
    assert (one.qrels, one.questions) == (other.qrels, other.questions)


def test_given_a_limit_when_read_then_the_first_judged_questions_stay(tmp_path):
    folder = write_set(tmp_path, qrels=[("q2", "d2", 1), ("q3", "d4", 1)])
    data = load_dataset(folder, limit=1)
    assert ([q.id for q in data.questions], list(data.qrels)) == (["q2"], ["q2"])
    assert data.warnings == ("1 questions are left out: no document is judged grade 1 or better for them.",)


def test_given_other_files_when_read_then_they_stand_for_the_folders_own(tmp_path):
    folder, other = write_set(tmp_path / "a"), tmp_path / "half.jsonl"
    other.write_text('{"_id": 7, "text": "order"}\n', encoding="utf-8")
    judged = tmp_path / "half-qrels.jsonl"
    judged.write_text('{"query-id": "7", "corpus-id": "d1", "score": 1}\n', encoding="utf-8")
    assert load_dataset(folder, queries=other, qrels=judged).qrels == {"7": {"d1": 1}}


def test_given_blank_documents_when_copied_then_titles_stand_for_texts_and_the_rest_is_left_out(tmp_path):
    rows = [
        {"id": "d1", "title": "T", "text": " "},
        {"id": "d2", "text": ""},
        {"id": 3, "text": "x", "url": "http://u"},
    ]
    data = load_dataset(write_set(tmp_path / "s", documents=rows, qrels=[("q1", "d1", 1)], packed=True))
    assert data.warnings[1] == "1 documents have neither title nor text: nothing can find them."
    copy = corpus_copy(data.corpus, tmp_path)
    assert [json.loads(line) for line in copy.read_text(encoding="utf-8").splitlines()] == [
        {"id": "d1", "title": "T", "text": "T"},
        {"id": "3", "title": "", "text": "x"},
    ]


@pytest.mark.parametrize(("grades", "given", "expected"), [((1, 2), None, 1), ((1, 3), None, 2), ((1, 3), 1, 1)])
def test_given_a_scale_when_read_then_it_says_what_counts_as_relevant(tmp_path, grades, given, expected):
    folder = write_set(tmp_path, qrels=[("q1", "d1", grades[0]), ("q1", "d2", grades[1])])
    assert load_dataset(folder, relevant=given).relevant_from == expected


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("corpus.jsonl", "", "corpus.jsonl: .* it holds no documents"),
        ("corpus.jsonl", '{"id": "d1", "text": "a"}\n{"id": ', "corpus.jsonl line 2: .* write valid JSON"),
        ("corpus.jsonl", '["d1"]\n', "corpus.jsonl line 1: .* write an object"),
        ("corpus.jsonl", '{"text": "a"}\n', "corpus.jsonl line 1, id: null cannot be used: give a text or a number"),
        ("corpus.jsonl", '{"id": "d1"}\n', "corpus.jsonl line 1, text: null"),
        ("corpus.jsonl", '{"id": "d1", "text": "a"}\n' * 2, "line 2: 'd1' .* a document of that id stands above"),
        ("corpus.jsonl", b'\xff\xfe{"id"', "corpus.jsonl line 1: .* not UTF-8"),
        ("corpus.jsonl", b"\x1f\x8b\x08\x00broken", "corpus.jsonl: .* no whole gzip file"),
        ("queries.jsonl", "\n \n", "queries.jsonl: .* it holds no questions"),
        ("queries.jsonl", '{"id": "q1", "text": " "}\n', "queries.jsonl line 1, text: ' ' .* give the question"),
        ("queries.jsonl", '{"id": "q1", "text": "a"}\n' * 2, "a question of that id stands above"),
        ("qrels.tsv", "query-id\tcorpus-id\tgrade\n", "qrels.tsv: .* it holds no judgements"),
        ("qrels.tsv", "q1 d1 1\n", "qrels.tsv line 1: .* parted by tabs"),
        ("qrels.tsv", "q9\td1\t1\n", "qrels.tsv line 1: 'q9' cannot be used: there is no question of that id"),
        ("qrels.tsv", "q1\td1\t1\nq1\td9\t1\n", "qrels.tsv line 2: 'd9' .* there is no document of that id"),
        ("qrels.tsv", "q1\td1\thigh\n", "qrels.tsv line 1, grade: 'high' .* whole number"),
        ("qrels.tsv", "q1\td1\t1.5\n", "grade: '1.5' cannot"),
        ("qrels.tsv", "q1\td1\tinf\n", "grade: 'inf' cannot"),
        ("qrels.tsv", "q1\td1\t1\nq1\td1\t2\n", "judged twice"),
        ("qrels.tsv", "q1\td1\t0\n", "no question has a document of that grade"),
    ],
)
def test_given_a_broken_file_when_read_then_one_sentence_names_the_place(tmp_path, file, content, said):
    folder = write_set(tmp_path)
    (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=said):
        load_dataset(folder)


def test_given_no_folder_or_no_file_when_read_then_it_says_which(tmp_path):
    with pytest.raises(InputError, match="there is no such folder"):
        load_dataset(tmp_path / "nowhere")
    (write_set(tmp_path) / "qrels.tsv").unlink()
    with pytest.raises(InputError, match=r"none of the files qrels\.tsv"):
        load_dataset(tmp_path)
    with pytest.raises(InputError, match=r"mine\.tsv: .* there is no such file"):
        load_dataset(tmp_path, qrels=tmp_path / "mine.tsv")


def questions(tmp_path, *labels):
    rows = [{"id": f"q{n}", "text": "x", **fields} for n, fields in enumerate(labels, 1)]
    folder = write_set(tmp_path, questions=rows, qrels=[(row["id"], "d1", 1) for row in rows])
    return load_dataset(folder).questions


def texts(plans):
    return {question_id: [entry.query for entry in plan] for question_id, plan in plans.items()}


def test_given_a_field_of_objects_or_texts_when_planned_then_the_subquestions_come_in_order(tmp_path):
    steps = [{"filled": "who made it", "gold": "d1"}, {"filled": " when was that "}]
    asked = questions(tmp_path, {"decomposition": steps, "plan": ["a", "b"], "deep": {"plan": ["c"]}})
    assert texts(plans_of(asked, "decomposition.filled")[0]) == {"q1": ["who made it", "when was that"]}
    assert texts(plans_of(asked, "plan")[0]) == {"q1": ["a", "b"]}
    assert texts(plans_of(asked, "deep.plan")[0]) == {"q1": ["c"]}


def test_given_references_or_entries_when_planned_then_they_say_what_waits_for_what(tmp_path):
    entries = [{"query": "who made it"}, {"query": "when was that", "depends_on": [1]}]
    asked = questions(tmp_path, {"plan": ["who made it", "when was #1 born", "what is #9"], "entries": entries})
    assert [entry.depends_on for entry in plans_of(asked, "plan")[0]["q1"]] == [(), (1,), ()]
    assert [entry.depends_on for entry in plans_of(asked, "entries")[0]["q1"]] == [(), (1,)]


def test_given_questions_without_the_field_when_planned_then_a_warning_counts_them(tmp_path):
    plans, warnings = plans_of(questions(tmp_path, {"plan": ["a"]}, {}), "plan")
    assert texts(plans) == {"q1": ["a"]}
    assert warnings == ("1 of 2 questions have no plan: they are searched without a plan.",)


@pytest.mark.parametrize(
    ("labels", "field", "said"),
    [
        ({"plan": ["a"]}, "pln", "no question has it; their fields: plan"),
        ({"plan": "a"}, "plan", "no list of texts"),
        ({"plan": ["a", ""]}, "plan", "no list of texts"),
        ({"plan": [{"filled": "a"}]}, "plan", "name one of its fields, filled"),
        ({"plan": [{"filled": "a"}, {}]}, "plan.filled", "no list of texts"),
        ({"plan": ["a"] * 64}, "plan", "63 are the most"),
        ({"plan": ["a #2", "b"]}, "plan", "question q1: entry 1 waits for entry 2, which stands behind it"),
        ({"plan": [{"query": "a", "depend_on": [1]}]}, "plan", "question q1: there is no such field"),
    ],
)
def test_given_a_field_that_is_no_plan_when_planned_then_it_is_refused(tmp_path, labels, field, said):
    with pytest.raises(InputError, match=said):
        plans_of(questions(tmp_path, json.loads(json.dumps(labels))), field)
