"""Channels: bindings, what goes out through them, and what comes in."""

from remit.ids import token_digest
from remit.services.connections import outbox
from remit.services.identity import as_system
from tests.channel_stage import bind
from tests.company import Member
from tests.crashing.call import Call
from tests.crashing.scene import Scene, changed, situation
from tests.mailing import send

HOOK = "https://chat.example.org/in"


def _bound(s: Scene) -> Member:
    member = s.agent()
    bind(s.c, member, HOOK)
    return member


def _queued(s: Scene) -> str:
    return str(send(s.c, _bound(s).caller, "channel:webhook:room-7", "Hello.")["id"])


def _held(s: Scene) -> str:
    message = _queued(s)
    s.c.call(as_system(), outbox.claim, message=message, worker="w")
    return message


@situation("bindings.add")
def _(s: Scene) -> Call:
    call = s.by_board(company=s.c.id, agent=s.agent().id, kind="webhook", config={"url": HOOK})
    return changed(call, shown_once=("token",))


@situation("bindings.preview")
def _(s: Scene) -> Call:
    call = s.by_board(company=s.c.id, agent=s.agent().id, kind="webhook", config={"url": HOOK})
    return changed(call, keyed=False, leaves=False)


@situation("bindings.try_out")
def _(s: Scene) -> Call:
    found = bind(s.c, s.agent(), HOOK)
    return s.by_board(company=s.c.id, binding=found["id"])


@situation("bindings.remove")
def _(s: Scene) -> Call:
    """What was in line goes no more."""
    found = bind(s.c, s.agent(), HOOK)
    return s.by_board(company=s.c.id, binding=found["id"])


@situation("mail.send (to a channel)")
def _(s: Scene) -> Call:
    call = s.by(_bound(s), to="channel:webhook:room-7", body="Hello.")
    return changed(call, through="library.send")


@situation("outbox.claim")
def _(s: Scene) -> Call:
    return changed(s.by_remit(message=_queued(s), worker="w"), keyed=False)


@situation("outbox.renew")
def _(s: Scene) -> Call:
    return changed(s.by_remit(held=[(_held(s), 1)], lease=60_000_000), keyed=False)


@situation("outbox.delivered")
def _(s: Scene) -> Call:
    return s.by_remit(message=_held(s), epoch=1)


@situation("outbox.failed")
def _(s: Scene) -> Call:
    return s.by_remit(message=_held(s), epoch=1, why="nobody is there")


@situation("outbox.failed (for good)")
def _(s: Scene) -> Call:
    return s.by_remit(message=_held(s), epoch=1, why="nobody will be there", for_good=True)


@situation("outbox.take_over")
def _(s: Scene) -> Call:
    return s.by_remit(message=_held(s), epoch=1, alone=True)


@situation("outbox.put_back")
def _(s: Scene) -> Call:
    return s.by_remit(message=_held(s), epoch=1)


@situation("channels.receive")
def _(s: Scene) -> Call:
    """A repeat from outside has the id of the first, which is all it needs to come once."""
    digest = token_digest(bind(s.c, s.agent(), HOOK)["token"])
    said = {"outside": "m-1", "conversation": "room-7", "body": "Hello?"}
    return changed(s.by_remit(kind="webhook", digest=digest, **said), keyed=False)
