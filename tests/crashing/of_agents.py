"""Agents: what can be done to them, and how they are set up."""

from typing import Any

from remit.services.declared import declared_company
from remit.services.hiring import configuration
from remit.services.messaging import inbox
from remit.services.organisation import agents, halts, permissions
from tests import working
from tests.background import ask as ask_background
from tests.company import Member
from tests.crashing.call import Call
from tests.crashing.scene import Scene, changed, situation
from tests.organisation import work


@situation("halts.stop")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.letter(worker)
    ask_background(s.c, worker)
    run = s.run(worker)
    s.c.call(run.caller, inbox.take)
    return s.by_board(agent=worker.id, note="Wait a moment.")


@situation("halts.go")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.letter(worker)
    s.c.call(s.c.board, halts.stop, agent=worker.id)
    return s.by_board(agent=worker.id)


@situation("agents.abort")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.letter(worker)
    run = s.run(worker)
    s.c.call(run.caller, inbox.take)
    return s.by_board(agent=worker.id)


@situation("agents.create")
def _(s: Scene) -> Call:
    given = [{"resource": "agent.create", "level": "use"}]
    more = {"purpose": "Something new", "budget_monthly_tokens": 1000, "given": given}
    return s.by_board(company=s.c.id, name=s.name(), reports_to="ceo", **more)


@situation("agents.create_key")
def _(s: Scene) -> Call:
    return changed(s.by_board(agent=s.agent().id, label="laptop"), shown_once=("token",))


@situation("agents.pause")
def _(s: Scene) -> Call:
    return s.by_board(agent=s.agent().id)


@situation("agents.resume")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.c.call(s.c.board, agents.pause, agent=worker.id)
    return s.by_board(agent=worker.id)


@situation("agents.restart")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.run(worker)
    return s.by_board(agent=worker.id)


@situation("agents.revoke_key")
def _(s: Scene) -> Call:
    worker = s.agent()
    key = s.c.call(s.c.board, agents.create_key, agent=worker.id)
    return s.by_board(agent=worker.id, key=key["id"])


@situation("agents.start")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.c.call(s.c.board, agents.stop, agent=worker.id)
    return s.by_board(agent=worker.id)


@situation("agents.stop")
def _(s: Scene) -> Call:
    worker = s.agent()
    ask_background(s.c, worker)
    s.run(worker)
    return s.by_board(agent=worker.id)


@situation("agents.submit_log")
def _(s: Scene) -> Call:
    return s.by(s.run(s.agent()), summary="I did something.")


@situation("agents.terminate")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.letter(worker)
    work(s.c, worker.caller, worker.id)
    s.run(worker)
    return s.by_board(agent=worker.id)


def _team(s: Scene) -> Member:
    """Somebody with two below it, who have mail, work and a run."""
    head = s.agent()
    lead = s.agent(head)
    worker = s.agent(lead)
    s.letter(worker)
    work(s.c, worker.caller, worker.id)
    s.run(worker)
    return head


@situation("agents.terminate (a subtree)")
def _(s: Scene) -> Call:
    return s.by_board(agent=_team(s).id, subtree=True)


@situation("agents.preview_terminate")
def _(s: Scene) -> Call:
    call = s.by_board(agent=_team(s).id, subtree=True)
    return changed(call, keyed=False, leaves=False)


@situation("agents.update")
def _(s: Scene) -> Call:
    worker = s.agent(adapter_type="process", adapter_config={"command": "/bin/true"})
    s.run(worker)
    return s.by_board(agent=worker.id)


@situation("agents.preview_update")
def _(s: Scene) -> Call:
    worker = s.agent(adapter_type="process", adapter_config={"command": "/bin/true"})
    s.run(worker)
    return changed(s.by_board(agent=worker.id), keyed=False, leaves=False)


@situation("agents.wake")
def _(s: Scene) -> Call:
    return s.by_board(agent=s.agent().id, reason="There is something.")


@situation("purging.purge")
def _(s: Scene) -> Call:
    worker = s.agent(adapter_type="process", adapter_config={"command": "/bin/true"})
    run = s.run(worker)
    working.end(s.c, run)
    s.c.call(s.c.board, agents.terminate, agent=worker.id)
    return s.by_board(agent=worker.id)


@situation("permissions.change")
def _(s: Scene) -> Call:
    return s.by_board(agent=s.agent().id, level="privileged")


@situation("policies.change")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.c.call(s.c.board, permissions.change, agent=worker.id, level="privileged")
    settings = {"allow": ["approval.decide"], "canCreateAgents": False}
    return s.by_board(company=s.c.id, level="privileged", settings=settings)


@situation("configuration.change")
def _(s: Scene) -> Call:
    changes = {"title": "Chief of something", "prompt": "Be good.", "budgetMonthlyTokens": 500}
    return s.by_board(agent=s.agent().id, changes=changes)


@situation("configuration.propose")
def _(s: Scene) -> Call:
    boss = s.agent()
    return s.by(boss, agent=s.agent(boss).id, changes={"title": "Better"}, reason="It is.")


@situation("configuration.propose (awaits approval)")
def _(s: Scene) -> Call:
    boss = s.agent()
    program = {"command": "/bin/true"}
    worker = s.agent(boss, adapter_type="process", adapter_config=program)
    changes = {"adapterConfig": {**program, "env": {"KEY": "${secret:shared}"}}}
    return s.by(boss, agent=worker.id, changes=changes)


@situation("configuration.rollback")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.c.call(s.c.board, configuration.change, agent=worker.id, changes={"title": "Other"})
    return s.by_board(agent=worker.id, revision="1")


@situation("applying.apply")
def _(s: Scene) -> Call:
    document = _document(s)
    shown = s.c.call(s.c.board, declared_company.preview, company=s.c.id, document=document)
    return s.by_board(company=s.c.id, document=document, accepted=shown["digest"])


@situation("applying.preview")
def _(s: Scene) -> Call:
    return changed(s.by_board(company=s.c.id, document=_document(s)), keyed=False, leaves=False)


def _document(s: Scene) -> dict[str, Any]:
    known, new = s.agent(), s.name()
    return {
        "company": {"messaging": "team"},
        "agents": [
            {"name": known.name, "title": "Applied"},
            {"name": new, "reportsTo": known.name, "adapterType": "scripted"},
        ],
        "grants": [{"agent": new, "resource": "agent.create", "level": "use"}],
        "schedules": [
            {"agent": known.name, "subject": "daily", "body": "Go.", "cron": "0 9 * * *"}
        ],
    }
