"""The embedded stack on one machine (A8): Redis, one process per pool, beat and Flower, started and stopped as one.

Never runs a question: it only starts, watches and stops the programs that do.
"""
