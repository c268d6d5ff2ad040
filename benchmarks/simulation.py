"""Simulated companies: how much they go through in a minute, with all invariants checked."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.harness import Plan, Row
from remit.testing.campaign import play, story

LEAST_DELIVERIES = 10_000


def measure(plan: Plan) -> Iterator[Row]:
    play(0, story(0, 50))  # what is made once for all companies
    began = time.process_time()
    played = [play(seed, story(seed, 400)) for seed in range(1, plan.some(20) + 1)]
    minutes = (time.process_time() - began) / 60
    broken = sum(out.broken is not None for out in played)
    for name, count in (
        ("deliveries", sum(out.deliveries for out in played)),
        ("runs", sum(out.turns for out in played)),
        ("steps, each checked", sum(out.steps for out in played)),
    ):
        wanted = LEAST_DELIVERIES if name == "deliveries" else None
        yield Row(
            f"{name}, {len(played)} companies",
            f"{count / minutes:,.0f} a minute of one core",
            f"{broken} broke",
            count / minutes / wanted if wanted else None,
            f"≥ {wanted:,}" if wanted else "",
            (count / minutes >= wanted and not broken) if wanted else None,
        )
