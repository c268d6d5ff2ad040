"""What an instance is connected to, and what it does by itself."""

from typing import Any

from remit.services.connections import folders, lent_plugins, mcp_servers, repos
from remit.services.knowledge import files
from remit.services.rights import grants
from tests.company import Member, keyed
from tests.crashing.call import THEN, Call
from tests.crashing.scene import Scene, changed, situation


@situation("secrets.put")
def _(s: Scene) -> Call:
    """Another value for a secret that Remit keeps: the file of the former one goes."""
    name = s.name()
    s.c.wait(s.c.app.vault.put(s.c.board, company=s.c.id, name=name, value="the first value"))
    call = s.by_board(company=s.c.id, name=name, value="the second value")
    return changed(call, through="vault.put")


@situation("signing.make")
def _(s: Scene) -> Call:
    """Another key in place of the one that signs commits: the file of the former one goes."""
    s.c.wait(s.c.app.signing.make(s.c.board, company=s.c.id))
    return changed(s.by_board(company=s.c.id), through="signing.make")


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


@situation("mcp_servers.try_new")
def _(s: Scene) -> Call:
    call = s.by_board(company=s.c.id, name=s.name(), definition={"command": ["/bin/true"]})
    return changed(call, keyed=False)


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


@situation("repos.try_out")
def _(s: Scene) -> Call:
    asked = {"name": s.name(), "url": "https://example.invalid/c.git"}
    return changed(s.by_board(company=s.c.id, asked=asked), keyed=False, leaves=False)


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


@situation("folders.bind")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, agent=s.agent().id, path=f"/srv/{s.name()}")


@situation("folders.mount")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, path=f"/srv/{s.name()}", programs=["bin"])


@situation("folders.remove")
def _(s: Scene) -> Call:
    about = {"company": s.c.id, "path": f"/srv/{s.name()}"}
    return s.by_board(company=s.c.id, folder=s.c.call(s.c.board, folders.mount, **about)["id"])


@situation("folders.change")
def _(s: Scene) -> Call:
    about: dict[str, Any] = {"company": s.c.id, "agent": s.agent().id, "path": f"/srv/{s.name()}"}
    folder = s.c.call(s.c.board, folders.bind, **about)["id"]
    return s.by_board(company=s.c.id, folder=folder, instructions=False)


@situation("repos.set")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name=_repo(s), instructions=False)


@situation("repos.look_into")
def _(s: Scene) -> Call:
    return changed(s.by_board(company=s.c.id, name=_repo(s)), keyed=False)


#: A skill, in base64.
_LENT: dict[str, Any] = {
    "name": "team",
    "source": "/srv/site",
    "files": {"skills/a/SKILL.md": "QQ=="},
}


@situation("lent_plugins.lend")
def _(s: Scene) -> Call:
    return s.by_board(agent=s.agent().id, **_LENT)


@situation("lent_plugins.preview")
def _(s: Scene) -> Call:
    return changed(s.by_board(agent=s.agent().id, **_LENT), keyed=False, leaves=False)


@situation("lent_plugins.take_back")
def _(s: Scene) -> Call:
    agent = s.agent()
    s.c.call(s.c.board, lent_plugins.lend, agent=agent.id, **_LENT)
    return s.by_board(agent=agent.id, plugin="team")


@situation("maintenance.forget_answers")
def _(s: Scene) -> Call:
    s.c.call(keyed(s.c.board, "long ago"), files.describe, **_described(s))
    return changed(s.by_remit(before=THEN), keyed=False)


def _described(s: Scene) -> dict[str, Any]:
    return {"file": s.c.file(s.c.board)["id"], "description": "other"}
