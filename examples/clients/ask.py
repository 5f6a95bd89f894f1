"""Asks a question over HTTP, follows its events and prints the answer with its sources: `python ask.py QUESTION`.

RAMIFY_URL names the server, RAMIFY_KEY an API key. Needs httpx.
"""

import json
import os
import sys
import time

import httpx

URL, KEY = os.environ.get("RAMIFY_URL", "http://127.0.0.1:8321"), os.environ.get("RAMIFY_KEY")


def checked(response):
    """The response; of one that is none, the sentence of its problem ends the program."""
    if response.is_error:
        sys.exit(json.loads(response.read())["detail"])
    return response


def events(http, path):
    """Server-sent events as (name, data); a connection that is lost is taken up behind the last event."""
    last, name, data = {}, "message", ""
    while name != "end":
        try:
            with http.stream("GET", path, headers=last) as response:
                if response.status_code == 204:
                    return  # it had ended before
                for line in checked(response).iter_lines():
                    field, _, value = line.partition(": ")
                    if field == "id":
                        last = {"Last-Event-ID": value}
                    elif field == "event":
                        name = value
                    elif field == "data":
                        data += value
                    elif not line and data:
                        yield name, json.loads(data)
                        data = ""
        except httpx.TransportError as error:
            print(f"connecting again: {error}", file=sys.stderr)
            time.sleep(1)


def main(question):
    """Ask it, print what happens to stderr and the answer to stdout."""
    headers = {"Authorization": f"Bearer {KEY}"} if KEY else {}
    with httpx.Client(base_url=URL, headers=headers, timeout=60) as http:
        job = checked(http.post("/v1/jobs", json={"question": question})).json()["job_id"]
        for name, data in events(http, f"/v1/jobs/{job}/events"):
            print(name, data.get("state") or data.get("id") or "", file=sys.stderr)
        answer = checked(http.get(f"/v1/jobs/{job}/result")).json()
    print(answer["summary"]["text"])
    for citation in answer["summary"]["citations"]:
        print(f"  [{citation['number']}] {citation['path']}")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
