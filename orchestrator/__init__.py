"""Accepts questions, plans them, submits the chord and answers "how far?". Never imports workers."""
