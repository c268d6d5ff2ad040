"""References of an export: existence checks, and topological order."""

from collections.abc import Container, Iterable, Mapping
from typing import TypeVar

from remit.errors import BadInput

K = TypeVar("K", bound=str)


def in_order(needs: Mapping[K, Iterable[K]]) -> list[K]:
    """Return everything in topological order; members of cycles are left out."""
    waiting = {key: len(list(others)) for key, others in needs.items()}
    needed_by: dict[K, list[K]] = {}
    for waiter, others in needs.items():
        for other in others:
            needed_by.setdefault(other, []).append(waiter)
    ready = sorted((key for key, count in waiting.items() if not count), reverse=True)
    order: list[K] = []
    while ready:
        placed = ready.pop()
        order.append(placed)
        for other in needed_by.get(placed, ()):
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    return order


def known(wanted: str | None, here: Container[str], where: str, what: str) -> None:
    if wanted is not None and wanted not in here:
        raise BadInput(f"{where}: {what}, {wanted}, is not here.")
