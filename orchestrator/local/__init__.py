"""The embedded stack on one machine : Redis, one process per pool and Flower, started and stopped as one.

Never runs a question: it only starts, watches and stops the programs that do.
"""
