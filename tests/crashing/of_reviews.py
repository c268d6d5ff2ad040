"""Judging changes, and taking them in."""

from typing import Any

from remit.services.changes import errands, proposals, reviews
from remit.services.identity import as_system
from tests.change_stage import BASE, HEAD, add_repo, give, proposal
from tests.crashing.call import Call
from tests.crashing.scene import Scene, situation


def _seen(s: Scene, **more: Any) -> dict[str, Any]:
    """A change that somebody looked at."""
    repo, member = add_repo(s.c, s.name(), **more), s.agent()
    give(s.c, member, name=repo)
    made = s.c.call(s.run(member).caller, proposals.propose, **proposal(name=repo))
    return {"change": made["change"], "head": HEAD, "base": BASE}


def _held(s: Scene) -> dict[str, Any]:
    """The errand of one that is to be taken in, claimed."""
    seen = _seen(s)
    ((publish,),) = s.c.sql("SELECT id FROM change_errands WHERE change_id = ?", seen["change"])
    s.c.call(as_system(), errands.claim, errand=publish, worker="w")
    s.c.call(as_system(), errands.delivered, errand=publish, epoch=1)
    s.c.call(s.c.board, reviews.merge, **seen)
    ((errand,),) = s.c.sql(
        "SELECT id FROM change_errands WHERE change_id = ? AND kind = 'merge'", seen["change"]
    )
    s.c.call(as_system(), errands.claim, errand=errand, worker="w")
    return {"errand": str(errand), "epoch": 1}


@situation("changes.push")
def _(s: Scene) -> Call:
    return s.by_board(**_seen(s, push="after_look"))


@situation("changes.approve")
def _(s: Scene) -> Call:
    return s.by_board(**_seen(s), note="Good.")


@situation("changes.return")
def _(s: Scene) -> Call:
    return s.by_board(**_seen(s), note="Not so.")


@situation("changes.decline")
def _(s: Scene) -> Call:
    return s.by_board(**_seen(s), note="Not wanted.")


@situation("changes.withdraw")
def _(s: Scene) -> Call:
    repo, member = add_repo(s.c, s.name()), s.agent()
    give(s.c, member, name=repo)
    run = s.run(member)
    made = s.c.call(run.caller, proposals.propose, **proposal(name=repo))
    return s.by(run, change=made["change"], note="Never mind.")


@situation("changes.merge")
def _(s: Scene) -> Call:
    return s.by_board(**_seen(s))


@situation("reviews.intend")
def _(s: Scene) -> Call:
    return s.by_remit(**_held(s), commit="d" * 40)


@situation("reviews.taken_in")
def _(s: Scene) -> Call:
    return s.by_remit(**_held(s), commit="d" * 40)


@situation("reviews.refused")
def _(s: Scene) -> Call:
    return s.by_remit(**_held(s), why="it disagrees", conflicts=True)
