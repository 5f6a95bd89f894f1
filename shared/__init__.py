"""What the orchestrator and the workers both speak. Imports neither side."""
