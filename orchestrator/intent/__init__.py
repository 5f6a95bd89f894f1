"""What a question in a conversation asks to be looked up: typed queries, or nothing. Never searches itself."""
