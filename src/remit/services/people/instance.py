"""The instance itself: its first start, its version, and what operators do: inspect the machine,
manage backups.

None of this but the first start belongs to a company; it is recorded in the first company of the
operator. The first start creates a user, a company, its root agent and root outcome.
"""

import json
from typing import cast

from remit.authority import Action
from remit.errors import Conflict, NotFound
from remit.ids import TokenId, TokenKind, UserId
from remit.model.organisation.decision import Decision, Effect
from remit.model.organisation.principal import ActorKind, Principal, Token
from remit.services import lookup, shapes
from remit.services.command import FOR_REMIT, Context, command, query
from remit.services.people import companies, token_record, users
from remit.services.verbs import Added
from remit.store.organisation import people
from remit.store.record import events

FIRST_USER = "board"
FIRST_COMPANY = "My company"
#: The subject of the events that say which version of Remit was started.
_PROGRAM = "program:remit"
_BY_OWNER = Decision(Effect.ALLOW, "system", "The owner of the home folder.", "rule:system")


@query("instance.may_operate")
def may_operate(ctx: Context, *, what: str) -> None:
    """Check that the caller is an operator of this instance, before the machine is inspected."""
    _require(ctx, what)


@command("instance.begin_backup")
def begin_backup(ctx: Context, *, new_name: str) -> shapes.NamedBackupShape:
    """Record that an operator has a backup written, under the name `new_name`."""
    _require(ctx, f"backup:{new_name}")
    ctx.record("backup.create", f"backup:{new_name}", {})
    return {"name": new_name}


@command("instance.take_backup")
def take_backup(ctx: Context, *, name: str) -> shapes.NamedBackupShape:
    """Record that an operator downloads a backup."""
    _require(ctx, f"backup:{name}")
    ctx.record("backup.download", f"backup:{name}", {})
    return {"name": name}


@command("instance.remove_backup")
def remove_backup(ctx: Context, *, name: str) -> shapes.RemovedBackupShape:
    """Record that an operator deletes a backup."""
    _require(ctx, f"backup:{name}")
    ctx.record("backup.remove", f"backup:{name}", {})
    return {"name": name, "removed": True}


def _require(ctx: Context, on: str) -> None:
    if ctx.actor.kind is not ActorKind.USER:
        raise NotFound("There is nothing here with that id.")
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=1)
    ctx.enter(lookup.only(mine, "company").id)
    ctx.require(Action.INSTANCE_OPERATE, on=on)


# ── the first start ─────────────────────────────────────────────────────────────────────────────


@query("bootstrap.is_empty")
def is_empty(ctx: Context) -> bool:
    """Return whether the database has no user, so that it was never used."""
    return ctx.tx.one(people.ANY_USER) is None


@command("bootstrap.first_start", FOR_REMIT, Added("machine", ""), Added("version", ""))
def first_start(
    ctx: Context, *, token: str, adapter_type: str, machine: str = "", version: str = ""
) -> shapes.FirstStartShape:
    """Set up an empty database with this version of Remit; the token is that of the first user, who
    is the board."""
    board = users.new_user(ctx, FIRST_USER, operator=True)
    # From here on the first user acts, so that the record leads back to a person.
    ctx.actor = Principal(ActorKind.USER, board.id, board.name, operator=True)
    company = companies.create.body(ctx, name=FIRST_COMPANY, adapter_type=adapter_type)
    _store(ctx, board.id, token, _label(machine))
    if version:
        _record_version(ctx, None, version)
    return {"company": cast(shapes.NewCompanyShape, company), "user": board.name}


@command("bootstrap.renew_board_token", FOR_REMIT, Added("machine", ""))
def renew_board_token(ctx: Context, *, token: str, machine: str = "") -> shapes.LetInShape:
    """Store a new board token for the first operator, as the owner of the instance's home folder
    on a machine."""
    # An instance has an operator from its first start.
    user = ctx.tx.existing(people.FIRST_OPERATOR)
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=user.id, after="", limit=1)
    ctx.enter(mine[0].id)
    _store(ctx, user.id, token, _label(machine), _BY_OWNER)
    return {"user": user.name}


def _label(machine: str) -> str:
    """Return the label of a board token: each home has one, and lists tell them apart by it."""
    return f"board.token on {machine}" if machine else "board.token"


def _store(ctx: Context, user: str, secret: str, label: str, by: Decision | None = None) -> None:
    token = Token(TokenId(ctx.ids.new()), TokenKind.USER, label, ctx.now, user_id=UserId(user))
    token_record.add(ctx, token, secret, by)


# ── the version ─────────────────────────────────────────────────────────────────────────────────


@query("instance.is_new_version", FOR_REMIT)
def is_new_version(ctx: Context, *, version: str) -> bool:
    """Return whether the record says that another version was started last, or none."""
    recording = _recording(ctx)
    return recording is not None and _last_version(ctx, recording) != version


@command("instance.start_version", FOR_REMIT)
def start_version(ctx: Context, *, version: str) -> shapes.StartedVersionShape:
    """Record that the instance is started with another version than last time."""
    recording = _recording(ctx)
    if recording is None:
        raise NotFound("No company of an operator could record this.")
    ctx.enter(recording)
    before = _last_version(ctx, recording)
    if before == version:
        raise Conflict("Another process has recorded this version.")
    _record_version(ctx, before, version)
    return {"was": before, "now": version}


def _recording(ctx: Context) -> str | None:
    """Return the company that records what concerns the instance; None if no operator has one."""
    operator = ctx.tx.one(people.FIRST_OPERATOR)
    if operator is None:
        return None
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=operator.id, after="", limit=1)
    return mine[0].id if mine else None


def _record_version(ctx: Context, before: str | None, version: str) -> None:
    ctx.record("version.start", _PROGRAM, {"was": before, "now": version}, _BY_OWNER)


def _last_version(ctx: Context, company: str) -> str | None:
    last = ctx.tx.one(events.LAST_OF, company=company, resource=_PROGRAM, action="version.start")
    return str(json.loads(last.details)["now"]) if last else None
