"""Finds which kept answers a change of the corpus makes stale, leaf by leaf. Changes no answer and runs no job."""
