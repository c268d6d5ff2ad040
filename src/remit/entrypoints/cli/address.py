"""Addresses of instances, and of the API's resources."""

from urllib.parse import SplitResult, quote, urlsplit

from remit.errors import BadInput

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def path(*segments: str) -> str:
    """Return a path under /api, with each segment percent-encoded."""
    return "/api/" + "/".join(quote(segment, safe="") for segment in segments)


def is_loopback(url: str) -> bool:
    return split(url).hostname in _LOOPBACK


def split(url: str) -> SplitResult:
    """The parts of an instance's address."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = None
    if not good or not url.isascii() or not url.isprintable() or " " in url:
        raise BadInput(f"{url[:200]!r} is not an address.", "Write it like http://127.0.0.1:8420.")
    return parts
