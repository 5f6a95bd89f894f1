"""Chat completions over the OpenAI protocol. Takes one prompt, gives one text; never parses what the text means."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from pydantic import Field

from shared.errors import PermanentError, RamifyError, ReplyError, SettingsError
from shared.models import Cost
from shared.models.base import Model
from shared.providers.gates import Gate
from shared.providers.http import JsonClient, tokens_reported
from shared.providers.metering import Call, paid, token_range
from shared.settings import Settings
from shared.settings.server_url import with_login

_MAX_REPLY_BYTES = 4_000_000
#: What newer models take in place of an option that they refuse; None: they insist on their own value.
_INSTEAD: dict[str, str | None] = {"max_tokens": "max_completion_tokens", "temperature": None}
#: Reads a reply, or raises ReplyError.
Check = Callable[[str], object]


class LLMReply(Model):
    """One completion. Tokens are the server's own count (0: not reported); `calls` counts HTTP calls, retries too.

    `cut`: the tokens that it may have were used up, so it ends in the middle.
    """

    text: str
    cut: bool = False
    tokens_in: int = Field(default=0, ge=0)
    tokens_out: int = Field(default=0, ge=0)
    calls: int = Field(default=0, ge=0)

    @property
    def cost(self) -> Cost:
        """What the completion adds to a job's cost."""
        return Cost(llm_calls=self.calls, llm_tokens_in=self.tokens_in, llm_tokens_out=self.tokens_out)


class LLM(Protocol):
    """Anything that completes a prompt."""

    def complete(
        self, prompt: str, *, timeout_s: float, max_tokens: int | None = None, check: Check | None = None
    ) -> LLMReply:
        """Answer `prompt` within `timeout_s` seconds, in at most `max_tokens` tokens.

        `check` raises ReplyError for a text that cannot be used: such a reply is no reply, and no other job gets it.
        """


def spent(error: BaseException) -> LLMReply:
    """What a failed `complete` has cost: calls and tokens, without text."""
    cost = getattr(error, "spent", None)
    return cost if isinstance(cost, LLMReply) else LLMReply(text="", calls=getattr(error, "calls", 0))


def with_cost(error: RamifyError, cost: LLMReply) -> RamifyError:
    """`error` with what it has cost, for `spent`."""
    error.calls = cost.calls
    error.spent = cost  # type: ignore[attr-defined]
    return error


def usable(reply: LLMReply, check: Check | None) -> LLMReply:
    """`reply`, if `check` takes its text. Raises: ReplyError with what the reply has cost."""
    if check is not None:
        try:
            check(reply.text)
        except ReplyError as error:
            raise with_cost(error, reply) from None
    return reply


class ChatClient(AbstractContextManager["ChatClient"]):
    """`LLM` over {llm_base_url}/chat/completions. Thread-safe; connections are reused until `close`.

    One try is bounded by `llm_timeout_s`, a whole `complete` by its own `timeout_s`.

    Raises: SettingsError when llm_model or llm_base_url is empty.
    """

    def __init__(self, settings: Settings) -> None:
        if not settings.llm_model:
            raise SettingsError("llm_model", settings.llm_model, "name the model")
        if settings.llm_base_url is None:
            raise SettingsError("llm_base_url", "", "give the server's base, e.g. http://host/v1")
        self._model, self._max_tokens = settings.llm_model, settings.llm_max_tokens
        self._refused: frozenset[str] = frozenset()
        url = with_login(settings.llm_base_url)
        gate, tries, try_s = Gate("llm", url, settings.providers), settings.llm_attempts, settings.llm_timeout_s
        self._http = JsonClient(
            url, settings.llm_api_key, gate, tries, attempt_s=try_s, max_reply_bytes=_MAX_REPLY_BYTES
        )

    def complete(
        self, prompt: str, *, timeout_s: float, max_tokens: int | None = None, check: Check | None = None
    ) -> LLMReply:
        """Send `prompt` as one user message. `max_tokens` None: as settings.llm_max_tokens says.

        Raises (each tells its cost, see `spent`):
            TransientError: not answered in time or after all tries, or not asked (GateError); may succeed later.
            PermanentError: refused; names the server, the status and what to check. BudgetError: by a budget.
            ReplyError: no JSON, no choices or an empty text, or `check` does not take it.
        """
        most = max_tokens or self._max_tokens
        with paid("llm", self._model, token_range(prompt)[1], most) as call:
            try:
                reply = self._ask(prompt, most, time.monotonic() + timeout_s, call)
            except RamifyError as error:
                call.settle(spent(error).tokens_in, spent(error).tokens_out)
                raise
            # estimated where the server reports no tokens
            call.settle(reply.tokens_in or token_range(prompt)[1], reply.tokens_out or token_range(reply.text)[1])
        return usable(reply, check)

    def _ask(self, prompt: str, max_tokens: int, deadline: float, call: Call) -> LLMReply:
        calls = 0
        while True:
            body = self._body(prompt, max_tokens)
            try:
                reply = self._http.post("/chat/completions", body, deadline - time.monotonic(), call.next_try)
            except RamifyError as error:
                calls += error.calls
                if isinstance(error, PermanentError) and error.param in _INSTEAD and error.param in body:
                    self._refused |= {error.param}  # left out from now on
                    continue
                raise with_cost(error, LLMReply(text="", calls=calls)) from None
            taken = [tokens_reported(reply.body, f"{kind}_tokens") for kind in ("prompt", "completion")]
            cost = LLMReply(text="", tokens_in=taken[0], tokens_out=taken[1], calls=calls + reply.calls)
            try:
                text, reason = _text(reply.body)
                return cost.model_copy(update={"text": text, "cut": reason == "length"})
            except ReplyError as error:
                raise with_cost(error, cost) from None

    def close(self) -> None:
        self._http.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _body(self, prompt: str, max_tokens: int) -> dict[str, Any]:
        options: dict[str, Any] = {"max_tokens": max_tokens, "temperature": 0}
        for name in self._refused:
            value, instead = options.pop(name), _INSTEAD[name]
            if instead:
                options[instead] = value
        return {"model": self._model, "messages": [{"role": "user", "content": prompt}], "stream": False, **options}


def _text(body: dict[str, Any]) -> tuple[str, object]:
    """The text, and why it ends. Raises: ReplyError."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise ReplyError("the LLM server's reply holds no choices")
    content = message.get("content")
    if isinstance(content, list):  # some servers send parts
        texts = (part.get("text") for part in content if isinstance(part, dict))
        content = "".join(text for text in texts if isinstance(text, str))
    reason = choice.get("finish_reason")
    if not isinstance(content, str) or not content.strip():
        why = {"length": ": max_tokens was used up before it", "content_filter": ": the server's filter withheld it"}
        raise ReplyError(f"the LLM's reply holds no text{why.get(reason, '') if isinstance(reason, str) else ''}")
    return content.encode("utf-8", "replace").decode(), reason  # JSON may smuggle in half a surrogate pair
