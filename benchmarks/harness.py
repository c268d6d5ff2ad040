"""Shared parts of the measurements: timing, rows, and the table that is printed."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

KIB_4 = b"0123456789abcde\n" * 256
_HEADINGS = ("what", "measured", "against, in this run", "ratio", "budget", "")
_WIDTHS = (47, 28, 34, 7, 13, 4)


@dataclass(frozen=True)
class Plan:
    """How much to measure, and where."""

    folder: Path
    quick: bool

    def some(self, count: int) -> int:
        """A number of repetitions; a quarter of them in a hurry."""
        return max(count // 4, 8) if self.quick else count

    def seconds(self, full: float) -> float:
        return min(full, 1.0) if self.quick else full

    @property
    def patience(self) -> float:
        """How long one comparison may take, in seconds."""
        return 2.0 if self.quick else 12.0

    def home(self, name: str) -> Path:
        return self.folder / name


@dataclass(frozen=True)
class Row:
    name: str
    measured: str
    #: The floor or the peer, and what it took.
    against: str = ""
    ratio: float | None = None
    budget: str = ""
    #: None where nothing was promised.
    ok: bool | None = None


Measurement = Callable[[Plan], Iterator[Row]]


class Cost(NamedTuple):
    """Durations of an operation, in seconds."""

    p50: float
    p99: float
    p95: float

    def __str__(self) -> str:
        return f"p50 {shown(self.p50)}, p99 {shown(self.p99)}"


def cost(samples: Sequence[float]) -> Cost:
    ordered = sorted(samples)

    def at(percent: int) -> float:
        return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]

    return Cost(statistics.median(ordered), at(99), at(95))


def interleaved(
    works: Mapping[str, Callable[[], object]], count: int, *, block: int = 10, seconds: float
) -> dict[str, Cost]:
    """Time several operations in turns, so that a slower machine slows all of them alike.

    `count` times, or as often as `seconds` allow for all of them together.
    """
    samples: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    end = time.monotonic() + seconds
    while len(next(iter(samples.values()))) < count and time.monotonic() < end:
        for name, work in works.items():
            for _ in range(block):
                began = time.perf_counter()
                work()
                samples[name].append(time.perf_counter() - began)
    return {name: cost(taken) for name, taken in samples.items()}


def compared(
    name: str, taken: float, floor: str, floor_taken: float, *, most: float | None = None
) -> Row:
    """A cost as a multiple of another one."""
    ratio = taken / floor_taken
    return Row(
        name,
        shown(taken),
        f"{floor}: {shown(floor_taken)}",
        ratio,
        "" if most is None else f"≤ {most:g}x",
        None if most is None else ratio <= most,
    )


def bounded(name: str, taken: float, most: float, against: str = "") -> Row:
    return Row(name, shown(taken), against, None, f"< {shown(most)}", taken < most)


def shown(seconds: float) -> str:
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def print_heading(title: str) -> None:
    print(f"\n{title}")
    _print_cells(_HEADINGS)


def print_row(row: Row) -> None:
    verdict = {None: "", True: "ok", False: "OVER"}[row.ok]
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
    _print_cells((row.name, row.measured, row.against, ratio, row.budget, verdict))


def machine(folder: Path) -> str:
    """Describe the machine, on which the numbers depend most."""
    flushed = cost(list(_fsyncs(folder / "fsync", 50)))
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}, "
        f"fsync of 4 KiB {flushed}"
    )


def _fsyncs(path: Path, count: int) -> Iterator[float]:
    with path.open("wb") as file:
        for _ in range(count):
            file.write(KIB_4)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            yield time.perf_counter() - began
    path.unlink()


def _print_cells(cells: Iterable[str]) -> None:
    line = " ".join(f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
    print(f"  {line.rstrip()}", flush=True)
