"""Changes of repositories, and errands at remotes."""

from typing import Any

from remit.services.changes import errands, proposals
from remit.services.identity import as_system
from tests.change_stage import NEXT, add_repo, give, proposal
from tests.company import Run
from tests.crashing.call import Call
from tests.crashing.scene import Scene, changed, situation


def _author(s: Scene, **more: Any) -> tuple[Run, str]:
    repo, member = add_repo(s.c, s.name(), **more), s.agent()
    give(s.c, member, name=repo)
    return s.run(member), repo


def _proposed(s: Scene, **more: Any) -> tuple[Run, dict[str, Any]]:
    run, repo = _author(s, **more)
    given = proposal(name=repo)
    made = s.c.call(run.caller, proposals.propose, **given)
    return run, {**given, **made}


def _errand(s: Scene, change: str) -> str:
    ((found,),) = s.c.sql("SELECT id FROM change_errands WHERE change_id = ?", change)
    return str(found)


def _held(s: Scene) -> str:
    errand = _errand(s, _proposed(s)[1]["change"])
    s.c.call(as_system(), errands.claim, errand=errand, worker="w")
    return errand


@situation("changes.prepare")
def _(s: Scene) -> Call:
    run, repo = _author(s)
    return changed(s.by(run, name=repo, branch="fix"), keyed=False)


@situation("changes.propose")
def _(s: Scene) -> Call:
    run, repo = _author(s)
    return s.by(run, **proposal(name=repo))


@situation("changes.propose (another head)")
def _(s: Scene) -> Call:
    run, before = _proposed(s)
    return s.by(run, **proposal(name=before["name"], head=NEXT))


@situation("changes.comment")
def _(s: Scene) -> Call:
    return s.by_board(change=_proposed(s)[1]["change"], body="Why?", path="src/app.py", line=3)


@situation("errands.claim")
def _(s: Scene) -> Call:
    errand = _errand(s, _proposed(s)[1]["change"])
    return changed(s.by_remit(errand=errand, worker="w"), keyed=False)


@situation("errands.pushing")
def _(s: Scene) -> Call:
    return s.by_remit(errand=_held(s), epoch=1, head="b" * 40)


@situation("errands.published")
def _(s: Scene) -> Call:
    return s.by_remit(errand=_held(s), epoch=1, head="b" * 40)


@situation("errands.delivered")
def _(s: Scene) -> Call:
    return s.by_remit(errand=_held(s), epoch=1)


@situation("errands.failed")
def _(s: Scene) -> Call:
    return s.by_remit(errand=_held(s), epoch=1, why="nobody is there")


@situation("errands.failed (for good)")
def _(s: Scene) -> Call:
    return s.by_remit(errand=_held(s), epoch=1, why="nobody will be there", for_good=True)


@situation("errands.take_over")
def _(s: Scene) -> Call:
    return s.by_remit(errand=_held(s), epoch=1, alone=True)


@situation("errands.put_back")
def _(s: Scene) -> Call:
    return s.by_remit(errand=_held(s), epoch=1)


@situation("repos.remove (with an open change)")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name=_proposed(s)[1]["name"])
