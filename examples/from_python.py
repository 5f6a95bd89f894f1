"""Asks questions of the running stack: `python examples/from_python.py QUESTION...`."""

import sys

from ramify import Ramify, RamifyError


def main(questions: list[str]) -> int:
    """Submit all questions as one batch and print each answer with its sources. Returns how many had none."""
    unanswered = 0
    with Ramify() as ramify:
        batch = ramify.submit_many(questions, top_n=5)
        for rejected in batch.rejected:
            print(f"question {rejected.line}: {rejected.reason}", file=sys.stderr)
        for job_id in batch.job_ids:
            ramify.wait(job_id)
            try:
                answer = ramify.result(job_id)
            except RamifyError as error:
                print(error, file=sys.stderr)
                unanswered += 1
                continue
            print(answer.summary.text)
            for citation in answer.summary.citations:
                print(f"  [{citation.number}] {citation.path}")
    return unanswered + len(batch.rejected)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
