"""From a question to the tree of its leaves: pure functions, no Redis, no Celery, no HTTP."""
