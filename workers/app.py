"""The Celery app of the search, index, rerank and merge pools: `celery -A workers.app worker -Q search,index`."""

from __future__ import annotations

from functools import cache

from celery.signals import worker_shutdown

from shared.cache import Cache
from shared.cached_llm import cached_llm
from shared.providers.gates import share
from shared.providers.llm.client import LLM, ChatClient
from shared.providers.verifiers import Verifier, verifier
from shared.settings import load_settings
from shared.tasks.app import make_app, settings_of
from shared.tasks.task_run import TaskRegistry, TaskRun

app = make_app(
    load_settings(),
    include=(
        "workers.search.tasks",
        "workers.enumerate.tasks",
        "workers.index.tasks",
        "workers.corpus.tasks",
        "workers.rerank.tasks",
        "workers.merge.tasks",
    ),
)
share(settings_of(app))


registry = TaskRegistry(app)


@cache
def shared_cache() -> Cache:
    """One a process; switched off by `cache.enabled`."""
    return Cache(registry.jobs.client, registry.settings)


@cache
def llm() -> ChatClient | None:
    """One client a process; None where no LLM is configured."""
    return ChatClient(registry.settings) if registry.settings.has_llm else None


@cache
def _own_verifier() -> Verifier | None:
    """The verifier that is no LLM; one a process."""
    return verifier(registry.settings)


def verifier_of(model: LLM) -> Verifier | None:
    """The verifier of the settings; `model` is the LLM of the summary, where they say that it is to be asked."""
    return verifier(registry.settings, model) if registry.settings.verifier.traits.llm else _own_verifier()


def llm_of(run: TaskRun, kind: str) -> LLM | None:
    """The LLM for a task of a job, which makes identical calls of its tenant once; `kind` is what is asked for."""
    return cached_llm(llm(), shared_cache(), registry.settings, run.job.request.tenant, kind)


@worker_shutdown.connect
def _close_llm(**_: object) -> None:
    if llm.cache_info().currsize and (client := llm()) is not None:
        client.close()
    if _own_verifier.cache_info().currsize and (found := _own_verifier()) is not None:
        found.close()
