"""What the SDK says of a body that is no message, in a sentence: its own is a dump of its validator."""

from __future__ import annotations

import json

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

_SDKS = b"Validation error: "
_OURS = "the body is no JSON-RPC message: send one with jsonrpc, id, method and params"


class WordedRefusals:
    """Passes a reply on, other words put into the refusal of a body."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: Message | None = None

    async def send(self, message: Message) -> None:
        """Pass a part on; the head of a refusal waits for its body."""
        if message["type"] == "http.response.start" and message["status"] == 400:
            self._held = message
            return
        if self._held is not None:
            head, self._held = self._held, None
            if _SDKS in message.get("body", b""):
                message = {**message, "body": _worded(message["body"])}
                MutableHeaders(scope=head)["content-length"] = str(len(message["body"]))
            await self._send(head)
        await self._send(message)


def _worded(body: bytes) -> bytes:
    reply = json.loads(body)
    reply["error"]["message"] = _OURS
    return json.dumps(reply).encode()
