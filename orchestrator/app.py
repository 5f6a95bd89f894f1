"""The Celery app of the plan and ops pools: `celery -A orchestrator.app worker -Q plan`."""

from shared.celery_app import make_app
from shared.gates import share
from shared.settings import load_settings

app = make_app(
    load_settings(),
    include=(
        "orchestrator.tasks",
        "orchestrator.reaper.loop",
        "orchestrator.intent.tasks",
    ),
)
share(app.conf.ramify)
