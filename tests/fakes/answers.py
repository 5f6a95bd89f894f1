"""The fake server's own answers: deterministic and sensible enough that a whole job can run on them. Pure."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape, unescape

from tests.fakes.replies import Recorded, Reply

DIM = 64
_ENTITIES = {"&quot;": '"', "&apos;": "'"}
_WORD = re.compile(r"[a-z0-9]+|[\u3040-\u30ff\u3400-\u9fff]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
QUERY = re.compile(r"<user_query>\n(.*?)\n</user_query>", re.DOTALL)
_MEMORY = re.compile(r'<memory id="(\d+)"[^>]*>(.*?)</memory>', re.DOTALL)
_SENTENCE = re.compile(r".+?[.!?。！？](?=\s|$|[^\x00-\x7f])|.+", re.DOTALL)
_FACETS_EN = {
    "core": "{}",
    "why": "What are the reasons behind this: {}",
    "how": "Which steps does this take: {}",
    "note": "What has to be watched out for here: {}",
}
_FACETS_ZH = {"core": "{}", "why": "原因是什么：{}", "how": "具体步骤有哪些：{}", "note": "有哪些注意事项：{}"}
_MARKS = tuple(form.removesuffix("{}") for form in (*_FACETS_EN.values(), *_FACETS_ZH.values()) if form != "{}")


def tokens(text: str) -> list[str]:
    """Latin words and pairs of CJK characters, in lower case."""
    found: list[str] = []
    for run in _WORD.findall(text.lower()):
        pairs = [run[i : i + 2] for i in range(len(run) - 1)] if _CJK.match(run) else []
        found.extend(pairs or [run])
    return found


def chat(prompt: str) -> str:
    """A decomposition for a decompose prompt, a cited summary for a summarise prompt, else the prompt's start."""
    asked = QUERY.findall(prompt)
    question = unescape(asked[-1], _ENTITIES) if asked else prompt[:200]
    if "<memories>\n" in prompt:
        return summary(question, [(int(n), unescape(text, _ENTITIES)) for n, text in _MEMORY.findall(prompt)])
    return decomposition(facets(question)) if asked else question


def facets(question: str) -> list[tuple[str, str, bool]]:
    """(facet, query, needs_refinement): one for a simple question, four for a complex one; one level of refinement."""
    question = " ".join(question.split())[:200]
    cjk = len(_CJK.findall(question))
    refined = question.startswith(_MARKS)
    if refined or (cjk < 9 and len(tokens(question)) < 5):
        return [("core", question.ljust(5, "?"), False)]
    forms = _FACETS_ZH if cjk else _FACETS_EN
    return [(facet, form.format(question), facet == "how") for facet, form in forms.items()]


def decomposition(subqueries: Sequence[tuple[str, str, bool]]) -> str:
    """The XML of these subqueries."""
    lines = [
        f"  <subquery><dimension>{facet}</dimension><query>{escape(query)}</query>"
        f"<needs_refinement>{str(refine).lower()}</needs_refinement></subquery>"
        for facet, query, refine in subqueries
    ]
    return "\n".join(["<decomposition>", *lines, "</decomposition>"])


def summary(question: str, memories: Sequence[tuple[int, str]]) -> str:
    """The first sentence of each of the three best memories, cited."""
    if not memories:
        return "资料中没有答案。" if _CJK.search(question) else "The memories do not answer the question."
    return " ".join(f"{_first_sentence(text)} [{number}]." for number, text in memories[:3])


def embedding(text: str) -> list[float]:
    """A normalised hashed bag of words: texts that share words are close."""
    vector = [0.0] * DIM
    for token in tokens(text):
        mixed = zlib.crc32(token.encode())
        vector[mixed % DIM] += 1.0 if mixed & 0x8000_0000 else -1.0
    norm = math.sqrt(sum(x * x for x in vector))
    return [x / norm for x in vector] if norm else [1.0] + [0.0] * (DIM - 1)


def relevance(query: str, document: str) -> float:
    """The part of the query's tokens that the document holds, 0 to 1."""
    asked = set(tokens(query))
    return len(asked & set(tokens(document))) / len(asked) if asked else 0.0


def marks(body: dict[str, Any]) -> str:
    """The marks of a sensible LLM, for the documents of a rerank request."""
    prompt = body["messages"][-1]["content"]
    query = prompt.split("<user_query>\n")[-1].split("\n</user_query>")[0]
    documents = re.findall(r'<document id="(\d+)">(.*?)</document>', prompt, re.DOTALL)
    lines = [f'<s id="{number}">{10 * relevance(query, text):.2f}</s>' for number, text in documents]
    return "\n".join(["<scores>", *lines, "</scores>"])


def chat_body(model: str, text: str, tokens_in: int, tokens_out: int) -> dict[str, Any]:
    """A chat completion as OpenAI sends it."""
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out},
    }


def embeddings_body(model: str, texts: Sequence[str]) -> dict[str, Any]:
    """Embeddings as OpenAI sends them."""
    used = sum(len(tokens(text)) for text in texts)
    data = [{"object": "embedding", "index": i, "embedding": embedding(text)} for i, text in enumerate(texts)]
    return {"object": "list", "model": model, "data": data, "usage": {"prompt_tokens": used, "total_tokens": used}}


def rerank_body(model: str, query: str, documents: Sequence[str], top_n: int) -> dict[str, Any]:
    """Scores as Jina and Cohere send them: best first."""
    scored = [{"index": i, "relevance_score": relevance(query, text)} for i, text in enumerate(documents)]
    scored.sort(key=lambda result: (-result["relevance_score"], result["index"]))
    used = sum(len(tokens(text)) for text in documents)
    return {"model": model, "results": scored[:top_n], "usage": {"total_tokens": used}}


def body_of(reply: Reply, request: Recorded) -> dict[str, Any]:
    """The JSON body of a good reply. Raises KeyError or TypeError for a request that the real servers refuse."""
    if reply.body is not None:
        return reply.body
    asked = request.body
    if request.endpoint == "models":
        return {"object": "list", "data": [{"id": "fake", "object": "model", "owned_by": "tests"}]}
    if request.endpoint == "embeddings":
        texts = [asked["input"]] if isinstance(asked["input"], str) else [str(text) for text in asked["input"]]
        return embeddings_body(asked["model"], texts)
    if request.endpoint == "rerank":
        documents = [text if isinstance(text, str) else text["text"] for text in asked["documents"]]
        return rerank_body(asked["model"], asked["query"], documents, asked.get("top_n") or len(documents))
    prompt = asked["messages"][-1]["content"]
    if reply.text is not None:
        return chat_body(asked["model"], reply.text, reply.tokens_in, reply.tokens_out)
    text = chat(prompt)
    return chat_body(asked["model"], text, len(tokens(prompt)), len(tokens(text)))


def _first_sentence(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("#", "---"))]
    first = _SENTENCE.match(" ".join(lines))
    return (first[0] if first else "").strip().rstrip(".!?。！？")[:200]
