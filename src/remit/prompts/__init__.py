"""The words that agents are given."""
