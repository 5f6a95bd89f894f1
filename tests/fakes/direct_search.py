"""A stand-in for `python -m workers.direct`: the same JSON lines, a search by shared words, and faults on demand.

Strategy "hybrid" ranks worst first. A question that starts with DIE, HANG, GARBAGE, ODD or FAIL makes it do so.
"""

import gzip
import json
import sys
import time
from pathlib import Path


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def documents(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)  # noqa: SIM115, PTH123
    with opened as file:
        return [json.loads(line) for line in file if line.strip()]


def opened(order):
    folder, rows = Path(order["folder"]), documents(order["corpus"])
    built = order["rebuild"] or not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if any("REFUSE" in row["text"] for row in rows):
        say({"error": "the model is gone", "bad_input": True})
        return None
    if built:
        say({"progress": {"done": 1, "total": len(rows)}})
    say({"opened": {"documents": len(rows), "chunks": len(rows), "built": built, "seconds": 0.1}})
    return rows


def answered(rows, asked):
    match asked["question"].split()[0]:
        case "DIE":
            print("the store is on fire", file=sys.stderr)
            sys.exit(7)
        case "HANG":
            time.sleep(60)
        case "GARBAGE":
            print("loading ...", flush=True)
            return
        case "ODD":
            say({"documents": "none"})
            return
        case "FAIL":
            say({"error": "no such stage"})
            return
    texts = [asked["question"], *(entry["query"] for entry in asked.get("subqueries", []))]
    wanted = [set(text.lower().split()) for text in texts]
    scores = {r["id"]: max(len(w & set(r["text"].lower().split())) for w in wanted) for r in rows}
    found = sorted((d for d, score in scores.items() if score), key=lambda d: (-scores[d], d))
    if "hybrid" in {asked.get("strategy"), asked.get("of_type")}:
        found.reverse()
    cost = {"embed_calls": 1, "rerank_calls": 2, "rerank_documents": 50}
    told = {"documents": [*found, *found][: asked["limit"]], "relevance": {d: scores[d] / 10 for d in found}}
    say({**told, "ms": 2.5, "cost": cost, "warnings": ["Keyword search only."]})


def main():
    order = json.loads(sys.stdin.readline())["open"]
    rows = opened(order)
    for line in sys.stdin:
        answered(rows or [], json.loads(line))


if __name__ == "__main__":
    main()
