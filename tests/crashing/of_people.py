"""The company, its people, its rights and its tree."""

from typing import Any

from remit.clock import HOUR
from remit.services.acceptance import acceptance
from remit.services.identity import Caller, as_system
from remit.services.organisation import reorganise
from remit.services.people import companies, sessions, tokens, users
from remit.services.spending import limits
from tests.company import Answer
from tests.crashing.call import THEN, Call
from tests.crashing.scene import Scene, changed, situation
from tests.organisation import work


@situation("bootstrap.first_start")
def _(s: Scene) -> Call:
    return Call("bootstrap.first_start", through="app.first_start", keyed=False, home="nothing")


@situation("bootstrap.renew_board_token")
def _(s: Scene) -> Call:
    return Call("bootstrap.renew_board_token", through="app.first_start", keyed=False, home="lost")


@situation("instance.start_version")
def _(s: Scene) -> Call:
    return Call("instance.start_version", through="app.first_start", keyed=False, home="outdated")


@situation("roots.restore")
def _(s: Scene) -> Call:
    return Call("roots.restore", through="app.first_start", keyed=False, home="rootless")


@situation("companies.create")
def _(s: Scene) -> Call:
    return s.by_board(name=s.name())


@situation("companies.change")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name="Another name", messaging="team")


@situation("companies.change (a limit)")
def _(s: Scene) -> Call:
    """It was reached; whoever waited for it is looked at anew."""
    s.c.call(as_system(), limits.hold, agent=s.insatiable().id)
    return s.by_board(company=s.c.id, limits={"agentTokensPerDay": 40_000_000})


@situation("exporting.begin")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id)


@situation("importing.create")
def _(s: Scene) -> Call:
    return changed(s.by_board(name="From elsewhere"), through="archive.import_")


@situation("acceptance.accept")
def _(s: Scene) -> Call:
    """A company of its own, halted as an import is."""
    made = s.c.call(s.c.board, companies.create, name=s.name(), adapter_type="scripted")
    s.c.sql(
        "INSERT INTO halts (id, company_id, made_by_user_id, note, created_at, left_out)"
        " SELECT ?, m.company_id, m.user_id, '', 0, '[]' FROM memberships m"
        " WHERE m.company_id = ?",
        *(s.c.app.ids.new(), made["id"]),
    )
    shown = s.c.call(s.c.board, acceptance.show, company=made["id"])
    assert shown["awaits"]
    return s.by_board(company=made["id"], digest=shown["digest"])


@situation("machine_access.end")
def _(s: Scene) -> Call:
    """An agent passed it on, as older versions allowed."""
    boss = s.agent()
    report = s.agent(boss)
    for who in (boss, report):
        s.give(who, "full_access", level="use")
    s.c.sql(
        "UPDATE grants SET granted_by_agent = ?, granted_by_user = NULL, parent_id ="
        " (SELECT id FROM grants WHERE holder_id = ? AND resource_id = 'full_access')"
        " WHERE holder_id = ? AND resource_id = 'full_access'",
        *(boss.id, boss.id, report.id),
    )
    return s.by_remit(company=s.c.id)


@situation("users.add")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, name=s.name(), role="observer")


@situation("users.invite")
def _(s: Scene) -> Call:
    return changed(s.by_board(company=s.c.id, name=s.name()), shown_once=("token",))


def _person(s: Scene) -> str:
    name = s.name()
    s.c.call(s.c.board, users.add, company=s.c.id, name=name)
    return name


@situation("users.remove")
def _(s: Scene) -> Call:
    person = _person(s)
    s.c.token_of(person)
    return s.by_board(company=s.c.id, user=person)


@situation("users.preview_removal")
def _(s: Scene) -> Call:
    person = _person(s)
    s.c.token_of(person)
    return changed(s.by_board(company=s.c.id, user=person), keyed=False, leaves=False)


@situation("users.create_token")
def _(s: Scene) -> Call:
    call = s.by_board(company=s.c.id, user=_person(s), label="phone", expires_at=None)
    return changed(call, shown_once=("token",))


@situation("users.revoke_token")
def _(s: Scene) -> Call:
    person = _person(s)
    made = s.c.call(s.c.board, users.create_token, company=s.c.id, user=person, expires_at=None)
    return s.by_board(company=s.c.id, token=made["id"])


@situation("users.create_link")
def _(s: Scene) -> Call:
    return changed(s.by_board(company=s.c.id, user=_person(s)), shown_once=("token",))


@situation("tokens.create")
def _(s: Scene) -> Call:
    return changed(s.by(s.c.token_of(_person(s)), label="phone"), shown_once=("token",))


@situation("tokens.revoke")
def _(s: Scene) -> Call:
    person = s.c.token_of(_person(s))
    return s.by(person, token=s.c.call(person, tokens.create)["id"])


@situation("sessions.open")
def _(s: Scene) -> Call:
    return changed(s.by(s.c.token_of(_person(s))), shown_once=("token",))


@situation("instance.begin_backup")
def _(s: Scene) -> Call:
    return s.by_board(new_name="remit-1.backup")


@situation("instance.take_backup")
def _(s: Scene) -> Call:
    return s.by_board(name="remit-1.backup")


@situation("instance.remove_backup")
def _(s: Scene) -> Call:
    return s.by_board(name="remit-1.backup")


@situation("sessions.create_link")
def _(s: Scene) -> Call:
    return changed(s.by_board(), shown_once=("token",))


def _signed_in(s: Scene) -> tuple[Caller, Answer]:
    """A person of one's own, and a session of theirs."""
    person = s.c.token_of(_person(s))
    return person, _session(s, person)


def _session(s: Scene, person: Caller) -> Answer:
    link = s.c.call(person, sessions.create_link)
    return s.c.call(as_system(), sessions.redeem, link=link["token"])


@situation("sessions.redeem")
def _(s: Scene) -> Call:
    link = s.c.call(s.c.token_of(_person(s)), sessions.create_link)
    s.c.sql("UPDATE tokens SET expires_at = ? WHERE id = ?", THEN + HOUR, link["id"])
    return changed(s.by_remit(link=link["token"]), shown_once=("token",))


@situation("sessions.end")
def _(s: Scene) -> Call:
    _, session = _signed_in(s)
    call = s.by(Caller(session["token"]), session=session["token"])
    return changed(call, refused="unauthenticated")


@situation("sessions.end_one")
def _(s: Scene) -> Call:
    person, session = _signed_in(s)
    return s.by(person, session=session["id"])


@situation("sessions.end_others")
def _(s: Scene) -> Call:
    person, session = _signed_in(s)
    _session(s, person)
    return s.by(Caller(session["token"]))


@situation("grants.give")
def _(s: Scene) -> Call:
    file = s.c.file(s.c.board)
    resource = f"kb_file:{file['id']}"
    return s.by_board(company=s.c.id, to=s.agent().id, resource=resource, level="write")


@situation("grants.revoke")
def _(s: Scene) -> Call:
    """With what was passed on from it."""
    boss = s.agent()
    file = s.c.file(s.c.board)
    made = s.c.give(s.c.board, boss, file, "write")
    s.c.give(boss.caller, s.agent(boss), file, "read")
    return s.by_board(grant=made["id"])


@situation("reorganise.reorganise")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, operations=_operations(s))


def _operations(s: Scene) -> list[dict[str, Any]]:
    boss, moved, layer = s.agent(), s.agent(), s.agent()
    work(s.c, layer.caller, layer.id)
    return [
        {"op": "move", "agent": moved.name, "to": boss.name},
        {"op": "insert_layer", "agents": [moved.name], "name": s.name()},
        {"op": "remove_layer", "agent": layer.name},
    ]


@situation("reorganise.preview")
def _(s: Scene) -> Call:
    call = s.by_board(company=s.c.id, operations=_operations(s))
    return changed(call, keyed=False, leaves=False)


@situation("reorganise.undo")
def _(s: Scene) -> Call:
    return s.by_board(company=s.c.id, event=_reorganised(s))


def _reorganised(s: Scene) -> str:
    move = {"op": "move", "agent": s.agent().name, "to": s.agent().name}
    made = s.c.call(s.c.board, reorganise.reorganise, company=s.c.id, operations=[move])
    return str(made["event_id"])


@situation("reorganise.preview_undo")
def _(s: Scene) -> Call:
    return changed(s.by_board(company=s.c.id, event=_reorganised(s)), keyed=False, leaves=False)
