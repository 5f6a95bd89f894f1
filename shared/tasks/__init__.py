"""How work runs: the Celery app, the wrapper of every task, its messages. Above jobs; knows no question."""
