"""For every verb that changes something, a situation in which it succeeds.

One rich company has them all, so that it is made once and copied; each has agents, mail and work of
its own. A verb without a row here fails `test_the_matrix_knows_every_verb_that_changes_something`.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from remit.clock import DAY, HOUR, MINUTE, to_iso
from remit.services import (
    agents,
    approvals,
    companies,
    configuration,
    files,
    grants,
    hiring,
    inbox,
    job_work,
    jobs,
    mail,
    mcp_servers,
    outcomes,
    questions,
    reorganise,
    repos,
    runs,
    schedules,
    sessions,
    users,
)
from remit.services.identity import Caller, as_system
from remit.testing.clock import A_DAY, VirtualClock
from tests import working
from tests.background import ask as ask_background
from tests.budgeting import set_budget, spend
from tests.company import Answer, Company, Member, Run, keyed, opened
from tests.crash_stage import THEN, Call
from tests.governance import approve, ask, hire, propose, send_back
from tests.mailing import ack, send
from tests.organisation import given, work

Situation = Callable[["Scene"], Call]
#: By verb, and by what is special about the situation when a verb has several.
SITUATIONS: dict[str, Situation] = {}


def situation(name: str) -> Callable[[Situation], Situation]:
    def keep(body: Situation) -> Situation:
        assert name not in SITUATIONS, name
        SITUATIONS[name] = body
        return body

    return keep


def verb_of(name: str) -> str:
    return name.partition(" ")[0]


def build(url: str, home: Path) -> dict[str, Any]:
    """The company with all situations; answers the call of each."""
    clock = VirtualClock(A_DAY)
    made: dict[str, Any] = {}
    with opened(url, home, clock, asks_before_hiring=True) as company:
        for number, (name, body) in enumerate(SITUATIONS.items()):
            scene = Scene(company, verb_of(name), number)
            try:
                made[name] = asdict(body(scene))
            except Exception as error:
                error.add_note(f"while preparing {name}")
                raise
    with opened(f"sqlite:///{home.parent}/elsewhere.db", home.parent / "elsewhere") as other:
        _archive(other, home.parent / "archive")
    return {"calls": made}


def _archive(company: Company, place: Path) -> None:
    """An export of another instance, with files and mail in it."""
    member = company.agent("far", prompt="Be far away.")
    company.file(company.board, b"Far away.", "a far file")
    send(company, company.board, f"agent:{member.id}", "Come home.")

    async def whole() -> bytes:
        outline = await company.app.archive.export(company.board, company.id)
        return b"".join([piece async for piece in company.app.archive.stream(outline)])

    place.write_bytes(company.wait(whole()))


class Scene:
    """Where one situation is prepared: names of its own, and how it is called."""

    def __init__(self, company: Company, verb: str, number: int) -> None:
        self.c = company
        self.board = company.board.token
        self._verb = verb
        self._name = f"{verb.replace('.', '-').replace('_', '-')}-{number}"
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"{self._name}-{self._count}"

    def agent(self, boss: Member | None = None, **more: Any) -> Member:
        more.setdefault("adapter_type", "scripted")
        return self.c.agent(self.name(), boss=boss.id if boss else "ceo", **more)

    def by_board(self, **given: Any) -> Call:
        return Call(self._verb, given, self.board)

    def by(self, who: Member | Run | Caller, **given: Any) -> Call:
        caller = who if isinstance(who, Caller) else who.caller
        return Call(self._verb, given, caller.token)

    def by_remit(self, **given: Any) -> Call:
        return Call(self._verb, given)

    def run(self, who: Member) -> Run:
        """At work for a worker, whose lease an instance that begins among others leaves alone."""
        return working.claim(self.c, who)

    def letter(self, to: Member, body: str = "Please.", **more: Any) -> Answer:
        return send(self.c, self.c.board, f"agent:{to.id}", body, **more)


def changed(call: Call, **more: Any) -> Call:
    return Call(**{**asdict(call), **more})


# ── agents ──────────────────────────────────────────────────────────────────────────────────────


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
    return s.by_board(company=s.c.id, document=_document(s))


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


# ── hires and approvals ─────────────────────────────────────────────────────────────────────────


def _asked(s: Scene, **more: Any) -> tuple[Member, Answer]:
    worker = s.agent()
    return worker, ask(s.c, worker.caller, **more)


@situation("approvals.request")
def _(s: Scene) -> Call:
    payload = {"title": "May I?"}
    return s.by(s.agent(), company=s.c.id, kind="request_board_approval", payload=payload)


@situation("approvals.approve")
def _(s: Scene) -> Call:
    found = hire(s.c, _boss(s).caller, s.name(), purpose="Help")["approval"]
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


def _boss(s: Scene) -> Member:
    """Somebody who may ask for a hire."""
    boss = s.agent()
    give = {"company": s.c.id, "to": boss.id, "resource": "agent.create", "level": "use"}
    s.c.call(s.c.board, grants.give, **give)
    return boss


def _parked(s: Scene, worker: Member) -> str:
    """A message to a peer, which this agent has to ask for each time."""
    other = s.agent()
    wish = {"resource": f"message:{other.id}", "level": "use", "mode": "ask"}
    s.c.call(s.c.board, grants.give, company=s.c.id, to=worker.id, **wish)
    from remit.errors import AwaitsApproval

    try:
        send(s.c, worker.caller, f"agent:{other.id}", "May I write this?")
    except AwaitsApproval as error:
        return str(error.details["approval_id"])
    raise AssertionError("it was sent without asking")


@situation("approvals.reject")
def _(s: Scene) -> Call:
    found = hire(s.c, _boss(s).caller, s.name())["approval"]
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


@situation("approvals.delete_agent")
def _(s: Scene) -> Call:
    found = hire(s.c, _boss(s).caller, s.name())["approval"]
    s.c.call(s.c.board, approvals.reject, approval=found["id"])
    return s.by_board(approval=found["id"])


@situation("approvals.expire")
def _(s: Scene) -> Call:
    _, asked = _asked(s, expires_at=to_iso(THEN - MINUTE))
    return s.by_remit(approval=asked["id"])


@situation("hiring.hire")
def _(s: Scene) -> Call:
    return s.by(_boss(s), company=s.c.id, name=s.name(), purpose="Help", adapter_type="scripted")


@situation("hiring.hire (by the board)")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name=s.name(), purpose="Help", adapter_type="scripted")


@situation("hiring.create_agent")
def _(s: Scene) -> Call:
    """It was approved, and created then; who asked comes back for what came of it."""
    boss, name = _boss(s), s.name()
    approve(s.c, {"id": _created(s, boss, name)})
    return s.by(boss, name=name)


@situation("hiring.create_agent (asks)")
def _(s: Scene) -> Call:
    """A refusal, which a key does not keep: asking again reminds of the one approval."""
    return changed(s.by(_boss(s), name=s.name()), asks=True, keyed=False)


def _created(s: Scene, boss: Member, name: str) -> str:
    from remit.errors import AwaitsApproval

    try:
        s.c.call(boss.caller, hiring.create_agent, name=name)
    except AwaitsApproval as error:
        return str(error.details["approval_id"])
    raise AssertionError("it was created without asking")


@situation("hire_preview.preview")
def _(s: Scene) -> Call:
    call = s.by_board(company=s.c.id, asked={"name": s.name(), "reports_to": "ceo"})
    return changed(call, keyed=False, leaves=False)


# ── the company and its people ──────────────────────────────────────────────────────────────────


@situation("bootstrap.first_start")
def _(s: Scene) -> Call:
    return Call("bootstrap.first_start", through="app.first_start", keyed=False, home="nothing")


@situation("bootstrap.renew_board_token")
def _(s: Scene) -> Call:
    return Call("bootstrap.renew_board_token", through="app.first_start", keyed=False, home="lost")


@situation("companies.create")
def _(s: Scene) -> Call:
    return s.by_board(name=s.name())


@situation("companies.change")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name="Another name", messaging="team")


@situation("exporting.begin")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id)


@situation("importing.create")
def _(s: Scene) -> Call:
    return changed(s.by_board(name="From elsewhere"), through="archive.import_")


@situation("users.add")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name=s.name(), role="observer")


@situation("users.invite")
def _(s: Scene) -> Call:
    return changed(s.by_board(company=s.c.id, name=s.name()), shown_once=("token",))


def _person(s: Scene) -> str:
    name = s.name()
    s.c.call(s.c.board, users.add, company=s.c.id, name=name)
    return name


@situation("users.remove")
def _(s: Scene) -> Call:
    person = _person(s)
    s.c.token_of(person)
    return s.by_board(company=s.c.id, user=person)


@situation("users.create_token")
def _(s: Scene) -> Call:
    call = s.by_board(company=s.c.id, user=_person(s), label="phone", expires_at=None)
    return changed(call, shown_once=("token",))


@situation("users.revoke_token")
def _(s: Scene) -> Call:
    person = _person(s)
    made = s.c.call(s.c.board, users.create_token, company=s.c.id, user=person, expires_at=None)
    return s.by_board(company=s.c.id, token=made["id"])


@situation("sessions.create_link")
def _(s: Scene) -> Call:
    return changed(s.by_board(), shown_once=("token",))


def _signed_in(s: Scene) -> tuple[Caller, Answer]:
    """A person of one's own, and a session of theirs."""
    person = s.c.token_of(_person(s))
    return person, _session(s, person)


def _session(s: Scene, person: Caller) -> Answer:
    link = s.c.call(person, sessions.create_link)
    return s.c.call(as_system(), sessions.redeem, link=link["token"])


@situation("sessions.redeem")
def _(s: Scene) -> Call:
    link = s.c.call(s.c.token_of(_person(s)), sessions.create_link)
    s.c.sql("UPDATE tokens SET expires_at = ? WHERE id = ?", THEN + HOUR, link["id"])
    return changed(s.by_remit(link=link["token"]), shown_once=("token",))


@situation("sessions.end")
def _(s: Scene) -> Call:
    _, session = _signed_in(s)
    call = s.by(Caller(session["token"]), session=session["token"])
    return changed(call, refused="unauthenticated")


@situation("sessions.end_one")
def _(s: Scene) -> Call:
    person, session = _signed_in(s)
    return s.by(person, session=session["id"])


@situation("sessions.end_others")
def _(s: Scene) -> Call:
    person, session = _signed_in(s)
    _session(s, person)
    return s.by(Caller(session["token"]))


@situation("grants.give")
def _(s: Scene) -> Call:
    file = s.c.file(s.c.board)
    resource = f"kb_file:{file['id']}"
    return s.by_board(company=s.c.id, to=s.agent().id, resource=resource, level="write")


@situation("grants.revoke")
def _(s: Scene) -> Call:
    """With what was passed on from it."""
    boss = s.agent()
    file = s.c.file(s.c.board)
    made = s.c.give(s.c.board, boss, file, "write")
    s.c.give(boss.caller, s.agent(boss), file, "read")
    return s.by_board(grant=made["id"])


@situation("reorganise.reorganise")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, operations=_operations(s))


def _operations(s: Scene) -> list[dict[str, Any]]:
    boss, moved, layer = s.agent(), s.agent(), s.agent()
    work(s.c, layer.caller, layer.id)
    return [
        {"op": "move", "agent": moved.name, "to": boss.name},
        {"op": "insert_layer", "agents": [moved.name], "name": s.name()},
        {"op": "remove_layer", "agent": layer.name},
    ]


@situation("reorganise.preview")
def _(s: Scene) -> Call:
    call = s.by_board(company=s.c.id, operations=_operations(s))
    return changed(call, keyed=False, leaves=False)


@situation("reorganise.undo")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, event=_reorganised(s))


def _reorganised(s: Scene) -> str:
    move = {"op": "move", "agent": s.agent().name, "to": s.agent().name}
    made = s.c.call(s.c.board, reorganise.reorganise, company=s.c.id, operations=[move])
    return str(made["event_id"])


@situation("reorganise.preview_undo")
def _(s: Scene) -> Call:
    return changed(s.by_board(company=s.c.id, event=_reorganised(s)), keyed=False, leaves=False)


# ── files ───────────────────────────────────────────────────────────────────────────────────────


@situation("files.create")
def _(s: Scene) -> Call:
    call = s.by(s.agent(), company=s.c.id, description="new", source=f"Text of {s.name()}")
    return changed(call, through="library.create")


@situation("files.write")
def _(s: Scene) -> Call:
    worker = s.agent()
    seen = s.c.file(worker.caller, b"first")
    given = {"file": seen["id"], "version": seen["version"], "sha256": seen["hash"]}
    return changed(s.by(worker, source="second", **given), through="library.write")


@situation("files.describe")
def _(s: Scene) -> Call:
    worker = s.agent()
    return s.by(worker, file=s.c.file(worker.caller)["id"], description="better", unlisted=True)


@situation("files.read")
def _(s: Scene) -> Call:
    worker = s.agent()
    call = s.by(worker, file=s.c.file(s.c.board)["id"])
    s.c.give(s.c.board, worker, {"id": call.given["file"]}, "read")
    return changed(call, through="library.read", keyed=False)


# ── work ────────────────────────────────────────────────────────────────────────────────────────


@situation("outcomes.create")
def _(s: Scene) -> Call:
    worker = s.agent()
    call = s.by(worker, parent=worker.id, title="A part", description="What has to be so.")
    return changed(call, through="library.create_outcome")


@situation("outcomes.change")
def _(s: Scene) -> Call:
    worker = s.agent()
    part = work(s.c, worker.caller, worker.id)
    blocker = work(s.c, worker.caller, worker.id, "first this")
    given = {"title": "Better", "description": "Other words.", "blocked_by": [blocker]}
    return s.by(worker, outcome=part, version=1, **given)


@situation("outcomes.complete")
def _(s: Scene) -> Call:
    worker = s.agent()
    file = s.c.file(worker.caller)
    part = work(s.c, worker.caller, worker.id)
    return s.by(worker, outcome=part, evidence=[file["id"]], note="Here it is.")


@situation("outcomes.complete (a mandate)")
def _(s: Scene) -> Call:
    """Its agent goes with it."""
    boss = s.agent()
    worker = s.agent(boss)
    s.letter(worker)
    return s.by(boss, outcome=worker.id, note="Well done.")


@situation("outcomes.close")
def _(s: Scene) -> Call:
    worker = s.agent()
    part = work(s.c, worker.caller, worker.id)
    work(s.c, worker.caller, part)
    return s.by(worker, outcome=part, rationale="Not needed.")


@situation("outcomes.reopen")
def _(s: Scene) -> Call:
    worker = s.agent()
    part = work(s.c, worker.caller, worker.id)
    s.c.call(worker.caller, outcomes.complete, outcome=part)
    return s.by(worker, outcome=part, note="Not quite.")


@situation("delegation.delegate")
def _(s: Scene) -> Call:
    boss = s.agent()
    worker, file = s.agent(boss), s.c.file(boss.caller)
    wish = {"resource": f"kb_file:{file['id']}", "level": "read"}
    return s.by(boss, outcome=work(s.c, boss.caller, boss.id), to=worker.name, given=[wish])


@situation("delegation.delegate (to somebody new)")
def _(s: Scene) -> Call:
    boss = _boss(s)
    hire_ = {"name": s.name(), "adapter_type": "scripted"}
    return s.by(boss, outcome=work(s.c, boss.caller, boss.id), hire=hire_)


@situation("delegation.reclaim")
def _(s: Scene) -> Call:
    boss = s.agent()
    part = work(s.c, boss.caller, boss.id)
    given(s.c, boss.caller, part, s.agent(boss))
    return s.by(boss, outcome=part, reason="I do it myself.")


# ── mail ────────────────────────────────────────────────────────────────────────────────────────


@situation("mail.send")
def _(s: Scene) -> Call:
    call = s.by_board(to=f"agent:{s.agent().id}", body="Please do it.", subject="Work")
    return changed(call, through="library.send")


@situation("mail.send (without its bytes)")
def _(s: Scene) -> Call:
    """As Remit writes by itself: the body is stored while the transaction is open."""
    return s.by(s.agent(), to="board", body="It is done.", subject="Report")


@situation("mail.send (a large body)")
def _(s: Scene) -> Call:
    return changed(s.by_board(to=f"agent:{s.agent().id}", subject="Large"), through="upload")


@situation("mail.send (a reply with files)")
def _(s: Scene) -> Call:
    worker = s.agent()
    letter, file = s.letter(worker), s.c.file(worker.caller)
    asked = {"to": "board", "body": "Here.", "attachments": [file["id"]], "reply_to": letter["id"]}
    return changed(s.by(worker, **asked), through="library.send")


@situation("mail.send (for later)")
def _(s: Scene) -> Call:
    when = to_iso(THEN + DAY)
    call = s.by_board(to=f"agent:{s.agent().id}", body="Tomorrow.", deliver_at=when)
    return changed(call, through="library.send")


@situation("mail.send (to the background)")
def _(s: Scene) -> Call:
    call = s.by(s.agent(), to="agent:background", body="Count to ten.")
    return changed(call, through="library.send")


@situation("mail.send (awaits approval)")
def _(s: Scene) -> Call:
    """A refusal that keeps the bytes until somebody has decided."""
    worker, other = s.agent(), s.agent()
    wish = {"resource": f"message:{other.id}", "level": "use", "mode": "ask"}
    s.c.call(s.c.board, grants.give, company=s.c.id, to=worker.id, **wish)
    call = s.by(worker, to=f"agent:{other.id}", body="May I write that?")
    return changed(call, through="library.send", asks=True, keyed=False)


@situation("mail.request_capability")
def _(s: Scene) -> Call:
    boss = s.agent()
    file = s.c.file(boss.caller)
    return s.by(s.agent(boss), resource=f"kb_file:{file['id']}", level="read", why="To know.")


@situation("mail.grant_request")
def _(s: Scene) -> Call:
    boss = s.agent()
    worker, file = s.agent(boss), s.c.file(boss.caller)
    wish = {"resource": f"kb_file:{file['id']}", "level": "read", "why": "To know."}
    asked = s.c.call(worker.caller, mail.request_capability, **wish)
    return s.by(boss, request=asked["id"])


@situation("inbox.take")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.letter(worker)
    s.letter(worker)
    return changed(s.by(s.run(worker)), keyed=False)


@situation("inbox.turn")
def _(s: Scene) -> Call:
    worker = s.agent()
    s.letter(worker)
    return changed(s.by(s.run(worker)), keyed=False)


@situation("inbox.acknowledge")
def _(s: Scene) -> Call:
    worker = s.agent()
    letter = s.letter(worker)
    run = s.run(worker)
    s.c.call(run.caller, inbox.take)
    return s.by(run, ids=[letter["id"]])


@situation("threads.show")
def _(s: Scene) -> Call:
    letter = send(s.c, s.agent().caller, "board", "Look at this.")
    return changed(s.by_board(message=letter["id"]), keyed=False)


@situation("waiting.cancel")
def _(s: Scene) -> Call:
    return s.by_board(thread=_question(s)[1]["id"])


@situation("waiting.cancel_message")
def _(s: Scene) -> Call:
    letter = s.letter(s.agent(), deliver_at=to_iso(THEN + DAY))
    return s.by_board(message=letter["id"])


@situation("waiting.cancel_question")
def _(s: Scene) -> Call:
    return s.by_board(question=_question(s)[1]["id"])


@situation("waiting.cancel_schedule")
def _(s: Scene) -> Call:
    made = s.c.call(s.agent().caller, schedules.add, body="Again.", cron="0 9 * * *")
    return s.by_board(schedule=made["id"])


def _question(s: Scene) -> tuple[Member, Answer]:
    asker = s.agent()
    return asker, s.c.call(asker.caller, questions.ask, question="Which?", options=["a", "b"])


def _dead_letter(s: Scene) -> str:
    worker = s.agent()
    letter = s.letter(worker)
    for _ in range(3):
        run = s.run(worker)
        s.c.call(run.caller, inbox.take)
        s.c.call(as_system(), runs.end, run=run.id, status="failed")
    return str(letter["id"])


@situation("waiting.revive")
def _(s: Scene) -> Call:
    return s.by_board(message=_dead_letter(s))


@situation("waiting.discard")
def _(s: Scene) -> Call:
    return s.by_board(message=_dead_letter(s))


@situation("questions.ask")
def _(s: Scene) -> Call:
    return s.by(s.agent(), question="What now?", options=["this", "that"])


@situation("questions.answer")
def _(s: Scene) -> Call:
    return s.by(s.c.ceo, question=_question(s)[1]["id"], answer="a")


@situation("schedules.add")
def _(s: Scene) -> Call:
    return s.by(s.agent(), body="Every day.", cron="0 9 * * *")


@situation("schedules.run_due")
def _(s: Scene) -> Call:
    """A schedule and a held message that came due meanwhile."""
    worker = s.agent()
    s.c.call(worker.caller, schedules.add, body="Now.", at=to_iso(THEN - MINUTE))
    s.letter(worker, deliver_at=to_iso(THEN - MINUTE))
    return s.by_remit(company=s.c.id)


# ── runs ────────────────────────────────────────────────────────────────────────────────────────


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
    call = s.by_remit(run=run.id, pieces=pieces)
    return changed(call, keyed=False, refused="conflict")


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


# ── background jobs ─────────────────────────────────────────────────────────────────────────────


def _job(s: Scene) -> tuple[Member, str]:
    worker = s.agent()
    ask_background(s.c, worker, attachments=[s.c.file(worker.caller)["id"]])
    (found,) = s.c.call(s.c.board, jobs.listing, company=s.c.id, agent=worker.id)
    return worker, str(found["id"])


def _held(s: Scene) -> str:
    job = _job(s)[1]
    s.c.call(as_system(), job_work.claim, job=job, worker="w")
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


@situation("job_work.material")
def _(s: Scene) -> Call:
    """What is attached is read in the name of who asked."""
    return changed(s.by_remit(job=_held(s), epoch=1), keyed=False)


# ── what an instance is connected to ────────────────────────────────────────────────────────────


@situation("secrets.put")
def _(s: Scene) -> Call:
    """Another value for a secret that Remit keeps: the file of the former one goes."""
    name = s.name()
    s.c.wait(s.c.app.vault.put(s.c.board, company=s.c.id, name=name, value="the first value"))
    call = s.by_board(company=s.c.id, name=name, value="the second value")
    return changed(call, through="vault.put")


@situation("secrets.put (found elsewhere)")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name=s.name(), source="env", place="A_VARIABLE")


@situation("secrets.remove")
def _(s: Scene) -> Call:
    name = s.name()
    s.c.wait(s.c.app.vault.put(s.c.board, company=s.c.id, name=name, value="the only value"))
    return changed(s.by_board(company=s.c.id, name=name), through="vault.remove")


def _server(s: Scene) -> str:
    name = s.name()
    definition = {"command": ["/bin/true"]}
    s.c.call(s.c.board, mcp_servers.add, company=s.c.id, name=name, definition=definition)
    return name


def _server_of(s: Scene, holder: Member) -> str:
    name = _server(s)
    give = {"to": holder.id, "resource": f"mcp_server:{name}", "level": "use"}
    s.c.call(s.c.board, grants.give, company=s.c.id, **give)
    return name


@situation("mcp_servers.add")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name=s.name(), definition={"command": ["/bin/true"]})


@situation("mcp_servers.remove")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name=_server_of(s, s.agent()))


@situation("mcp_servers.try_out")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name=_server(s))


@situation("mcp_servers.use")
def _(s: Scene) -> Call:
    worker = s.agent()
    call = s.by(worker, server=_server_of(s, worker), tool="echo", arguments={"text": "hi"})
    return changed(call, keyed=False)


def _repo(s: Scene) -> str:
    name = s.name()
    s.c.call(s.c.board, repos.add, company=s.c.id, name=name, url="https://example.invalid/a.git")
    return name


@situation("repos.add")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name=s.name(), url="https://example.invalid/b.git")


@situation("repos.remove")
def _(s: Scene) -> Call:
    name = _repo(s)
    give = {"to": s.agent().id, "resource": f"repo:{name}", "level": "use"}
    s.c.call(s.c.board, grants.give, company=s.c.id, **give)
    return s.by_board(company=s.c.id, name=name)


@situation("repos.sync")
def _(s: Scene) -> Call:
    return changed(s.by_board(company=s.c.id, name=_repo(s)), keyed=False)


@situation("repos.use")
def _(s: Scene) -> Call:
    worker, name = s.agent(), _repo(s)
    give = {"to": worker.id, "resource": f"repo:{name}", "level": "use"}
    s.c.call(s.c.board, grants.give, company=s.c.id, **give)
    return changed(s.by(s.run(worker), name=name), keyed=False)


@situation("maintenance.forget_answers")
def _(s: Scene) -> Call:
    s.c.call(keyed(s.c.board, "long ago"), files.describe, **_described(s))
    return changed(s.by_remit(before=THEN), keyed=False)


def _described(s: Scene) -> dict[str, Any]:
    return {"file": s.c.file(s.c.board)["id"], "description": "other"}
