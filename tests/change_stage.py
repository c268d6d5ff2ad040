"""Changes without git: what our side says about a proposal is made up here."""

from typing import Any

from remit.app import App
from remit.ids import Ids
from remit.runtime.runs.lifecycle import begin, finish
from remit.services.changes import errands, proposals
from remit.services.connections import repos
from remit.services.identity import Caller, as_system
from remit.services.rights import grants
from remit.store.blob_store.blobs import EMPTY
from tests.company import Answer, Company, Member, Run

BASE, HEAD, NEXT = "a" * 40, "b" * 40, "c" * 40
STORED = {"sha256": EMPTY, "size": 0, "is_text": True, "links": []}


def add_repo(company: Company, name: str = "site", **more: Any) -> str:
    url = "https://example.invalid/a/site.git"
    company.call(company.board, repos.add, company=company.id, name=name, url=url, **more)
    return name


def give(
    company: Company, to: Member | Run, level: str = "propose", name: str = "site", **more: Any
) -> Answer:
    holder = to.agent_id if isinstance(to, Run) else to.id
    wish: dict[str, Any] = {"to": holder, "resource": f"repo:{name}", "level": level, **more}
    return company.call(company.board, grants.give, company=company.id, **wish)


def proposal(**more: Any) -> dict[str, Any]:
    paths = more.pop("paths", ["src/app.py"])
    return {
        "name": "site",
        "branch": "fix",
        "title": "Mend it",
        "target": "main",
        "base": BASE,
        "head": HEAD,
        "new_id": Ids().new(),
        "new_stored": STORED,
        "new_facts": {"paths": paths},
        **more,
    }


def propose(company: Company, by: Run, **more: Any) -> Answer:
    return company.call(by.caller, proposals.propose, **proposal(**more))


def author(company: Company, name: str = "author", **more: Any) -> Run:
    """An agent at work that may propose."""
    member = company.agent(name)
    give(company, member, **more)
    return company.run(member)


async def proposed(app: App, agent: str, repo: str) -> str:
    """A change of an agent that holds enough, made in a run that is over."""
    live = await begin(app.gate, app.ids, app.settings.workspaces, agent)
    change = await app.gate(Caller(live.token), proposals.propose, **proposal(name=repo))
    await finish(app.gate, live)
    return str(change["change"])


def claimed(company: Company) -> dict[str, Any]:
    """The next errand, held."""
    ((errand, _), *_) = company.call(as_system(), errands.ready)
    claim = company.call(as_system(), errands.claim, errand=errand, worker="w")
    assert claim is not None
    return dict(claim)
