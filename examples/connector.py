"""A whole connector: keeps the articles of a SQLite database in the corpus. Run it by hand or from cron:

    python examples/connector.py wiki.db

It pushes all articles each time: what has not changed is left alone. What is gone from the database is deleted.
"""

import json
import sqlite3
import sys
from pathlib import Path

from ramify import Ramify


def articles(database):
    """Each article as a document. The id stays the same over changes; the metadata can be filtered by and asked for."""
    with sqlite3.connect(database) as connection:
        for number, title, body, day, owner in connection.execute("SELECT id, title, body, day, owner FROM articles"):
            yield {"id": str(number), "content": body, "metadata": {"title": title, "date": day, "owner": owner}}


def sync(ramify, database, source="wiki"):
    """Push what is there, delete what is gone since the last time; returns the counts of both jobs."""
    known_file = Path(f"{database}.pushed.json")
    before = set(json.loads(known_file.read_text())) if known_file.exists() else set()
    documents = list(articles(database))
    now = {document["id"] for document in documents}
    jobs = [ramify.upsert(documents, source=source), ramify.delete(before - now, source=source)]
    done = [ramify.wait(job) for job in jobs]
    if all(job.state == "done" for job in done):
        known_file.write_text(json.dumps(sorted(now)))
    return [job.ingest for job in done]


if __name__ == "__main__":
    with Ramify() as client:
        for counts in sync(client, sys.argv[1]):
            print(counts)
