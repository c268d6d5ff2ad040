"""Forges: requests for changes, looks at them, and issues."""

from typing import Any

from remit.services.changes import errands, proposals, requests, reviews, watches
from remit.services.identity import as_system
from tests.change_stage import HEAD, add_repo, give, proposal
from tests.company import Run
from tests.crashing.call import Call
from tests.crashing.scene import Scene, changed, situation

FORGE = {"forge": "github", "secret": "forge-token", "people": "lead", "label": "remit"}


def _repo(s: Scene, name: str) -> str:
    ((found,),) = s.c.sql("SELECT id FROM repos WHERE name = ?", name)
    return str(found)


def _proposed(s: Scene) -> tuple[Run, str, str, dict[str, Any]]:
    """A change to a repository with a forge, and its errand, claimed."""
    name, member = add_repo(s.c, s.name(), **FORGE), s.agent()
    give(s.c, member, name=name)
    run = s.run(member)
    made = s.c.call(run.caller, proposals.propose, **proposal(name=name))
    asked = "SELECT id FROM change_errands WHERE change_id = ?"
    ((errand,),) = s.c.sql(asked, made["change"])
    s.c.call(as_system(), errands.claim, errand=errand, worker="w")
    return run, _repo(s, name), made["change"], {"errand": errand, "epoch": 1}


def _requested(s: Scene) -> tuple[Run, str, str]:
    """A change with a request; somebody looks at its forge."""
    run, repo, change, errand = _proposed(s)
    url = "https://example.invalid/7"
    s.c.call(as_system(), requests.opened, **errand, number=7, url=url)
    s.c.call(as_system(), watches.claim, repo=repo, worker="w")
    return run, repo, change


def _looked(s: Scene) -> dict[str, Any]:
    return {"repo": _requested(s)[1], "epoch": 1}


def _issue(s: Scene, looked: dict[str, Any]) -> dict[str, Any]:
    texts = {"title": "It is broken", "body": "Mend it.", "author": "nobody"}
    about = {"number": 9, "url": "https://example.invalid/9", "labelled_by": "lead"}
    return {**looked, **about, **texts}


@situation("repos.set_forge")
def _(s: Scene) -> Call:
    more = {"forge": "gitea", "api_secret": "forge-token"}
    return s.by_board(company=s.c.id, name=add_repo(s.c, s.name(), **FORGE), **more)


@situation("requests.opened")
def _(s: Scene) -> Call:
    *_, errand = _proposed(s)
    return s.by_remit(**errand, number=7, url="https://example.invalid/7")


@situation("requests.observe")
def _(s: Scene) -> Call:
    _, repo, change = _requested(s)
    said = {"id": "comment-1", "by": "lead", "heard": True, "body": "Why?", "verdict": "comment"}
    nobody = {"id": "comment-2", "by": "nobody", "heard": False, "body": "Ha!"}
    place = {"commit": HEAD, "path": "src/app.py", "line": 3, "old": False}
    request = {"state": "open", "head": HEAD, "mergeable": False}
    check = {
        "id": "run-1",
        "name": "unit",
        "state": "failed",
        "url": "",
        "summary": "",
        "tail": "x",
    }
    told = {"said": [{**said, **place}, {**said, **place, **nobody}], "checks": [check]}
    about = {"repo": repo, "epoch": 1, "change": change, "request": request}
    return changed(s.by_remit(**about, **told), keyed=False)


@situation("requests.observe (merged)")
def _(s: Scene) -> Call:
    _, repo, change = _requested(s)
    request = {"state": "merged", "head": HEAD, "mergeable": None, "merged_by": "lead"}
    request["merged_commit"] = "d" * 40
    about = {"repo": repo, "epoch": 1, "change": change, "said": [], "checks": None}
    return changed(s.by_remit(**about, request=request), keyed=False)


@situation("requests.said")
def _(s: Scene) -> Call:
    run, repo, change = _requested(s)
    made = s.c.call(run.caller, reviews.comment, change=change, body="It is symmetric.")
    return s.by_remit(repo=repo, epoch=1, comment=made["id"], outside="comment-3")


@situation("requests.closed")
def _(s: Scene) -> Call:
    _, repo, change = _requested(s)
    return s.by_remit(repo=repo, epoch=1, change=change)


@situation("watches.claim")
def _(s: Scene) -> Call:
    repo = _repo(s, add_repo(s.c, s.name(), **FORGE))
    return changed(s.by_remit(repo=repo, worker="w"), keyed=False)


@situation("watches.renew")
def _(s: Scene) -> Call:
    held = [(_looked(s)["repo"], 1)]
    return changed(s.by_remit(held=held, lease=60_000_000), keyed=False)


@situation("watches.ended")
def _(s: Scene) -> Call:
    return changed(s.by_remit(**_looked(s), cursor={"tags": {}}, busy=True), keyed=False)


@situation("watches.free")
def _(s: Scene) -> Call:
    _looked(s)
    return changed(s.by_remit(), keyed=False)


@situation("watches.ring")
def _(s: Scene) -> Call:
    return changed(s.by_remit(repo=_looked(s)["repo"]), keyed=False)


@situation("issues.take")
def _(s: Scene) -> Call:
    return changed(s.by_remit(**_issue(s, _looked(s))), keyed=False)


@situation("issues.told")
def _(s: Scene) -> Call:
    looked = _looked(s)
    s.c.call(as_system(), requests.take_issue, **_issue(s, looked))
    ((issue,),) = s.c.sql("SELECT id FROM forge_issues WHERE repo_id = ?", looked["repo"])
    return s.by_remit(**looked, issue=issue, outside="comment-4")
