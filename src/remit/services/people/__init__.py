"""Companies, the people in them, and how they sign in."""
