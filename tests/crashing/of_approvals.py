"""Hires and approvals."""

from typing import Any

from remit.clock import MINUTE, to_iso
from remit.errors import AwaitsApproval
from remit.services.governance import approvals
from remit.services.hiring import helper_creation
from remit.services.people import companies
from remit.services.rights import grants
from tests.company import Answer, Member
from tests.crashing.call import THEN, Call
from tests.crashing.scene import Scene, changed, situation
from tests.governance import approve, ask, hire, propose, send_back
from tests.mailing import send


def _asked(s: Scene, **more: Any) -> tuple[Member, Answer]:
    worker = s.agent()
    return worker, ask(s.c, worker.caller, **more)


@situation("approvals.request")
def _(s: Scene) -> Call:
    payload = {"title": "May I?"}
    return s.by(s.agent(), company=s.c.id, kind="request_board_approval", payload=payload)


@situation("approvals.approve")
def _(s: Scene) -> Call:
    found = hire(s.c, s.hirer().caller, s.name(), purpose="Help")["approval"]
    return s.by_board(approval=found["id"], note="Welcome.")


@situation("approvals.approve (carries a call out)")
def _(s: Scene) -> Call:
    """A message whose body was stored when it was asked for."""
    return s.by_board(approval=_parked(s, s.agent()))


@situation("approvals.approve (a configuration)")
def _(s: Scene) -> Call:
    boss = s.agent()
    worker = s.agent(boss)
    s.c.call(s.c.board, companies.change, company=s.c.id, require_approval_for_config_changes=True)
    asked = propose(s.c, boss.caller, worker.id, title="Approved")
    s.c.call(s.c.board, companies.change, company=s.c.id, require_approval_for_config_changes=False)
    return s.by_board(approval=asked["id"])


def _parked(s: Scene, worker: Member) -> str:
    """A message to a peer, which this agent has to ask for each time."""
    other = s.agent()
    wish = {"resource": f"message:{other.id}", "level": "use", "mode": "ask"}
    s.c.call(s.c.board, grants.give, company=s.c.id, to=worker.id, **wish)
    try:
        send(s.c, worker.caller, f"agent:{other.id}", "May I write this?")
    except AwaitsApproval as error:
        return str(error.details["approval_id"])
    raise AssertionError("it was sent without asking")


@situation("approvals.reject")
def _(s: Scene) -> Call:
    found = hire(s.c, s.hirer().caller, s.name())["approval"]
    return s.by_board(approval=found["id"], note="Not now.")


@situation("approvals.request_revision")
def _(s: Scene) -> Call:
    return s.by_board(approval=_asked(s)[1]["id"], note="Say more.")


@situation("approvals.resubmit")
def _(s: Scene) -> Call:
    worker, asked = _asked(s)
    send_back(s.c, asked)
    return s.by(worker, approval=asked["id"], payload={"title": "May I, please?"})


@situation("approvals.cancel")
def _(s: Scene) -> Call:
    worker, asked = _asked(s)
    return s.by(worker, approval=asked["id"], note="Never mind.")


@situation("approvals.comment")
def _(s: Scene) -> Call:
    return s.by_board(approval=_asked(s)[1]["id"], body="Why?")


@situation("approvals.look")
def _(s: Scene) -> Call:
    """Whoever may decide is remembered to have looked, once."""
    return changed(s.by_board(approval=_asked(s)[1]["id"]), keyed=False)


@situation("approvals.delete_agent")
def _(s: Scene) -> Call:
    found = hire(s.c, s.hirer().caller, s.name())["approval"]
    s.c.call(s.c.board, approvals.reject, approval=found["id"])
    return s.by_board(approval=found["id"])


@situation("approvals.expire")
def _(s: Scene) -> Call:
    _, asked = _asked(s, expires_at=to_iso(THEN - MINUTE))
    return s.by_remit(approval=asked["id"])


@situation("hiring.hire")
def _(s: Scene) -> Call:
    return s.by(s.hirer(), company=s.c.id, name=s.name(), purpose="Help", adapter_type="scripted")


@situation("hiring.hire (by the board)")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name=s.name(), purpose="Help", adapter_type="scripted")


@situation("hiring.create_agent")
def _(s: Scene) -> Call:
    """It was approved, and created then; who asked comes back for what came of it."""
    boss, name = s.hirer(), s.name()
    approve(s.c, {"id": _created(s, boss, name)})
    return s.by(boss, name=name)


@situation("hiring.create_agent (asks)")
def _(s: Scene) -> Call:
    """A refusal, which a key does not keep: asking again reminds of the one approval."""
    return changed(s.by(s.hirer(), name=s.name()), asks=True, keyed=False)


def _created(s: Scene, boss: Member, name: str) -> str:
    try:
        s.c.call(boss.caller, helper_creation.create_agent, name=name)
    except AwaitsApproval as error:
        return str(error.details["approval_id"])
    raise AssertionError("it was created without asking")


@situation("hire_preview.preview")
def _(s: Scene) -> Call:
    call = s.by_board(company=s.c.id, asked={"name": s.name(), "reports_to": "ceo"})
    return changed(call, keyed=False, leaves=False)
