"""Webhooks: who is told of ended jobs and batches, and how that is sent. Reads no answer and no document."""
