"""The real tasks on a simulated world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from shared.jobs.scripts import source
from shared.providers.gates import gate
from shared.settings import Settings, load_settings
from tests.model.stage import Stage
from tests.model.wire import Wire
from tests.model.world import World

MakeWorld = Callable[..., World]


@pytest.fixture(scope="module")
def make_world(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeWorld]:
    """Makes worlds, one after the other, on the Redis of this test run. Close each."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAMIFY_REDIS__URL", redis_url)
        environment.setattr(gate, "_process_store", gate._process_store)  # the import tells the gates of the Redis
        settings = load_settings(redis={"url": redis_url}, data_dir=tmp_path_factory.mktemp("model"))
        wire = Wire.to(redis_url)
        folder = Path(__file__).parents[2] / "shared" / "jobs" / "lua"
        with redis.Redis.from_url(redis_url) as plain:
            for script in folder.glob("*.lua"):
                plain.script_load(source(script.stem))
        with Stage().set() as stage:
            yield lambda kind=World, **options: kind(stage, wire, changed(settings, options), **options)
        wire.close()


def changed(settings: Settings, options: dict[str, object]) -> Settings:
    lanes = options.pop("lanes", {})
    return settings.model_copy(update={"lanes": settings.lanes.model_copy(update=lanes)})
