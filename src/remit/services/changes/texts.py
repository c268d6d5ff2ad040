"""Texts of people at forges, cleaned so that they are safe to store and to show."""

from remit.services.redaction import program_text


def plain(text: str) -> str:
    """Return the text without control characters and other unprintable ones."""
    return "".join(char for char in text if char in "\n\t" or char.isprintable()).strip()


def line(text: str, longest: int) -> str:
    return " ".join(plain(text).split())[:longest]


def tail(text: str, longest: int) -> str:
    """Return the end of a log, without what looks like a secret."""
    return program_text.without(plain(text))[-longest:]
