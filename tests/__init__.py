"""The tests of Remit."""
