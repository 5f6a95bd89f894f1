"""New jobs that go on from old ones: retries, refreshes, and what both take over; dead letters, replayed."""
