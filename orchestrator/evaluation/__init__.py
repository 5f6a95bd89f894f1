"""Measures answers to labelled questions or to those of kept jobs: in this process, or as jobs through the queue."""
