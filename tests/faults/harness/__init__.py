"""The harness of the fault suite: a whole stack, the same load for every seed, faults, and a count after them.

Looks from outside only: processes by their pids, Redis by a plain client, jobs by the public client.
"""
