"""Mail, questions and schedules."""

from remit.clock import DAY, MINUTE, to_iso
from remit.services.messaging import inbox, questions, schedules
from remit.services.rights import capability_requests, grants
from tests.company import Answer, Member
from tests.crashing.call import THEN, Call
from tests.crashing.scene import Scene, changed, situation
from tests.mailing import end, send


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
    asked = s.c.call(worker.caller, capability_requests.request_capability, **wish)
    return s.by(boss, request=asked["id"])


@situation("mail.refuse_request")
def _(s: Scene) -> Call:
    boss = s.agent()
    worker, file = s.agent(boss), s.c.file(boss.caller)
    wish = {"resource": f"kb_file:{file['id']}", "level": "read", "why": "To know."}
    asked = s.c.call(worker.caller, capability_requests.request_capability, **wish)
    return s.by(boss, request=asked["id"], why="It is not for you.")


@situation("reminding.remind")
def _(s: Scene) -> Call:
    """A boss that was asked and has not answered."""
    s.c.call(s.agent(s.agent()).caller, questions.ask, question="Which colour?")
    s.c.sql("UPDATE waits SET remind_at = ?", THEN)
    return s.by_remit(company=s.c.id)


@situation("reminding.remind (the next above is asked)")
def _(s: Scene) -> Call:
    s.c.call(s.agent(s.agent()).caller, questions.ask, question="Which colour?")
    s.c.sql("UPDATE waits SET remind_at = ?, reminders = 3", THEN)
    return s.by_remit(company=s.c.id)


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
        end(s.c, run, "failed", fault="message")
    return str(letter["id"])


@situation("waiting.revive")
def _(s: Scene) -> Call:
    return s.by_board(message=_dead_letter(s))


@situation("waiting.revive_all")
def _(s: Scene) -> Call:
    """As those that died before it was known whose fault that was."""
    _dead_letter(s)
    s.c.sql("UPDATE deliveries SET ended_why = 'failed 3 times' WHERE status = 'dead'")
    return s.by_board(company=s.c.id)


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


@situation("schedules.preview")
def _(s: Scene) -> Call:
    call = s.by(s.agent(), body="Every day.", cron="0 9 * * *")
    return changed(call, keyed=False, leaves=False)


@situation("schedules.run_due")
def _(s: Scene) -> Call:
    """A schedule and a held message that came due meanwhile."""
    worker = s.agent()
    s.c.call(worker.caller, schedules.add, body="Now.", at=to_iso(THEN - MINUTE))
    s.letter(worker, deliver_at=to_iso(THEN - MINUTE))
    return s.by_remit(company=s.c.id)
