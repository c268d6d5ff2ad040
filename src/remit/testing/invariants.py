"""Invariants that hold in every company after every step.

Each invariant is a query for the rows that break it. `check` runs all of them; `check_record`
verifies the whole record, which takes longer.
"""

from typing import Any

from remit.clock import DAY
from remit.services.record import events
from remit.services.screens import needs_you
from remit.store.engine.database import Transaction
from remit.testing.simulation import Simulation


class Broken(AssertionError):
    """An invariant does not hold."""

    def __init__(self, name: str, found: object) -> None:
        super().__init__(f"{name}: {found}")
        self.name = name


#: Queries by invariant; each finds the rows that break it.
RULES: dict[str, str] = {
    "an agent has at most one live run": """
        SELECT agent_id, count(*) FROM runs WHERE status = 'running'
        GROUP BY agent_id HAVING count(*) > 1""",
    "an agent is running exactly when a run of it is": """
        SELECT a.name, a.status FROM agents a
        WHERE (a.status = 'running')
           <> EXISTS (SELECT 1 FROM runs r WHERE r.agent_id = a.id AND r.status = 'running')""",
    "the token of a run dies with it": """
        SELECT t.id FROM tokens t JOIN runs r ON r.id = t.run_id
        WHERE r.status <> 'running' AND t.revoked_at IS NULL""",
    "who is gone has no token": """
        SELECT t.id FROM tokens t JOIN agents a ON a.id = t.agent_id
        WHERE a.status = 'terminated' AND t.revoked_at IS NULL""",
    "mail is held by living runs alone": """
        SELECT d.message_id FROM deliveries d LEFT JOIN runs r ON r.id = d.run_id
        WHERE d.status = 'leased' AND (r.id IS NULL OR r.status <> 'running')""",
    "mail reaches each receiver once": """
        SELECT message_id, agent_id, user_id FROM deliveries
        GROUP BY message_id, agent_id, user_id HAVING count(*) > 1""",
    "no two messages have the same place in line": """
        SELECT company_id, position FROM deliveries WHERE position IS NOT NULL
        GROUP BY company_id, position, agent_id, user_id HAVING count(*) > 1""",
    "no message was tried more often than it may be": """
        SELECT message_id, attempt FROM deliveries
        WHERE attempt > 3 AND status NOT IN ('dead', 'done', 'cancelled')""",
    "unread mail is an open outcome of its reader": """
        SELECT a.name FROM agents a
        WHERE a.status <> 'terminated'
          AND EXISTS (SELECT 1 FROM deliveries d
                      WHERE d.agent_id = a.id AND d.status IN ('queued', 'leased'))
           <> EXISTS (SELECT 1 FROM outcomes o
                      WHERE o.owner_id = a.id AND o.kind = 'inbox' AND o.status = 'open')""",
    "mail that is only to know puts the inbox of its reader off": """
        SELECT a.name FROM agents a
        JOIN outcomes o ON o.owner_id = a.id AND o.kind = 'inbox' AND o.status = 'open'
        WHERE a.status <> 'terminated'
          AND (o.deferred_until IS NULL)
           <> EXISTS (SELECT 1 FROM deliveries d JOIN messages m ON m.id = d.message_id
                      WHERE d.agent_id = a.id AND d.status IN ('queued', 'leased')
                        AND NOT m.to_know)""",
    "open prerequisites are counted right": """
        SELECT o.id, o.open_prereqs FROM outcomes o
        WHERE o.open_prereqs <> (
            SELECT count(*) FROM outcome_edges e JOIN outcomes c ON c.id = e.child_id
            WHERE e.parent_id = o.id AND c.status = 'open')
          + (SELECT count(*) FROM outcome_blockers b JOIN outcomes c ON c.id = b.blocker_id
            WHERE b.outcome_id = o.id AND c.status = 'open')""",
    "open work belongs to somebody who is there": """
        SELECT o.id, a.name FROM outcomes o JOIN agents a ON a.id = o.owner_id
        WHERE o.status = 'open' AND o.kind = 'work' AND a.status = 'terminated'""",
    "who works here has a boss who does": """
        SELECT a.name, b.name FROM agents a JOIN agents b ON b.id = a.boss_id
        WHERE a.status <> 'terminated' AND b.status = 'terminated'""",
    "everybody is below a person": """
        WITH RECURSIVE below(id) AS (
            SELECT id FROM agents WHERE boss_user_id IS NOT NULL
            UNION SELECT a.id FROM agents a JOIN below ON a.boss_id = below.id)
        SELECT name FROM agents WHERE id NOT IN (SELECT id FROM below)""",
    "a grant is no wider than what it came from": """
        SELECT g.id FROM grants g JOIN grants p ON p.id = g.parent_id
        WHERE g.revoked_at IS NULL AND (p.revoked_at IS NOT NULL OR g.level > p.level
          OR g.kind <> p.kind OR g.resource_id <> p.resource_id)""",
    "a hire is undecided exactly while its agent waits": """
        SELECT p.id, p.status, a.status FROM approvals p JOIN agents a ON a.id = p.agent_id
        WHERE p.type = 'hire_agent'
          AND (p.status IN ('pending', 'revision_requested')) <> (a.status = 'pending_approval')""",
    "names are unique among those who work here": """
        SELECT company_id, name_key FROM agents WHERE status <> 'terminated'
        GROUP BY company_id, name_key HAVING count(*) > 1""",
    "what is in line for a channel goes with its binding": """
        SELECT d.message_id FROM channel_deliveries d
        WHERE d.status IN ('queued', 'leased')
          AND NOT EXISTS (SELECT 1 FROM agent_bindings b
                          WHERE b.agent_id = d.agent_id AND b.adapter_type = d.adapter_type
                            AND b.removed_at IS NULL)""",
    "who is gone is bound to nothing": """
        SELECT b.id, a.name FROM agent_bindings b JOIN agents a ON a.id = b.agent_id
        WHERE a.status = 'terminated' AND b.removed_at IS NULL""",
    "no agent finished more wakes than it was given": """
        SELECT agent_id FROM agent_leases WHERE wake_seq < done_seq""",
}


def check(sim: Simulation) -> None:
    """Check every rule; raises Broken with the rows that break one."""

    def look(tx: Transaction) -> tuple[str, list[Any]] | None:
        for name, question in RULES.items():
            if rows := tx.execute(question, {}).fetchall():
                return name, [tuple(row) for row in rows[:5]]
        return None

    broken: tuple[str, list[Any]] | None = sim.do_async(sim.app.database.read(look))
    if broken is not None:
        raise Broken(*broken)


def check_record(sim: Simulation) -> None:
    """Verify the record: no event was removed, added or changed."""
    verdict = sim.ask(events.verify, company=sim.company)
    if not verdict["ok"]:
        raise Broken("the record is whole", verdict)


def check_quiet(sim: Simulation) -> None:
    """Check that a company at rest has no mail to act on that waits for an idle agent which was not
    woken."""
    query = """SELECT d.message_id, a.name FROM deliveries d JOIN agents a ON a.id = d.agent_id
        JOIN messages m ON m.id = d.message_id
        WHERE d.status IN ('queued', 'leased') AND a.status = 'idle' AND NOT m.to_know
          AND a.adapter_type <> 'human'
          AND NOT EXISTS (SELECT 1 FROM agent_leases l
                          WHERE l.agent_id = a.id AND l.wake_seq > l.done_seq)"""

    def look(tx: Transaction) -> list[Any]:
        return [tuple(row) for row in tx.execute(query, {}).fetchall()]

    if rows := sim.do_async(sim.app.database.read(look)):
        raise Broken("no mail is left lying", rows)


def check_requests(sim: Simulation) -> None:
    """Check that no request of the board is forgotten: one that has been open for two days is in
    the list of what awaits a person, by itself or by its agent."""
    query = """SELECT w.message_id, w.agent_id, a.name FROM wishes w JOIN agents a
        ON a.id = w.agent_id WHERE w.status = 'open' AND w.created_at < :before"""
    before = sim.clock.now() - 2 * DAY

    def look(tx: Transaction) -> list[Any]:
        return [tuple(row) for row in tx.execute(query, {"before": before}).fetchall()]

    rows = sim.ask(needs_you.listing)
    awaited = {row["id"] for row in rows} | {row["agent_id"] for row in rows}
    forgotten = [
        (letter, name)
        for letter, agent, name in sim.do_async(sim.app.database.read(look))
        if letter not in awaited and agent not in awaited
    ]
    if forgotten:
        raise Broken("every request ends, or awaits a person", forgotten)
