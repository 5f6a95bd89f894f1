"""A peer that answers questions in one process: LlamaIndex, Haystack or LangChain, which the benchmark alone needs.

`PYTHON peer_process.py NAME NOTES LLM_URL` reads a line of JSON for each run, `questions` and how many are `in_flight`,
and says how long it took and what it spent. Runs outside of the project's environment and imports nothing of it. Needs
llama-index-core, llama-index-llms-openai-like, llama-index-retrievers-bm25, haystack-ai, langchain-classic,
langchain-community, langchain-openai and rank-bm25.
"""

# mypy: ignore-errors
from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOP, CHUNK_CHARS = 10, 400
ASK = "Answer the question from the context.\n\nContext:\n{context}\n\nQuestion: {question}"
Answer = Callable[[str], str]


def chunks(notes: Path) -> list[str]:
    """Paragraphs up to so many characters: about as many chunks as Ramify makes of the notes."""
    found: list[str] = []
    for path in sorted(notes.rglob("*.md")):
        held = ""
        for part in path.read_text(encoding="utf-8", errors="ignore").split("\n\n"):
            if held and len(held) + len(part) > CHUNK_CHARS:
                found.append(held)
                held = ""
            held = f"{held}\n\n{part}".strip()
        found += [held] if held else []
    return found


def llamaindex(texts: list[str], url: str) -> Answer:
    from llama_index.core import Settings
    from llama_index.core.query_engine import RetrieverQueryEngine, SubQuestionQueryEngine
    from llama_index.core.question_gen import LLMQuestionGenerator
    from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
    from llama_index.core.schema import TextNode
    from llama_index.core.tools import QueryEngineTool
    from llama_index.llms.openai_like import OpenAILike
    from llama_index.retrievers.bm25 import BM25Retriever

    llm = OpenAILike(
        model="fake", api_base=url, api_key="none", is_chat_model=True, context_window=128_000, timeout=120
    )  # fmt: skip
    Settings.llm = llm
    retriever = BM25Retriever.from_defaults(nodes=[TextNode(text=text) for text in texts], similarity_top_k=TOP)
    context = get_response_synthesizer(llm, response_mode=ResponseMode.CONTEXT_ONLY)
    search = RetrieverQueryEngine(retriever, response_synthesizer=context)
    engine = SubQuestionQueryEngine.from_defaults(
        [QueryEngineTool.from_defaults(search, name="notes", description="the notes of an engineer")],
        llm=llm,
        question_gen=LLMQuestionGenerator.from_defaults(llm),
        response_synthesizer=get_response_synthesizer(llm, response_mode=ResponseMode.COMPACT),
        use_async=False,
        verbose=False,
    )
    return lambda question: str(engine.query(question))


def haystack(texts: list[str], url: str) -> Answer:
    from haystack import Document
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.components.query import QueryExpander
    from haystack.components.retrievers import MultiQueryTextRetriever
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.dataclasses import ChatMessage
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from haystack.utils import Secret

    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text) for text in texts])
    llm = OpenAIChatGenerator(model="fake", api_base_url=url, api_key=Secret.from_token("none"), timeout=120)
    expander = QueryExpander(chat_generator=llm, n_expansions=5)
    search = MultiQueryTextRetriever(retriever=InMemoryBM25Retriever(store, top_k=TOP))

    def answer(question: str) -> str:
        found = search.run(queries=expander.run(query=question)["queries"])["documents"]
        context = "\n\n".join(document.content for document in found)
        asked = ChatMessage.from_user(ASK.format(context=context, question=question))
        return llm.run(messages=[asked])["replies"][0].text

    return answer


def langchain(texts: list[str], url: str) -> Answer:
    from langchain_classic.retrievers.multi_query import MultiQueryRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_openai import ChatOpenAI

    llm = ChatOpenAI(model="fake", base_url=url, api_key="none", timeout=120)
    search = BM25Retriever.from_texts(texts)
    search.k = TOP
    retriever = MultiQueryRetriever.from_llm(retriever=search, llm=llm, include_original=True)

    def answer(question: str) -> str:
        context = "\n\n".join(document.page_content for document in retriever.invoke(question))
        return llm.invoke(ASK.format(context=context, question=question)).content

    return answer


PEERS = {"llamaindex": llamaindex, "haystack": haystack, "langchain": langchain}


def main() -> None:
    name, notes, url = sys.argv[1:]
    texts = chunks(Path(notes))
    answer = PEERS[name](texts, url)
    print(json.dumps({"chunks": len(texts)}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        begun, spent = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(asked["in_flight"]) as threads:
            answers = list(threads.map(answer, asked["questions"]))
        wall_s, cpu_s = time.perf_counter() - begun, time.process_time() - spent
        print(json.dumps({"answered": sum(map(bool, answers)), "wall_s": wall_s, "cpu_s": cpu_s}), flush=True)


if __name__ == "__main__":
    main()
