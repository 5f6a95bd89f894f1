"""`ramify why`: reads what is known of a job or a batch and says what it waits for. Changes nothing.

Reads only the keys of that one job, the bounded lists of what is under way, and the workers: milliseconds, however many
jobs wait.
"""
