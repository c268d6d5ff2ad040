"""Diagnosis of how the instance is reached from outside: its addresses and proxies, TLS or not."""

from collections.abc import Iterator

from remit.entrypoints.arrival import LOOPBACK, Outside, host_name
from remit.runtime.diagnosis import Finding
from remit.settings import Settings


def look(settings: Settings) -> Iterator[Finding]:
    """Findings about the settings of the process that serves."""
    outside = Outside.of(settings)
    for address in outside.addresses:
        yield _address(address)
    if not outside.addresses:
        yield Finding("address for others", "ok", "none; links have the address of their request")
    yield _proxies(outside)


def _address(address: str) -> Finding:
    scheme, _, place = address.partition("://")
    if scheme == "https":
        return Finding("address for others", "ok", f"{address}, with TLS")
    if host_name(place) in LOOPBACK:
        return Finding("address for others", "ok", f"{address}, on this machine alone")
    return Finding(
        "address for others",
        "warn",
        f"{address} is plain HTTP: who is on the way reads tokens",
        "Put a TLS proxy in front; see docs/operating.md.",
    )


def _proxies(outside: Outside) -> Finding:
    if outside.proxies:
        return Finding("proxies", "ok", f"believed at {', '.join(outside.proxies)}")
    https = any(address.startswith("https:") for address in outside.addresses)
    if https:
        return Finding(
            "proxies",
            "warn",
            "none is believed, though an address has TLS: no backup can be downloaded there, and "
            "all clients share one limit of failed sign-ins",
            "Set REMIT_PROXIES to the address of the proxy, as the instance sees it.",
        )
    if outside.proxies is None:
        return Finding("proxies", "ok", "not declared, so no backup is sent over HTTP")
    return Finding("proxies", "ok", "there is none in front")
