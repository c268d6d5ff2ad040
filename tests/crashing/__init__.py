"""The crash matrix: every verb that changes something, killed at every point of it."""
