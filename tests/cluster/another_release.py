"""A Celery worker of this code that reads and writes messages as another release would.

`python -m tests.cluster.another_release READS WRITES -A APP worker ...`, e.g. `1,2 2`. One that writes another version
than this release also adds a field to messages, to the blobs of jobs and to their nodes, as a newer one may.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from shared import contract
from shared.jobs import codec, scripts, store
from shared.tasks import celery_command

_FIELD = {"of_another_release": True}


def speak(reads: str, writes: str) -> None:
    """Let this process read these versions, with commas between them, and write that one."""
    own, version = contract.MESSAGE_VERSION, int(writes)
    contract.READ_VERSIONS = frozenset(map(int, reads.split(",")))
    if version == own:
        return
    message: Any = contract.TaskMessage
    usual, blob, as_json = message.wire, codec.compressed_bytes, scripts.as_json
    message.wire = lambda self: {**usual(self), "v": version, **_FIELD}

    def with_field(data: bytes, *level: int) -> bytes:
        more = json.dumps({**found, **_FIELD}).encode() if isinstance(found := json.loads(data), dict) else data
        return blob(more, *level)

    codec.compressed_bytes = with_field
    for module in (scripts, store):
        if hasattr(module, "as_json"):
            vars(module)["as_json"] = lambda value: json.dumps({**json.loads(as_json(value)), **_FIELD})


if __name__ == "__main__":
    speak(*sys.argv[1:3])
    del sys.argv[1:3]
    celery_command.run()
