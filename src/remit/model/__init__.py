"""The nouns and their state machines: frozen values, no I/O."""
