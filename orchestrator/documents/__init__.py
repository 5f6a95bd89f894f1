"""The parts of the client that put documents in, list them and hand them over to jobs."""
