"""The stack that the fault suite shares: started once, its questions asked once while nobody does harm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.harness.answers import undisturbed
from tests.faults.harness.form import FORM
from tests.faults.harness.load import asks
from tests.faults.harness.rig import rigged
from tests.faults.harness.rounds import Ground


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Stack, questions, and their undisturbed answers."""
    with rigged(tmp_path_factory.mktemp("faults")) as rig:
        asked = asks(FORM.jobs)
        yield Ground(rig, asked, undisturbed(rig.client, asked, 120 + FORM.jobs))
