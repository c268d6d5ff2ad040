"""Capabilities: give, revoke, list, and which were never used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import Any

from remit.authority import Action, Wish, attenuate, covers, excessive, holding
from remit.clock import Micros, from_iso
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import AgentId, CompanyId, GrantId, OutcomeId, UserId, normalise
from remit.model.agent import Agent, AgentStatus
from remit.model.decision import Decision
from remit.model.file import File, FileKind
from remit.model.grant import (
    FULL_ACCESS,
    IN_BACKGROUND,
    Grant,
    Level,
    Mode,
    Resource,
    ResourceKind,
    kb_file,
    parse_level,
    parse_mode,
    parse_resource,
)
from remit.model.outcome import Outcome, OutcomeKind, OutcomeStatus
from remit.model.principal import ActorKind
from remit.services import lookup, views
from remit.services.command import Answer, Context, command, query
from remit.services.derived import rights as rights_by_rule
from remit.store import agents as agent_statements
from remit.store import grants as statements
from remit.store import outcomes as outcome_statements


@command("grants.give")
def give(
    ctx: Context,
    *,
    company: str | None,
    to: str,
    resource: object,
    level: object,
    mode: object = "allow",
    scope: str | None = None,
    expires_at: object = None,
) -> Answer:
    """Pass on a capability, or, as the board, give one."""
    lookup.company_of_caller(ctx, company)
    receiver = lookup.agent(ctx, to)
    wish = {
        "resource": resource,
        "level": level,
        "mode": mode,
        "scope": scope,
        "expires_at": expires_at,
    }
    return views.grant(give_to(ctx, receiver, wish))


@dataclass(frozen=True, slots=True)
class Weighed:
    """A grant that may be given, and on what that rests."""

    resource: Resource
    level: Level
    mode: Mode
    expires_at: Micros | None
    parent: Grant | None
    scope: OutcomeId
    decision: Decision


def weigh(ctx: Context, receiver: Agent, wish: Mapping[str, Any]) -> Weighed:
    """Whether the caller may give this, as it was asked for; ends the call otherwise.

    An agent can only narrow what it holds; the board can give.
    """
    resource = _resource(ctx, wish.get("resource"))
    level = parse_level(wish.get("level"), resource.kind)
    mode = parse_mode(wish.get("mode") or "allow")
    expires_at = expiry(wish.get("expires_at"))
    if receiver.status is AgentStatus.TERMINATED:
        raise Conflict(f"{receiver.name} is terminated.", "Choose an agent that can act.")
    decision = ctx.require(
        Action.GRANT_GIVE,
        resource,
        on=str(resource),
        home=receiver.id,
        target_boss=receiver.boss_id,
        for_people=_is_whole_machine(resource),
    )
    parent: Grant | None = None
    if ctx.actor.kind is ActorKind.AGENT:
        if mode is not Mode.ALLOW:
            raise BadInput("Only the board sets a mode.", "Leave the mode out.")
        source = attenuate(ctx.held(ctx.actor.id, resource), Wish(level, expires_at), ctx.now)
        decision = ctx.accept(Action.GRANT_GIVE, str(resource), source.decision)
        parent, mode, expires_at = source.parent, source.mode, source.expires_at
        assert parent is not None
    else:
        _check_reach(ctx, resource)
        if expires_at is not None and expires_at <= ctx.now:
            raise BadInput("The expiry lies in the past.", "Choose a later time, or none.")
    scope = _scope(ctx, receiver, wish.get("scope"))
    return Weighed(resource, level, mode, expires_at, parent, scope, decision)


def give_to(ctx: Context, receiver: Agent, wish: Mapping[str, Any]) -> Grant:
    """One grant to one agent."""
    asked = weigh(ctx, receiver, wish)
    if receiver.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(
            f"{receiver.name} awaits approval.", "Ask for the grant with the hire, or afterwards."
        )
    grant = _insert(
        ctx,
        receiver.id,
        asked.resource,
        asked.level,
        asked.mode,
        scope=asked.scope,
        parent=asked.parent,
        expires_at=asked.expires_at,
        by_user=ctx.actor.user_id,
    )
    if asked.parent is not None:
        ctx.tx.run(statements.MARK_USED, grant=asked.parent.id, now=ctx.now)
    ctx.record("grant.give", f"grant:{grant.id}", _details(grant), asked.decision)
    if asked.mode is not Mode.ALLOW:
        _take_back_excess(ctx, receiver.id, asked.resource)
    if grant.kind is ResourceKind.MCP_SERVER:
        _resting_on_mail("toolset").given(ctx, grant)
    _resting_on_mail("capability_requests").met(ctx, receiver)
    return grant


def _resting_on_mail(service: str) -> ModuleType:
    """Whoever is at work, or waits, is told by mail, and mail rests on grants."""
    return import_module(f"remit.services.{service}")


def _is_whole_machine(resource: Resource) -> bool:
    return resource == Resource(ResourceKind.ACTION, FULL_ACCESS)


def revoke_actions(ctx: Context, holder: Agent) -> None:
    """Take back the rights that are not about one thing, before a level gives others."""
    for grant in ctx.tx.all(
        statements.HELD_BY, holder=holder.id, after="", limit=1000, now=ctx.now
    ):
        if grant.kind is ResourceKind.ACTION:
            gone = ctx.tx.all(statements.REVOKE_WITH_DERIVED, grant=grant.id, now=ctx.now)
            ctx.record(
                "grant.revoke", f"grant:{grant.id}", {**_details(grant), "revoked": sorted(gone)}
            )


def revoke_mode(ctx: Context, holder: Agent, resource: Resource, mode: Mode) -> bool:
    """Take back what an agent holds on one thing in one mode; answers whether it held that."""
    found = [one for one in ctx.held(holder.id, resource) if one.mode is mode and one.live(ctx.now)]
    for grant in found:
        gone = ctx.tx.all(statements.REVOKE_WITH_DERIVED, grant=grant.id, now=ctx.now)
        ctx.record(
            "grant.revoke", f"grant:{grant.id}", {**_details(grant), "revoked": sorted(gone)}
        )
    return bool(found)


def give_by_rule(ctx: Context, holder: AgentId, file_id: str, level: Level) -> Grant:
    """What nobody gave: who makes a file may write it, and may pass that on."""
    return _insert(ctx, holder, kb_file(file_id), level, Mode.ALLOW)


def share(ctx: Context, receiver: AgentId, file: File, *, still_held: bool = True) -> Grant | None:
    """Let somebody read what was sent to them; nothing when they can read it already.

    The sender may read it: that was decided when it sent the message. What it could read by rule,
    such as an outcome, rests on nothing it holds. Unless it is known to be `still_held`, what the
    sender lost before the message arrived is not passed on.
    """
    resource = kb_file(file.id)
    if file.kind is FileKind.OUTCOME:
        resource = Resource(ResourceKind.OUTCOME, file.id)
    has = holding(ctx.held(receiver, resource), Level.READ, ctx.now)
    if has.allowed or has.reason == "denied_by_grant":
        return None
    if file.kind is not FileKind.FILE and receiver in ctx.place(file.home_agent_id):
        return None
    parent = None
    expires_at = None
    if ctx.actor.agent_id is not None and file.kind is FileKind.FILE:
        source = attenuate(ctx.held(ctx.actor.agent_id, resource), Wish(Level.READ), ctx.now)
        if not still_held and not (source.decision.allowed and source.mode is Mode.ALLOW):
            return None
        ctx.accept(Action.GRANT_GIVE, str(resource), source.decision)
        parent, expires_at = source.parent, source.expires_at
        if source.mode is not Mode.ALLOW:
            raise Conflict(
                "Each use of that file needs an approval, so it cannot be sent.",
                "Ask the board to grant it to the receiver.",
            )
    grant = _insert(
        ctx,
        receiver,
        resource,
        Level.READ,
        Mode.ALLOW,
        parent=parent,
        expires_at=expires_at,
        by_user=ctx.actor.user_id,
    )
    ctx.record("grant.give", f"grant:{grant.id}", {**_details(grant), "by_mail": True})
    return grant


@command("grants.revoke")
def revoke(ctx: Context, *, grant: str, company: str | None = None) -> Answer:
    """Take a grant back, with everything that was passed on from it."""
    found = _grant(ctx, grant, company)
    # What people put on an agent to restrain it is not for another agent to lift.
    for_people = found.mode is not Mode.ALLOW or _is_whole_machine(found.resource)
    ctx.require(
        Action.GRANT_REVOKE,
        on=f"grant:{found.id}",
        home=found.holder_id,
        grant=found,
        for_people=for_people,
    )
    if found.revoked_at is not None:
        raise Conflict("The grant was revoked already.")
    gone = ctx.tx.all(statements.REVOKE_WITH_DERIVED, grant=found.id, now=ctx.now)
    ctx.record("grant.revoke", f"grant:{found.id}", {**_details(found), "revoked": sorted(gone)})
    if found.kind is ResourceKind.MCP_SERVER:
        _resting_on_mail("toolset").taken(ctx, gone)
    return {"id": found.id, "revoked": sorted(gone)}


@query("grants.listing")
def listing(
    ctx: Context,
    *,
    company: str | None,
    agent: str | None = None,
    unused: bool = False,
    derived: bool = False,
    after: str = "",
    limit: int = 100,
) -> list[dict[str, Any]]:
    """The live grants of one agent, or of the company; only the unused ones if asked.

    With `derived`, the first page of an agent begins with the rights that nobody had to give.
    """
    lookup.company_of_caller(ctx, company)
    paging: dict[str, Any] = {"after": after, "limit": limit, "now": ctx.now}
    holder = ctx.actor.agent_id if agent is None else lookup.agent(ctx, agent).id
    if holder is None:
        ctx.require(Action.GRANT_READ, on="grants")
        statement = statements.UNUSED if unused else statements.LIVE_IN_COMPANY
        found = ctx.tx.all(statement, company=ctx.company, **paging)
    else:
        who = ctx.tx.one(agent_statements.AGENT, company=ctx.company, agent=holder)
        assert who is not None
        ctx.require(
            Action.GRANT_READ,
            on=f"agent:{holder}",
            place=ctx.place(holder),
            target_boss=who.boss_id,
        )
        if unused:
            found = ctx.tx.all(statements.UNUSED_BY, company=ctx.company, holder=holder, **paging)
        else:
            found = ctx.tx.all(statements.HELD_BY, holder=holder, **paging)
        if derived and not after:
            by_rule = rights_by_rule(ctx, who)
            return by_rule + [views.grant(grant, reason(grant)) for grant in found]
    return [views.grant(grant, reason(grant)) for grant in found]


def reason(grant: Grant) -> str:
    """Why the holder has it, in words."""
    if grant.by_authorship and grant.kind is ResourceKind.ACTION:
        return "comes with its level"
    if grant.by_authorship:
        return "made the file" if grant.level is Level.WRITE else "sent or received it by mail"
    if grant.mode is Mode.DENY:
        return "denied by the board"
    if grant.scope_id is None:
        return "received it by mail"
    by = "the board" if grant.granted_by_user is not None else "its boss"
    return f"granted by {by}"


def _insert(
    ctx: Context,
    holder: AgentId,
    resource: Resource,
    level: Level,
    mode: Mode,
    *,
    scope: OutcomeId | None = None,
    parent: Grant | None = None,
    expires_at: Micros | None = None,
    by_user: UserId | None = None,
) -> Grant:
    grant = Grant(
        id=GrantId(ctx.ids.new()),
        company_id=CompanyId(ctx.company or ""),
        holder_id=holder,
        kind=resource.kind,
        resource_id=resource.id,
        level=level,
        mode=mode,
        scope_id=scope,
        parent_id=parent.id if parent else None,
        granted_by_agent=ctx.actor.agent_id if parent else None,
        granted_by_user=by_user,
        created_at=ctx.now,
        expires_at=expires_at,
        revoked_at=None,
        used_at=None,
    )
    _store(ctx, grant)
    return grant


def give_again(ctx: Context, was: Grant, source: str | None) -> Grant | None:
    """Give what a reorganisation took, if it could be given now; `source` replaces its own."""
    holder = ctx.tx.one(agent_statements.AGENT, company=ctx.company, agent=was.holder_id)
    scope = ctx.tx.one(outcome_statements.OUTCOME, company=ctx.company, outcome=was.scope_id)
    new = replace(
        was,
        id=GrantId(ctx.ids.new()),
        parent_id=GrantId(source) if source else was.parent_id,
        created_at=ctx.now,
        revoked_at=None,
        used_at=None,
    )
    if (
        holder is None
        or holder.status is AgentStatus.TERMINATED
        or (scope is not None and scope.status is not OutcomeStatus.OPEN)
        or not new.live(ctx.now)
        or not _has_source(ctx, new)
    ):
        return None
    _store(ctx, new)
    return new


def _has_source(ctx: Context, grant: Grant) -> bool:
    if grant.parent_id is None:
        return True
    parent = ctx.tx.one(statements.GRANT_ANYWHERE, grant=grant.parent_id)
    return (
        parent is not None
        and parent.live(ctx.now)
        and covers(ctx.held(parent.holder_id, grant.resource), grant, ctx.now)
    )


def _store(ctx: Context, grant: Grant) -> None:
    ctx.tx.run(
        statements.INSERT_GRANT,
        id=grant.id,
        company_id=grant.company_id,
        holder_id=grant.holder_id,
        kind=grant.kind.value,
        resource_id=grant.resource_id,
        level=int(grant.level),
        mode=grant.mode.value,
        scope_id=grant.scope_id,
        parent_id=grant.parent_id,
        granted_by_agent=grant.granted_by_agent,
        granted_by_user=grant.granted_by_user,
        created_at=grant.created_at,
        expires_at=grant.expires_at,
        revoked_at=None,
        used_at=None,
    )


def _take_back_excess(ctx: Context, holder: AgentId, resource: Resource) -> None:
    """What the holder passed on and could not pass on any more goes with its right."""
    given = ctx.tx.all(
        statements.GIVEN, granter=holder, kind=resource.kind.value, resource=resource.id
    )
    for grant in excessive(ctx.held(holder, resource), given, ctx.now):
        gone = ctx.tx.all(statements.REVOKE_WITH_DERIVED, grant=grant.id, now=ctx.now)
        if gone:
            ctx.record(
                "grant.revoke", f"grant:{grant.id}", {**_details(grant), "revoked": sorted(gone)}
            )
        if resource.kind is ResourceKind.MCP_SERVER:
            _resting_on_mail("toolset").taken(ctx, gone)


def _resource(ctx: Context, text: object) -> Resource:
    """What the text names, provided that the caller may know of it."""
    resource = parse_resource(text)
    if resource.kind is ResourceKind.KB_FILE:
        return kb_file(lookup.file(ctx, resource.id, Action.FILE_SEE).id)
    if resource.kind is ResourceKind.MESSAGE and resource.id != IN_BACKGROUND:
        return Resource(resource.kind, lookup.agent(ctx, resource.id).id)
    if resource.kind is ResourceKind.OUTCOME:
        return Resource(resource.kind, _outcome(ctx, resource.id).id)
    return resource


def named(ctx: Context, text: object) -> Resource:
    """What somebody wants a grant on."""
    return _resource(ctx, text)


def _outcome(ctx: Context, text: str) -> Outcome:
    found = lookup.outcome_anywhere(ctx, text)
    lookup.require_outcome(ctx, Action.OUTCOME_READ, found)
    return found


def _scope(ctx: Context, receiver: Agent, text: object) -> OutcomeId:
    """A grant ends with an outcome: the receiver's mandate unless another is named."""
    if text is None:
        text = receiver.id
    if not isinstance(text, str):
        raise BadInput("scope must be an outcome's id.", "Leave it out for the mandate.")
    found = _outcome(ctx, text)
    if found.kind is OutcomeKind.INBOX:
        raise BadInput("An inbox opens and closes by itself.", "Choose an outcome as scope.")
    if found.status is not OutcomeStatus.OPEN:
        raise Conflict("That outcome is finished.", "Choose an open outcome as scope.")
    return found.id


def _check_reach(ctx: Context, resource: Resource) -> None:
    """A board member over a part of the company gives only what lies in that part."""
    if ctx.membership is None or ctx.membership.scope_agent_id is None:
        return
    if resource.kind is ResourceKind.KB_FILE:
        lookup.file(ctx, resource.id, Action.FILE_READ)
        return
    if resource == Resource(ResourceKind.MESSAGE, IN_BACKGROUND):
        return  # it is about the receiver itself
    home = resource.id if resource.kind is ResourceKind.MESSAGE else None
    if resource.kind is ResourceKind.OUTCOME:
        home = _outcome(ctx, resource.id).owner_id
    ctx.require(Action.GRANT_GIVE, resource, home=home)


def _grant(ctx: Context, text: str, company: str | None) -> Grant:
    """By id; in the company that is named, if one is."""
    prefix = normalise(text.removeprefix("grant:"))
    found = ctx.tx.one(statements.GRANT_ANYWHERE, grant=prefix) if company is None else None
    if found is None:
        if company is None:
            lookup.enter_by(ctx, "grant", prefix)
        else:
            lookup.company_of_caller(ctx, company)
        found_so = lookup.matching(ctx, "grant", statements.GRANTS_BY_PREFIX, prefix)
        return lookup.only(found_so, "grant")
    try:
        ctx.enter(found.company_id)
    except NotFound:
        raise NotFound.of("grant") from None
    return found


def _details(grant: Grant) -> dict[str, Any]:
    return {
        "holder": grant.holder_id,
        "resource": str(grant.resource),
        "level": grant.level.word,
        "mode": grant.mode.value,
        "scope": grant.scope_id,
        "parent": grant.parent_id,
        "expires_at": views.time(grant.expires_at),
    }


def expiry(text: object) -> Micros | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise BadInput("expires_at must be a time.", "Write it like 2026-05-01T09:00:00+00:00.")
    return from_iso(text)
