"""The language model: client, prompts, and parsers that check its replies."""
