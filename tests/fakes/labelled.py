"""A small labelled set in a folder, for the evaluation's tests."""

import gzip
import json

DOCUMENTS = [
    ("d1", "Streams", "redis streams keep order"),
    ("d2", "Queues", "rabbitmq queues spread load"),
    ("d3", "Lakes", "a lake holds fresh water and redis nothing"),
    ("d4", "消息", "消息 队列 的 顺序"),
]
QUESTIONS = [
    {"id": "q1", "text": "redis streams order", "decomposition": [{"filled": "queues spread load"}]},
    {"id": "q2", "text": "queues load", "decomposition": [{"filled": "lake fresh water"}]},
    {"id": "q3", "text": "消息 队列", "decomposition": [{"filled": "消息 顺序"}]},
]
QRELS = [("q1", "d1", 1), ("q2", "d2", 1), ("q3", "d4", 1)]


def write_set(folder, *, documents=None, questions=None, qrels=None, packed=False):
    """Write corpus, queries and qrels into `folder`; returns it."""
    rows = [{"id": name, "title": title, "text": text} for name, title, text in DOCUMENTS]
    folder.mkdir(parents=True, exist_ok=True)
    jsonl = {"corpus.jsonl": documents or rows, "queries.jsonl": questions or QUESTIONS}
    texts = {name: "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows) for name, rows in jsonl.items()}
    lines = ["query-id\tcorpus-id\tgrade", *("\t".join(map(str, row)) for row in qrels or QRELS)]
    texts["qrels.tsv"] = "\n".join(lines) + "\n"
    for name, text in texts.items():
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text, encoding="utf-8")
    return folder
