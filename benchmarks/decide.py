"""How many decisions a second, when the facts are in memory."""

from __future__ import annotations

import timeit
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from benchmarks.harness import Plan, Row
from remit.authority import Action, Facts, decide
from remit.clock import SystemClock
from remit.ids import AgentId, CompanyId, GrantId, Ids
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.grant import Grant, Level, Mode, Resource, ResourceKind
from remit.model.organisation.principal import ActorKind, Principal

LEAST_PER_SECOND = 100_000
_ROUNDS = 5
_MANY = 10


def measure(plan: Plan) -> Iterator[Row]:
    nothing = _per_second(plan, lambda: _nothing(1, 2, 3, 4))
    for grants in (1, 5, 50):
        actor, facts, resource = _situation(grants)
        rate = _per_second(plan, partial(decide, actor, Action.FILE_READ, resource, facts))
        yield Row(
            f"read a file, with {grants} grants on it",
            f"{rate:,.0f} a second",
            f"empty function: {nothing:,.0f}",
            None,
            # Nobody holds dozens of grants on one file; shown to see how it grows.
            f"≥ {LEAST_PER_SECOND:,}" if grants <= _MANY else "",
            rate >= LEAST_PER_SECOND if grants <= _MANY else None,
        )


def _per_second(plan: Plan, work: Callable[[], object]) -> float:
    """Return the best of a few rounds: only other programs can slow a pure function down."""
    count = plan.some(20_000)
    return count / min(timeit.repeat(work, number=count, repeat=_ROUNDS))


def _nothing(_a: int, _b: int, _c: int, _d: int) -> None:
    return


def _situation(grants: int) -> tuple[Principal, Facts, Resource]:
    """Return an agent with many grants on one file, all of which a decision examines."""
    ids, now = Ids(), SystemClock().now()
    company, agent, file = CompanyId(ids.new()), AgentId(ids.new()), ids.new()
    first = Grant(
        id=GrantId(ids.new()),
        company_id=company,
        holder_id=agent,
        kind=ResourceKind.KB_FILE,
        resource_id=file,
        level=Level.READ,
        mode=Mode.ALLOW,
        scope_id=None,
        parent_id=None,
        granted_by_agent=None,
        granted_by_user=None,
        created_at=now,
        expires_at=None,
        revoked_at=None,
        used_at=now,
    )
    held = tuple(replace(first, id=GrantId(ids.new())) for _ in range(grants))
    actor = Principal(ActorKind.AGENT, agent, "worker", company, agent_status=AgentStatus.RUNNING)
    return actor, Facts(now, held=held), first.resource
