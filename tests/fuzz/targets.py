"""All targets by name."""

from __future__ import annotations

from tests.fuzz import (
    targets_cli,
    targets_documents,
    targets_http,
    targets_intake,
    targets_questions,
    targets_replies,
    targets_settings,
    targets_stored,
)
from tests.fuzz.target import Target

_GROUPS = (
    targets_replies,
    targets_documents,
    targets_intake,
    targets_questions,
    targets_stored,
    targets_settings,
    targets_http,
    targets_cli,
)
TARGETS: dict[str, Target] = {target.name: target for group in _GROUPS for target in group.TARGETS}
