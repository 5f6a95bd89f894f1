"""The Celery app of the search, index, rerank and merge pools: `celery -A workers.app worker -Q search,index`."""

from shared.celery_app import make_app
from shared.gates import share
from shared.settings import load_settings

app = make_app(
    load_settings(),
    include=(
        "workers.search.tasks",
        "workers.enumerate.tasks",
        "workers.index.tasks",
        "workers.rerank.tasks",
        "workers.merge.tasks",
    ),
)
share(app.conf.ramify)
