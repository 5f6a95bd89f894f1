"""Understands which documents a question wants all of, and plans the reading of them. Reads no document."""
