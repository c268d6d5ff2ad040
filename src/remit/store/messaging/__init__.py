"""Statements about mail, channels and notices."""
