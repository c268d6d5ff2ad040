"""Conditions of statements that another check comes before: each of them holds by itself.

A service looks first and so tells who calls what is wrong. That somebody was faster between looking
and writing is found out by the statement, which no test of the service can tell apart.
"""

from typing import Any

import pytest

from remit.services.execution import job_queue
from remit.services.governance import approvals
from remit.services.identity import as_system
from remit.store.engine.database import Transaction
from remit.store.engine.statement import Statement
from remit.store.execution import jobs, leases
from remit.store.organisation import governance, people
from tests import background
from tests.company import Company
from tests.governance import ask
from tests.working import claim, held


def changes(company: Company, statement: Statement[Any], **given: Any) -> int:
    """How many rows a statement changes."""
    found = company.wait(company.app.database.write(lambda tx: tx.run(statement, **given)))
    assert isinstance(found, int)
    return found


@pytest.mark.tampers
def test_a_lease_is_changed_by_who_holds_it_alone(small: Company) -> None:
    agent = small.agent("agent", adapter_type="scripted")
    claim(small, agent)
    now, epoch = small.clock.now(), held(small, agent).epoch
    again = {"agent": agent.id, "now": now, "until": now + 1, "new_worker": "another"}
    small.sql("UPDATE agent_leases SET wake_seq = done_seq + 1 WHERE agent_id = ?", agent.id)
    assert changes(small, leases.QUEUE.claim, **again) == 0
    for other in (epoch - 1, epoch + 1):
        assert changes(small, leases.QUEUE.renew, agent=agent.id, epoch=other, until=now) == 0
        assert changes(small, leases.RELEASE, **_over(agent.id, other)) == 0
        silent = {"agent": agent.id, "epoch": other, "until": held(small, agent).lease_until}
        assert changes(small, leases.QUEUE.seize, **silent) == 0
    assert changes(small, leases.QUEUE.renew, agent=agent.id, epoch=epoch, until=now + 5) == 1
    late = {"agent": agent.id, "epoch": epoch, "until": now + 4}
    assert changes(small, leases.QUEUE.seize, **late) == 0
    assert changes(small, leases.RELEASE, **_over(agent.id, epoch)) == 1
    assert changes(small, leases.QUEUE.renew, agent=agent.id, epoch=epoch, until=now) == 0


def _over(agent: str, epoch: int) -> dict[str, Any]:
    new = dict.fromkeys(("new_told", "new_failing_since", "new_held_by"))
    counts = {"seen": 0, "due": 0, "new_idle_runs": 0, "new_failures": 0}
    return {"agent": agent, "epoch": epoch, **counts, **new}


@pytest.mark.tampers
def test_a_job_is_changed_by_who_holds_it_alone(small: Company) -> None:
    asked = background.ask(small, small.agent("agent", adapter_type="scripted"))
    ((job,),) = small.sql("SELECT id FROM jobs WHERE message_id = ?", asked["id"])
    took = small.call(as_system(), job_queue.claim, job=job, worker="one")
    now, epoch = small.clock.now(), took["epoch"]
    for other in (epoch - 1, epoch + 1):
        assert small.call(as_system(), job_queue.lost, held=[(job, other)]) == [(job, other)]
        assert changes(small, jobs.QUEUE.renew, job=job, epoch=other, until=now) == 0
        assert changes(small, jobs.QUEUE.put_back, job=job, epoch=other) == 0
        assert changes(small, jobs.QUEUE.retry, job=job, epoch=other, due=now, why=None) == 0
    again = {"job": job, "now": now, "until": now + 1, "new_worker": "another", "probed": None}
    assert changes(small, jobs.QUEUE.claim, **again) == 0
    assert changes(small, jobs.QUEUE.renew, job=job, epoch=epoch, until=now + 5) == 1
    assert changes(small, jobs.QUEUE.seize, job=job, epoch=epoch, until=now + 4) == 0
    assert changes(small, jobs.QUEUE.retry, job=job, epoch=epoch, due=now, why=None) == 1
    assert changes(small, jobs.QUEUE.renew, job=job, epoch=epoch, until=now) == 0


@pytest.mark.tampers
def test_an_approval_moves_once_and_is_used_once(small: Company) -> None:
    made = ask(small, small.ceo.caller)["id"]
    moved: dict[str, Any] = {
        "approval": made,
        "was": "pending",
        "seen_revision": 1,
        "new_status": "approved",
        **dict.fromkeys(("new_decision_note", "new_decided_by_user_id", "new_decided_by_agent_id")),
        "new_decided_at": 1,
        "now": 1,
    }
    used = {"approval": made, "now": 1, "new_result": None}
    assert changes(small, governance.USE_APPROVAL, **used) == 0
    assert changes(small, governance.MOVE_APPROVAL, **{**moved, "seen_revision": 2}) == 0
    assert changes(small, governance.MOVE_APPROVAL, **{**moved, "was": "rejected"}) == 0
    small.call(small.board, approvals.approve, approval=made)
    assert changes(small, governance.MOVE_APPROVAL, **moved) == 0
    assert changes(small, governance.USE_APPROVAL, **used) == 1
    assert changes(small, governance.USE_APPROVAL, **used) == 0


def test_a_token_is_revoked_once(small: Company) -> None:
    ((token,),) = small.sql("SELECT id FROM tokens WHERE agent_id = ?", small.ceo.id)

    def revoke(tx: Transaction) -> int:
        return len(tx.all(people.REVOKE_TOKEN, token=token, now=1))

    assert small.app.database.submit_write(revoke).result() == 1
    assert small.app.database.submit_write(revoke).result() == 0
