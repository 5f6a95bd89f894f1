"""Binding: what leaves found is written into the subquestions that waited for them. Never searches, never sends.

Way of a binding: `reading` asks the LLM for the answer, `names` stands in without one, `bind` writes it in.
"""
