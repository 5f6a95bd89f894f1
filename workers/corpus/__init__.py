"""Looks at the documents of a corpus: lists them, finds the one that a name means, gives passages of its text."""
