"""Pages for every visitor: signing in, the first page, stop and go, search, the visual system."""
