"""What an answer rests on: manifests, replays from a stage on, differences between two runs, exports."""
