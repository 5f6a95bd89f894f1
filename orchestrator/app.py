"""The Celery app of the plan and ops pools: `celery -A orchestrator.app worker -Q plan`."""

from shared.providers.gates import share
from shared.settings import load_settings
from shared.tasks.app import make_app, settings_of

app = make_app(
    load_settings(),
    include=(
        "orchestrator.tasks",
        "orchestrator.reaper.loop",
        "orchestrator.standing.loop",
    ),
)
share(settings_of(app))
