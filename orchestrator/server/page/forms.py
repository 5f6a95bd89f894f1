"""What the form of a question gives, as fields of a request; and back again."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any

from shared.models import JobRequest

_NUMBERS = ("top_n", "depth", "max_calls", "max_tokens", "max_seconds", "max_cost", "deadline_s", "queue_limit_s")
_TEXTS = ("strategy", "lane", "on_outage", "near_symbol")
_DATES, _LISTS = ("after", "before"), ("tags", "kinds", "paths")
#: Hidden field by which one drawing of the form is told from another.
FORM_ID = "form_id"
_SWITCHES = {"yes": True, "no": False}


def request_fields(form: Mapping[str, str]) -> dict[str, Any]:
    """The options that were given, filters nested; fields that were left empty are left to the settings."""
    given = {name: value.strip() for name, value in form.items() if value.strip()}
    fields: dict[str, Any] = {name: given[name] for name in (*_NUMBERS, *_TEXTS) if name in given}
    fields["question"] = form.get("question", "").replace("\r\n", "\n")  # browsers send each line end as two characters
    if given.get("summary") in _SWITCHES:
        fields["summary"] = _SWITCHES[given["summary"]]
    if "whole" in given:
        fields["decompose"] = False
    if "explain" in given:
        fields["explain"] = True
    filters: dict[str, Any] = {name: given[name] for name in (*_DATES, "namespace") if name in given}
    filters |= {name: _parts(given[name]) for name in _LISTS if name in given}
    return fields | ({"filters": filters} if filters else {})


def asked_once(form: Mapping[str, str]) -> dict[str, Any]:
    """The same, under an idempotency key of this form and what stands in it: sent twice it makes one job."""
    fields = request_fields(form)
    if drawn := form.get(FORM_ID, ""):
        said = json.dumps([drawn, fields], sort_keys=True)
        fields["idempotency_key"] = f"page-{hashlib.sha256(said.encode()).hexdigest()[:32]}"
    return fields


def new_form_id() -> str:
    """Of a form that is drawn."""
    return secrets.token_urlsafe(12)


def form_of(request: JobRequest) -> dict[str, str]:
    """The form that gives this request again."""
    plain = request.model_dump(mode="json", exclude_defaults=True)
    filters = plain.pop("filters", {})
    form = {name: str(plain[name]) for name in ("question", *_NUMBERS, *_TEXTS) if plain.get(name) is not None}
    form |= {name: str(filters[name]) for name in (*_DATES, "namespace") if filters.get(name)}
    form |= {name: ", ".join(filters[name]) for name in _LISTS if filters.get(name)}
    if request.summary is not None:
        form["summary"] = "yes" if request.summary else "no"
    return form | ({} if request.decompose else {"whole": "1"}) | ({"explain": "1"} if request.explain else {})


def _parts(text: str) -> list[str]:
    return [part for raw in text.replace("，", ",").split(",") if (part := raw.strip())]
