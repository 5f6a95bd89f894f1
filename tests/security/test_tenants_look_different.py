"""No two tenants look the same: names are ASCII, wherever they come from."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from orchestrator.intake import as_request
from shared.errors import InputError
from shared.models import JobRequest
from shared.models.answer import EarlyRequest
from shared.tenants import bound_tenant, checked_name, tenant_name

LOOK_ALIKES = (
    "\u0430cme",  # Cyrillic a
    "\uff41cme",  # full width
    "a\u200dcme", "a\u200ccme", "acme\u200b", "\ufeffacme",  # nothing to see
    "\u202eemca", "acme\u2066",  # other directions
    "ac\u0301me", "\u00e1cme",  # one accent, two spellings
    "acm\u0435", "\u217dacme", "acme\n", " acme", "acme\x00", "a" * 65, "",
)  # fmt: skip


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_name_that_looks_like_another_is_refused(name: str) -> None:
    for check in (tenant_name, bound_tenant):
        given = (None, name) if check is bound_tenant else (name,)
        with pytest.raises(InputError, match="ASCII letters") as caught:
            check(*given)
        assert str(caught.value).isascii(), "code points are shown"
    with pytest.raises(InputError):
        as_request({"question": "why?", "tenant": name}, {})
    for model, fields in ((JobRequest, {"question": "why?"}), (EarlyRequest, {"job_id": "a"})):
        with pytest.raises(ValidationError):
            model.model_validate({**fields, "tenant": name})


@pytest.mark.parametrize("name", ["acme", "ACME", "a.b-c_1", "a" * 64])
def test_a_plain_name_is_taken(name: str) -> None:
    assert tenant_name(name) == JobRequest(question="why?", tenant=name).tenant == name


@pytest.mark.parametrize("joiner", ["\u200c", "\u200d"])
def test_no_name_holds_what_is_not_seen(joiner: str) -> None:
    for field in ("namespace", "session id"):
        assert checked_name(field, "团队") == "团队"
        with pytest.raises(InputError):
            checked_name(field, f"a{joiner}b")
