"""What a question in a conversation asks to be looked up (C2): typed queries, or nothing. Never searches itself."""
