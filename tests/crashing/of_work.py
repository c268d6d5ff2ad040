"""Files, outcomes and delegation."""

from remit.services.messaging import questions, schedules
from remit.services.work import outcomes, submitting
from tests import background
from tests.channel_stage import bind
from tests.crashing.call import Call
from tests.crashing.scene import Scene, changed, situation
from tests.organisation import given, work


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


@situation("outcomes.submit")
def _(s: Scene) -> Call:
    worker = s.agent(s.agent())
    file = s.c.file(worker.caller)
    return s.by(worker, outcome=worker.id, evidence=[file["id"]], note="Here it is.")


@situation("outcomes.return")
def _(s: Scene) -> Call:
    boss = s.agent()
    worker = s.agent(boss)
    s.c.call(worker.caller, submitting.submit, outcome=worker.id)
    return s.by(boss, outcome=worker.id, note="Something is missing.")


@situation("outcomes.complete (handed in)")
def _(s: Scene) -> Call:
    """Its agent waits for the verdict, and ends with it."""
    boss = s.agent()
    worker = s.agent(boss)
    s.c.call(worker.caller, submitting.submit, outcome=worker.id)
    return s.by(boss, outcome=worker.id, note="Well done.")


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


@situation("outcomes.reopen (an accepted mandate)")
def _(s: Scene) -> Call:
    boss = s.agent()
    worker = s.agent(boss, purpose="Do it", perpetual=False)
    s.agent(worker)
    s.c.give(boss.caller, worker, s.c.file(boss.caller), "read")
    s.letter(worker)
    background.ask(s.c, worker)
    bind(s.c, worker, "https://chat.example.org/hook")
    s.c.call(worker.caller, questions.ask, question="Which colour?")
    s.c.call(worker.caller, schedules.add, body="Look again", cron="0 9 * * 1")
    s.c.call(boss.caller, outcomes.complete, outcome=worker.id)
    return s.by(boss, outcome=worker.id, note="Not quite.")


@situation("delegation.delegate")
def _(s: Scene) -> Call:
    boss = s.agent()
    worker, file = s.agent(boss), s.c.file(boss.caller)
    wish = {"resource": f"kb_file:{file['id']}", "level": "read"}
    return s.by(boss, outcome=work(s.c, boss.caller, boss.id), to=worker.name, given=[wish])


@situation("delegation.delegate (to somebody new)")
def _(s: Scene) -> Call:
    boss = s.hirer()
    hire_ = {"name": s.name(), "adapter_type": "scripted"}
    return s.by(boss, outcome=work(s.c, boss.caller, boss.id), hire=hire_)


@situation("delegation.reclaim")
def _(s: Scene) -> Call:
    boss = s.agent()
    part = work(s.c, boss.caller, boss.id)
    given(s.c, boss.caller, part, s.agent(boss))
    return s.by(boss, outcome=part, reason="I do it myself.")
