"""The tasks by which a corpus is looked at, documents are removed and the store is saved. Replies are JSON."""

from __future__ import annotations

from typing import Any

from shared.contract import TaskName
from shared.tasks.task_run import remote
from workers.app import app, registry
from workers.corpus.replies import documents_reply, passage_reply, remove_reply, store_reply
from workers.index.tasks import indexer_of, staleness
from workers.search.resources import search_resources


@remote(app, TaskName.SEARCH_DOCUMENTS, ignore_result=False)
def search_documents(raw: dict[str, Any]) -> str:
    """A DocumentsReply."""
    return documents_reply(search_resources().store, raw).model_dump_json()


@remote(app, TaskName.SEARCH_PASSAGE, ignore_result=False)
def search_passage(raw: dict[str, Any]) -> str:
    """A PassageReply."""
    return passage_reply(search_resources().store, raw).model_dump_json()


@remote(app, TaskName.INDEX_REMOVE, ignore_result=False)
def index_remove(raw: dict[str, Any]) -> str:
    """A RemoveReply."""
    return remove_reply(indexer_of, raw, staleness().run).model_dump_json()


@remote(app, TaskName.INDEX_STORE, ignore_result=False)
def index_store(raw: dict[str, Any]) -> str:
    """A StoreReply."""
    return store_reply(search_resources(), registry.settings.data_dir, raw).model_dump_json()
