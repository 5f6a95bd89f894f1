"""Puts a corpus into the running stack once, into a namespace of its own, and remembers it. Deletes nothing."""

from __future__ import annotations

from orchestrator.client import Ramify
from orchestrator.evaluation.corpus_copy import corpus_copy, documents
from orchestrator.evaluation.dataset import Corpus
from orchestrator.evaluation.index_folder import eval_dir
from orchestrator.evaluation.runner import Building
from shared.errors import RamifyError
from shared.models import DocumentStatus
from shared.settings import Settings


def namespace_of(corpus: Corpus) -> str:
    """`eval-` and 12 hex digits of the corpus's SHA-256: the same documents are the same namespace everywhere."""
    return f"eval-{corpus.digest[:12]}"


def ensure_ingested(
    client: Ramify, corpus: Corpus, building: Building, *, rebuild: bool = False
) -> tuple[str, tuple[str, ...]]:
    """The corpus's namespace and warnings about documents that could not be taken.

    It is ingested first, unless that was done before and a search still finds something there.
    Raises: RamifyError when nothing can be taken or the stack does not answer.
    """
    namespace, folder = namespace_of(corpus), eval_dir(client.settings)
    done = folder / f"{namespace}.{_store_name(client.settings)}.ingested"
    known = done.is_file() and not rebuild
    if known and client.find(_probe(corpus), top_n=1, filters={"namespace": namespace}).hits:
        return namespace, tuple(done.read_text(encoding="utf-8").splitlines())
    done.unlink(missing_ok=True)
    failed: list[str] = []
    count = 0
    for step in client.ingest([corpus_copy(corpus, folder)], prune=rebuild, namespace=namespace):
        for outcome in step.outcomes:
            count += outcome.status is not DocumentStatus.REMOVED
            if outcome.status is DocumentStatus.FAILED:
                failed.append(" ".join(f"{outcome.path}: {outcome.reason}".split()))
        building(count, len(corpus.ids))
    said = f"{len(failed)} of {len(corpus.ids)} documents could not be taken; the first: {failed[0]}" if failed else ""
    if len(failed) >= len(corpus.ids):
        raise RamifyError(said)
    done.write_text(said, encoding="utf-8")
    return namespace, tuple(said.splitlines())


def _store_name(settings: Settings) -> str:
    """What tells stores apart in a file's name: a corpus in one of them is not in another."""
    store = settings.store
    return "embedded" if store.kind == "embedded" else f"{store.url.host if store.url else ''}-{store.collection}"


def _probe(corpus: Corpus) -> str:
    """A question that some document of the corpus must answer: how one of them begins."""
    return next(documents(corpus))["text"].strip()[:200]
