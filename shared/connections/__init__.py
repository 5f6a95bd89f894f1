"""Redis addresses, pools of connections, its clock and the heartbeat of workers. Knows nothing of jobs."""
