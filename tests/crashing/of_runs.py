"""Runs, leases, budgets and background jobs."""

from typing import Any

from remit.clock import DAY
from remit.services.execution import job_queue, jobs, runs
from remit.services.identity import as_system
from remit.services.messaging import inbox
from tests import working
from tests.background import ask as ask_background
from tests.budgeting import set_budget, spend
from tests.company import Member
from tests.crashing.call import THEN, Call
from tests.crashing.scene import Scene, changed, situation
from tests.mailing import ack


@situation("runs.start")
def _(s: Scene) -> Call:
    """With its folder; nobody repeats it, because a run is begun anew."""
    call = s.by_remit(agent=s.agent().id)
    return changed(call, through="runs.begin", keyed=False, refused="conflict")


@situation("runs.start (with a key)")
def _(s: Scene) -> Call:
    run = s.c.app.ids.new()
    return changed(s.by_remit(agent=s.agent().id, run=run, workspace=None), shown_once=("token",))


@situation("runs.end")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.letter(worker)
    run = s.run(worker)
    s.c.call(run.caller, inbox.take)
    report = {"final_response": "All done.", "tokens_in": 5}
    return s.by_remit(run=run.id, status="completed", report=report)


@situation("runs.end (it failed)")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.letter(worker)
    run = s.run(worker)
    s.c.call(run.caller, inbox.take)
    return s.by_remit(run=run.id, status="failed", report={"error": "it broke"})


@situation("runs.end (it closes an account)")
def _(s: Scene) -> Call:
    worker = _on_an_account(s)
    s.letter(worker)
    run = s.run(worker)
    s.c.call(run.caller, inbox.take)
    report = {"error": "usage limit", "fault": "rate", "fault_until": THEN + DAY}
    return s.by_remit(run=run.id, status="failed", report=report)


@situation("runs.cancel")
def _(s: Scene) -> Call:
    return s.by_board(run=s.run(s.agent()).id, reason="Enough.")


@situation("run_reports.submit")
def _(s: Scene) -> Call:
    run = s.run(s.agent())
    return s.by(run, run=run.id, text="Done.", tokens_in=7, cost_micros=3)


@situation("claiming.claim")
def _(s: Scene) -> Call:
    worker, run = s.agent(), s.c.app.ids.new()
    folder = str(s.c.app.settings.workspaces / run)
    call = s.by_remit(agent=worker.id, run=run, workspace=folder, worker="w")
    return changed(call, shown_once=("token",))


@situation("claiming.claim (it tries an account)")
def _(s: Scene) -> Call:
    worker, _ = _closed(s, "auth")
    s.c.sql("UPDATE accounts SET probe_at = 0 WHERE state <> 'open'")
    run = s.c.app.ids.new()
    folder = str(s.c.app.settings.workspaces / run)
    call = s.by_remit(agent=worker.id, run=run, workspace=folder, worker="w")
    return changed(call, shown_once=("token",))


def _on_an_account(s: Scene) -> Member:
    """An agent with an account and a set-up of its own, so that others are not closed with it."""
    return s.agent(adapter_type="process", adapter_config={"command": f"/bin/{s.name()}"})


def _closed(s: Scene, fault: str) -> tuple[Member, str]:
    """An agent whose account or set-up is closed by its run, and which that is."""
    worker = _on_an_account(s)
    s.letter(worker)
    working.end(s.c, s.run(worker), "failed", fault=fault, error="It does not work.")
    ((found,),) = s.c.sql("SELECT held_by FROM agent_leases WHERE agent_id = ?", worker.id)
    return worker, str(found)


@situation("accounts.wait")
def _(s: Scene) -> Call:
    worker, _ = _closed(s, "auth")
    s.c.sql("UPDATE agent_leases SET held_by = NULL WHERE agent_id = ?", worker.id)
    return changed(s.by_remit(agent=worker.id, worker="w"), keyed=False)


@situation("accounts.answered")
def _(s: Scene) -> Call:
    worker, account = _closed(s, "auth")
    s.c.sql("UPDATE accounts SET probe_at = 0 WHERE id = ?", account)
    return s.by_remit(run=s.run(worker).id)


@situation("accounts.checked")
def _(s: Scene) -> Call:
    _, account = _closed(s, "setup")
    return s.by_remit(account=account, usable=True)


@situation("accounts.checked (it is still broken)")
def _(s: Scene) -> Call:
    _, account = _closed(s, "setup")
    return s.by_remit(account=account, usable=False, cause="It is not there.")


def _unreachable(s: Scene) -> str:
    """An account whose provider is to be asked."""
    settings = {"command": "claude", "baseUrl": f"http://{s.name()}.example", "secretRef": "key"}
    worker = s.agent(adapter_type="claude", adapter_config=settings)
    s.letter(worker)
    working.end(s.c, s.run(worker), "failed", fault="network", error="Nobody answers.")
    ((account,),) = s.c.sql("SELECT held_by FROM agent_leases WHERE agent_id = ?", worker.id)
    s.c.sql("UPDATE accounts SET ask_at = 0, probe_at = 0 WHERE id = ?", account)
    return str(account)


@situation("accounts.begin_asking")
def _(s: Scene) -> Call:
    return changed(s.by_remit(account=_unreachable(s)), keyed=False)


@situation("accounts.asked")
def _(s: Scene) -> Call:
    return s.by_remit(account=_unreachable(s), answered=True)


@situation("accounts.unanswered")
def _(s: Scene) -> Call:
    account = _unreachable(s)
    s.c.sql("UPDATE accounts SET since = 0 WHERE id = ?", account)
    return s.by_remit(account=account, cause="It does not answer.")


@situation("accounts.retry")
def _(s: Scene) -> Call:
    _, account = _closed(s, "billing")
    return s.by_board(account=account, company=s.c.id)


@situation("mending.checked")
def _(s: Scene) -> Call:
    worker = s.agent()
    working.end(s.c, s.run(worker), "failed", exit_reason="no_adapter", error="There is none.")
    return s.by_remit(agent=worker.id, usable=True)


@situation("claiming.settle")
def _(s: Scene) -> Call:
    worker = s.agent(purpose=None, perpetual=True)
    ack(s.c, worker.caller, s.letter(worker))
    return changed(s.by_remit(agent=worker.id), keyed=False)


@situation("claiming.renew")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.run(worker)
    return changed(s.by_remit(held=[[worker.id, 1]]), keyed=False)


@situation("claiming.take_over")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.letter(worker)
    run = s.run(worker)
    s.c.call(run.caller, inbox.take)
    return s.by_remit(run=run.id, until=working.held(s.c, worker).lease_until)


@situation("claiming.sweep")
def _(s: Scene) -> Call:
    working.let_sleep(s.c, s.agent())
    return s.by_remit(company=s.c.id)


@situation("claiming.redate")
def _(s: Scene) -> Call:
    """The clock was set back while it waited."""
    worker = s.agent()
    s.c.sql("UPDATE agent_leases SET due_at = ? WHERE agent_id = ?", THEN + DAY, worker.id)
    return changed(s.by_remit(agent=worker.id), keyed=False)


@situation("claiming.append_log")
def _(s: Scene) -> Call:
    pieces = [{"number": 1, "at": THEN, "stream": "stdout", "text": "Hello."}]
    run = s.run(s.agent())
    # Its worker counts the pieces, so a second one of that number is refused by the database.
    call = s.by_remit(run=run.id, pieces=pieces, denied={"Bash": 1})
    return changed(call, keyed=False, refused="conflict")


@situation("claiming.briefing")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.letter(worker)
    run = s.run(worker)
    return changed(s.by_remit(run=run.id, token=run.caller.token), keyed=False)


@situation("claiming.keep_session")
def _(s: Scene) -> Call:
    run = s.run(s.agent())
    told = {"adapter_type": "scripted", "session_id": "s", "begun_at": THEN, "context_tokens": 9}
    return changed(s.by_remit(run=run.id, **told), keyed=False)


@situation("budgets.spend")
def _(s: Scene) -> Call:
    worker = s.agent()
    set_budget(s.c, worker, tokens=1000)
    run = s.run(worker)
    return changed(s.by_remit(run=run.id, total={"tokens_in": 10}), keyed=False)


@situation("budgets.hold")
def _(s: Scene) -> Call:
    worker = s.agent()
    set_budget(s.c, worker, tokens=5)
    run = s.run(worker)
    spend(s.c, run, tokens=10)
    s.c.call(as_system(), runs.end, run=run.id)
    s.letter(worker)
    return s.by_remit(agent=worker.id)


@situation("limits.hold")
def _(s: Scene) -> Call:
    return changed(s.by_remit(agent=s.insatiable().id), keyed=False)


@situation("runaway.end")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.letter(worker)
    run = s.run(worker)
    s.c.call(run.caller, inbox.take)
    return s.by_remit(run=run.id, error="It called x 10 times in a row.")


@situation("budgets.spend (of a run that was cut off)")
def _(s: Scene) -> Call:
    """What it cost is worked out from the run before."""
    worker = s.agent()
    before = s.run(worker)
    told = {"tokens_in": 100, "cost_micros": 500}
    s.c.call(as_system(), runs.end, run=before.id, report=told)
    s.letter(worker)
    run = s.run(worker)
    s.c.call(s.c.board, runs.cancel, run=run.id)
    return changed(s.by_remit(run=run.id, total={"tokens_in": 10}), keyed=False)


def _job(s: Scene, made: Member | None = None) -> tuple[Member, str]:
    worker = made or s.agent()
    ask_background(s.c, worker, attachments=[s.c.file(worker.caller)["id"]])
    (found,) = s.c.call(s.c.board, jobs.listing, company=s.c.id, agent=worker.id)
    return worker, str(found["id"])


def _held(s: Scene) -> str:
    job = _job(s)[1]
    s.c.call(as_system(), job_queue.claim, job=job, worker="w")
    return job


@situation("jobs.cancel")
def _(s: Scene) -> Call:
    worker, job = _job(s)
    return s.by(worker, job=job, reason="Never mind.")


@situation("job_work.claim")
def _(s: Scene) -> Call:
    return s.by_remit(job=_job(s)[1], worker="w")


@situation("job_work.renew")
def _(s: Scene) -> Call:
    return changed(s.by_remit(held=[[_held(s), 1]]), keyed=False)


@situation("job_work.take_over")
def _(s: Scene) -> Call:
    return s.by_remit(job=_held(s), epoch=1)


@situation("job_work.put_back")
def _(s: Scene) -> Call:
    return s.by_remit(job=_held(s), epoch=1, usage={"tokens_in": 3})


@situation("job_work.end")
def _(s: Scene) -> Call:
    return s.by_remit(job=_held(s), epoch=1, ok=True, text="Ten.", usage={"tokens_in": 3})


def _closing(s: Scene) -> tuple[str, dict[str, Any]]:
    """A job that is held, and an end of it that closes an account which nobody else uses."""
    job = _job(s, _on_an_account(s))[1]
    s.c.call(as_system(), job_queue.claim, job=job, worker="w")
    told: dict[str, Any] = {"ok": False, "error": "No more today.", "fault": "rate", "usage": {}}
    return job, told


@situation("job_work.end (through a fault of the provider)")
def _(s: Scene) -> Call:
    """It goes back in line, and waits for the account that this closes."""
    job, told = _closing(s)
    return s.by_remit(job=job, epoch=1, **told)


@situation("job_work.wait")
def _(s: Scene) -> Call:
    job, told = _closing(s)
    s.c.call(as_system(), job_queue.end, job=job, epoch=1, **told)
    s.c.sql("UPDATE jobs SET held_by = NULL WHERE id = ?", job)
    return changed(s.by_remit(job=job, worker="w"), keyed=False)


@situation("job_work.material")
def _(s: Scene) -> Call:
    """What is attached is read in the name of who asked."""
    return changed(s.by_remit(job=_held(s), epoch=1), keyed=False)
