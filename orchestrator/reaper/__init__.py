"""Finds jobs without progress, from the job store alone, and sends again exactly what is missing."""
