"""Texts of people at forges, made safe to keep and to show."""

from remit.services.redaction import program_text


def plain(text: str) -> str:
    """Lines of what can be seen."""
    return "".join(char for char in text if char in "\n\t" or char.isprintable()).strip()


def line(text: str, longest: int) -> str:
    return " ".join(plain(text).split())[:longest]


def tail(text: str, longest: int) -> str:
    """The end of a log, without what looks like a secret."""
    return program_text.without(plain(text))[-longest:]
