"""Wishes that are answered or taken back, and people who are told outside."""

from remit.services.connections import notice_planning, notices
from remit.services.identity import as_system
from remit.services.messaging import inbox
from remit.services.work import outcomes
from tests.company import Answer, Run
from tests.crashing.call import THEN, Call
from tests.crashing.scene import Scene, changed, situation
from tests.governance import ask
from tests.organisation import work
from tests.working import end


def _wished(s: Scene) -> tuple[Answer, Run]:
    worker = s.agent()
    letter = s.letter(worker)
    run = s.run(worker)
    s.c.call(run.caller, inbox.take)
    return letter, run


@situation("runs.end (only last words)")
def _(s: Scene) -> Call:
    """The person is answered in the transaction that ends the run."""
    _, run = _wished(s)
    return s.by_remit(run=run.id, report={"final_response": "It is 4."})


@situation("wishes.look")
def _(s: Scene) -> Call:
    """What was made of a letter has ended, and nobody wrote about it."""
    letter, run = _wished(s)
    made = work(s.c, run.caller, run.agent_id, "Build")
    end(s.c, run)
    s.c.call(s.c.board, outcomes.close, outcome=made, rationale="Not wanted")
    s.c.sql("UPDATE outcomes SET verdict = NULL, finished_at = 0 WHERE id = ?", made)
    s.c.sql("UPDATE wishes SET look_at = ? WHERE message_id = ?", THEN, letter["id"])
    return changed(s.by_remit(company=s.c.id), keyed=False)


@situation("wishes.cancel")
def _(s: Scene) -> Call:
    return s.by_board(message=_made_of(s)["id"])


@situation("wishes.preview_cancel")
def _(s: Scene) -> Call:
    return changed(s.by_board(message=_made_of(s)["id"]), keyed=False, leaves=False)


def _made_of(s: Scene) -> Answer:
    """A letter with an outcome, a part, a hire and a request."""
    letter, run = _wished(s)
    work(s.c, run.caller, work(s.c, run.caller, run.agent_id, "Build"), "Part")
    ask(s.c, run.caller)
    end(s.c, run)
    return letter


@situation("notices.set_webhook")
def _(s: Scene) -> Call:
    call = s.by_board(company=s.c.id, url="https://chat.example.org/me")
    return changed(call, shown_once=("key",))


@situation("notices.try_out")
def _(s: Scene) -> Call:
    url = "https://chat.example.org/me"
    s.c.call(s.c.board, notices.set_webhook, company=s.c.id, url=url)
    s.c.sql("UPDATE notices SET created_at = 0 WHERE kind = 'test'")
    return s.by_board(company=s.c.id, by_command=True)


@situation("notices.look")
def _(s: Scene) -> Call:
    _asked(s)
    return changed(s.by_remit(company=s.c.id, commands=[]), keyed=False)


@situation("notices.claim")
def _(s: Scene) -> Call:
    return changed(s.by_remit(notice=_notice(s), worker="w"), keyed=False)


@situation("notices.renew")
def _(s: Scene) -> Call:
    return changed(s.by_remit(held=[(_claimed(s), 1)], lease=60_000_000), keyed=False)


@situation("notices.delivered")
def _(s: Scene) -> Call:
    return s.by_remit(notice=_claimed(s), epoch=1)


@situation("notices.failed")
def _(s: Scene) -> Call:
    return s.by_remit(notice=_claimed(s), epoch=1, why="nobody took it")


@situation("notices.take_over")
def _(s: Scene) -> Call:
    return s.by_remit(notice=_claimed(s), epoch=1, alone=True)


def _asked(s: Scene) -> Answer:
    url = "https://chat.example.org/me"
    s.c.call(s.c.board, notices.set_webhook, company=s.c.id, url=url)
    return ask(s.c, s.agent().caller)


def _notice(s: Scene) -> str:
    asked = _asked(s)
    s.c.call(as_system(), notice_planning.look, company=s.c.id, commands=[])
    ((found,),) = s.c.sql("SELECT id FROM notices WHERE subject_id = ?", asked["id"])
    return str(found)


def _claimed(s: Scene) -> str:
    notice = _notice(s)
    s.c.call(as_system(), notices.claim, notice=notice, worker="w")
    return notice


@situation("notice_rules.change")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, quiet="22:00-07:00", routes={"all": ["webhook"]})
