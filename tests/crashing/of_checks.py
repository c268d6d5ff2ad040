"""Checks of changes: named, in line, run."""

from typing import Any

from remit.services.changes import checking, proposals
from remit.services.connections import repo_checks
from remit.services.identity import as_system
from tests.change_stage import add_repo, give, proposal
from tests.crashing.call import Call
from tests.crashing.scene import Scene, changed, situation


def _named(s: Scene) -> dict[str, Any]:
    about: dict[str, Any] = {"company": s.c.id, "repo": add_repo(s.c, s.name()), "check": "test"}
    s.c.call(s.c.board, repo_checks.set_check, **about, command="make test", required=True)
    return about


def _proposed(s: Scene) -> str:
    repo, member = _named(s)["repo"], s.agent()
    give(s.c, member, name=repo)
    made = s.c.call(s.run(member).caller, proposals.propose, **proposal(name=repo))
    return str(made["change"])


def _waiting(s: Scene) -> str:
    ((found,),) = s.c.sql("SELECT id FROM change_checks WHERE change_id = ?", _proposed(s))
    return str(found)


def _held(s: Scene) -> dict[str, Any]:
    check = _waiting(s)
    s.c.call(as_system(), checking.claim, check=check, worker="w")
    return {"check": check, "epoch": 1}


@situation("repos.set_check")
def _(s: Scene) -> Call:
    about = {"repo": add_repo(s.c, s.name()), "check": "test", "command": "make test"}
    return s.by_board(company=s.c.id, **about)


@situation("repos.remove_check")
def _(s: Scene) -> Call:
    return s.by_board(**_named(s))


@situation("changes.check")
def _(s: Scene) -> Call:
    return s.by_board(change=_proposed(s))


@situation("checks.claim")
def _(s: Scene) -> Call:
    return changed(s.by_remit(check=_waiting(s), worker="w"), keyed=False)


@situation("checks.renew")
def _(s: Scene) -> Call:
    held = _held(s)
    return changed(s.by_remit(held=[(held["check"], 1)]), keyed=False)


@situation("checks.delivered")
def _(s: Scene) -> Call:
    return s.by_remit(**_held(s), code=0, log="fine\n")


@situation("checks.delivered (it failed)")
def _(s: Scene) -> Call:
    return s.by_remit(**_held(s), code=1, log="not fine\n")


@situation("checks.failed")
def _(s: Scene) -> Call:
    return s.by_remit(**_held(s), why="there is no sandbox")


@situation("checks.failed (for good)")
def _(s: Scene) -> Call:
    return s.by_remit(**_held(s), why="there is no sandbox", for_good=True)


@situation("checks.take_over")
def _(s: Scene) -> Call:
    return s.by_remit(**_held(s), alone=True)


@situation("checks.put_back")
def _(s: Scene) -> Call:
    return s.by_remit(**_held(s))
