"""The models that processes of two releases tell each other, by messages or through Redis, and how two forms differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter

from orchestrator.access.keys import ApiKey
from shared import models
from shared.contract import TaskMessage
from shared.jobs.hit_blobs import KeptHit, StoredChunk
from shared.jobs.ingests import Seen
from shared.jobs.tables import Excerpts
from shared.models import corpus, enumeration, find, ingest, manifest, standing, status
from shared.models.answer import EarlyReply, EarlyRequest
from shared.models.batch import BatchSource, LineRecord
from shared.models.request import ChatMessage
from shared.models.route import Route
from shared.models.stale import StaleCheck, StaleCheckRequest, StaleMark
from shared.store.base import BuiltWith, TenantNote
from shared.store.meta import StoreMeta
from shared.store.server_meta import ServerMeta
from shared.store.snapshot_file import StoreReply, StoreRequest

#: What is asked of pools and what they reply, outside of jobs.
CALLS: tuple[type[BaseModel], ...] = (
    find.FindRequest, find.FindReply, find.RelatedRequest, find.RelatedReply, find.IntentRequest, find.IntentReply,
    enumeration.ValuesRequest, enumeration.ValuesReply, corpus.DocumentsRequest, corpus.DocumentsReply,
    corpus.PassageRequest, corpus.PassageReply, corpus.RemoveRequest, corpus.RemoveReply, EarlyRequest, EarlyReply,
    StaleCheckRequest, StaleCheck, StoreRequest, StoreReply,
)  # fmt: skip
#: What stands in Redis, and beside the chunks in the store.
RECORDS: tuple[type[BaseModel], ...] = (
    TaskMessage, models.JobRequest, Route, models.Node, models.SearchResult, models.LeafResult, models.MergedPool,
    models.Answer, KeptHit, StoredChunk, manifest.Manifest, enumeration.Scan, enumeration.RowPage,
    enumeration.ShardReport, enumeration.ListTable, Excerpts, LineRecord, BatchSource, ingest.IngestItem,
    ingest.IngestReport, Seen, StaleMark, standing.StandingQuestion, standing.StandingState, standing.Notice,
    standing.CitedFact, status.DeadLetter, ChatMessage, ApiKey, StoreMeta, ServerMeta, BuiltWith, TenantNote,
)  # fmt: skip
#: Parts of a JSON Schema that say nothing of what may stand there.
_WORDING = frozenset({"title", "description", "default", "examples"})
Shapes = dict[str, dict[str, Any]]


def shapes() -> Shapes:
    """Each model and enumeration by name: its fields with what may stand there, those that must, or its words."""
    found: Shapes = {}
    for model in (*CALLS, *RECORDS):
        schema = TypeAdapter(model).json_schema(ref_template="{model}")
        for name, part in ({model.__name__: schema} | schema.get("$defs", {})).items():
            if "enum" in part:
                found[name] = {"words": sorted(part["enum"])}
            elif "properties" in part:
                fields = {field: _plain(value) for field, value in sorted(part["properties"].items())}
                found[name] = {"fields": fields, "needed": sorted(part.get("required", ()))}
    return found


def _plain(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {name: _plain(value) for name, value in sorted(schema.items()) if name not in _WORDING}
    return [_plain(value) for value in schema] if isinstance(schema, list) else schema


def differences(old: Shapes, new: Shapes) -> Iterator[tuple[str, str]]:
    """What keeps one of two releases from reading what the other writes: its name, and why.

    Readers pass over fields that they do not know, and writers leave out those that have their defaults. So fields with
    a default may come and go; nothing else may change.
    """
    for name, was in old.items():
        now = new.get(name)
        if now is None:
            yield name, "is gone"
        elif "words" in was:
            yield from _words(name, set(was["words"]), set(now.get("words", ())))
        else:
            yield from _fields(name, was, now)


def _words(name: str, was: set[str], now: set[str]) -> Iterator[tuple[str, str]]:
    if lost := was - now:
        yield name, f"does not read {', '.join(sorted(lost))} any more, which may be stored"
    if added := now - was:
        yield name, f"writes {', '.join(sorted(added))}, which the release before cannot read"


def _fields(name: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    before, after = was["fields"], now.get("fields", {})
    for field in before.keys() & after.keys():
        if before[field] != after[field]:
            yield f"{name}.{field}", f"was {before[field]} and is {after[field]}"
    for field in sorted(set(was["needed"]) - set(now.get("needed", ()))):
        yield f"{name}.{field}", "must be written: the release before cannot read a value without it"
    for field in sorted(set(now.get("needed", ())) - set(was["needed"])):
        yield f"{name}.{field}", "must not be needed: the release before does not write it, or not always"
