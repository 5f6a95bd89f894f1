"""Runs labelled questions through the engine and says how good the answers are. Never touches the engine itself."""
