"""Capabilities: grant, revoke, list, and find those that were never used."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any

from remit.authority import Action, Wish, attenuate, covers, excessive, holding
from remit.clock import Micros, given_time
from remit.errors import BadInput, Conflict
from remit.ids import AgentId, GrantId, OutcomeId, UserId
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.decision import Decision
from remit.model.organisation.grant import (
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
from remit.model.organisation.path_pattern import LONGEST_PATTERN, MOST_PATTERNS, patterns, stored
from remit.model.organisation.principal import ActorKind
from remit.model.work.file import File, FileKind
from remit.model.work.outcome import Outcome, OutcomeKind, OutcomeStatus
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.context import Matter
from remit.services.fields import (
    CHECKED_BY_VERB,
    After,
    AgentRef,
    CompanyRef,
    GrantRef,
    Help,
    Limit,
    Moment,
    Most,
    OutcomeRef,
    ResourceRef,
    Text,
)
from remit.services.new_rows import new_row
from remit.services.rights.implicit_rights import rights as rights_by_rule
from remit.services.subjects import OUTCOME, decide_file, reader, require_file, require_outcome
from remit.services.surfaces import AsRoute, AsTool
from remit.services.verbs import Added
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import grants as statements
from remit.store.work import files as file_statements
from remit.store.work import outcomes as outcome_statements

#: An agent with this is not confined, so people alone give it and take it back.
WHOLE_MACHINE = Resource(ResourceKind.ACTION, FULL_ACCESS)
#: Patterns of files of a repository, or of its target branches.
Patterns = Annotated[
    Sequence[Annotated[str, Text(LONGEST_PATTERN, one_line=True)]], Most(MOST_PATTERNS)
]


@command(
    "grants.give",
    Added("paths", None),
    Added("branches", None),
    # The tool may name a request instead, so it is written by hand.
    AsRoute("POST /companies/{companyId}/grants", "give_grant", 201),
)
def give(
    ctx: Context,
    *,
    company: CompanyRef | None,
    to: AgentRef,
    resource: ResourceRef,
    level: Annotated[str, Level, CHECKED_BY_VERB],
    mode: Annotated[str, Mode] | None = None,
    scope: OutcomeRef | None = None,
    expires_at: Moment | None = None,
    paths: Annotated[Patterns, Help("Of a repository: only these files, such as src/**.")]
    | None = None,
    branches: Annotated[Patterns, Help("Of a repository: only into these branches.")] | None = None,
) -> shapes.GrantShape:
    """Pass on a capability, or, as the board, give one."""
    lookup.company_of_caller(ctx, company)
    receiver = lookup.agent(ctx, to)
    wish = {
        "resource": resource,
        "level": level,
        "mode": mode,
        "scope": scope,
        "expires_at": expires_at,
        "paths": paths,
        "branches": branches,
    }
    return views.grant(give_to(ctx, receiver, wish))


def weigh(ctx: Context, receiver: Agent, wish: Mapping[str, Any]) -> tuple[Grant, Decision]:
    """Require the right to give this, as it was asked for. Returns the grant, not yet stored, and
    the decision that allows it.

    An agent can only narrow what it holds, and never gives the whole machine; the board can give
    anything.
    """
    resource = named(ctx, wish.get("resource"))
    level = parse_level(wish.get("level"), resource.kind)
    mode = parse_mode(wish.get("mode") or usual_mode(ctx, level))
    expires_at = expiry(wish.get("expires_at"))
    paths, branches = limits(wish, resource, level)
    if receiver.status is AgentStatus.TERMINATED:
        raise Conflict(f"{receiver.name} is terminated.", "Choose an agent that can act.")
    decision = ctx.require(
        Action.GRANT_GIVE,
        resource,
        on=str(resource),
        home=receiver.id,
        target_boss=receiver.boss_id,
        for_people=resource == WHOLE_MACHINE,
    )
    parent: Grant | None = None
    if ctx.actor.kind is ActorKind.AGENT:
        if mode is not Mode.ALLOW:
            raise BadInput("Only the board sets a mode.", "Leave the mode out.")
        terms = Wish(level, expires_at, paths, branches)
        source = attenuate(ctx.held(ctx.actor.id, resource), terms, ctx.now)
        decision = ctx.accept(Action.GRANT_GIVE, str(resource), source.decision)
        parent, mode, expires_at = source.parent, source.mode, source.expires_at
        paths, branches = source.paths, source.branches
        assert parent is not None
    else:
        _check_reach(ctx, resource)
        if expires_at is not None and expires_at <= ctx.now:
            raise BadInput("The expiry lies in the past.", "Choose a later time, or none.")
    grant = _made(
        ctx,
        receiver.id,
        resource,
        level,
        mode,
        scope=_scope(ctx, receiver, wish.get("scope")),
        parent=parent,
        expires_at=expires_at,
        by_user=ctx.actor.user_id,
        paths=stored(paths),
        branches=stored(branches),
    )
    return grant, decision


def usual_mode(ctx: Context, level: Level) -> str:
    """Return the default mode: `ask` for a merge that people grant, else `allow`."""
    asks = level is Level.MERGE and ctx.actor.kind is not ActorKind.AGENT
    return Mode.ASK.value if asks else Mode.ALLOW.value


def limits(
    wish: Mapping[str, Any], resource: Resource, level: Level
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Validate the files and branches that a grant is limited to."""
    paths, branches = wish.get("paths"), wish.get("branches")
    if (paths or branches) and (
        resource.kind is not ResourceKind.REPO or level not in (Level.PROPOSE, Level.MERGE)
    ):
        raise BadInput(
            "Only propose and merge on a repository are limited to files and branches.",
            "Leave paths and branches out.",
        )
    return (
        patterns(paths, "paths") if paths else None,
        patterns(branches, "branches") if branches else None,
    )


def give_to(ctx: Context, receiver: Agent, wish: Mapping[str, Any]) -> Grant:
    """Give one grant to one agent."""
    grant, decision = weigh(ctx, receiver, wish)
    if receiver.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(
            f"{receiver.name} awaits approval.", "Ask for the grant with the hire, or afterwards."
        )
    _store(ctx, grant)
    if grant.parent_id is not None:
        ctx.tx.run(statements.MARK_USED, grant=grant.parent_id)
    ctx.record("grant.give", f"grant:{grant.id}", _details(grant), decision)
    if grant.mode is not Mode.ALLOW:
        _take_back_excess(ctx, receiver.id, grant.resource)
    if grant.kind is ResourceKind.MCP_SERVER:
        _resting_on_mail("execution.tool_changes").given(ctx, grant)
    _resting_on_mail("rights.capability_requests").met(ctx, receiver)
    return grant


def _resting_on_mail(service: str) -> ModuleType:
    """Import a service that sends mail, late: mail itself imports this module."""
    return import_module(f"remit.services.{service}")


def revoke_actions(ctx: Context, holder: Agent) -> None:
    """Revoke an agent's grants of actions, before those of another level are given."""
    for grant in ctx.tx.all(statements.HELD_BY, holder=holder.id, after="", limit=1000):
        if grant.kind is ResourceKind.ACTION:
            take_back(ctx, grant)


def revoke_mode(ctx: Context, holder: Agent, resource: Resource, mode: Mode) -> bool:
    """Revoke an agent's live grants on a resource in one mode; returns whether there were any."""
    held = ctx.held(holder.id, resource)
    grants = [grant for grant in held if grant.mode is mode and grant.live(ctx.now)]
    for grant in grants:
        take_back(ctx, grant)
    return bool(grants)


def take_back(ctx: Context, grant: Grant) -> list[str]:
    """Revoke a grant and every grant derived from it; returns the ids of those that it ended."""
    gone = sorted(ctx.tx.all(statements.REVOKE_WITH_DERIVED, grant=grant.id))
    if gone:
        ctx.record("grant.revoke", f"grant:{grant.id}", {**_details(grant), "revoked": gone})
    return gone


def give_by_rule(ctx: Context, holder: AgentId, file_id: str, level: Level) -> Grant:
    """Give a grant without a giver, such as that of a file's creator, who may write it and pass
    that on."""
    return _store(ctx, _made(ctx, holder, kb_file(file_id), level, Mode.ALLOW))


def share(
    ctx: Context, receiver: AgentId, file: File, *, still_held: bool = True, new: bool = False
) -> Grant | None:
    """Give the receiver of a message the right to read a file in it; returns None if no grant was
    needed or may be given. A `new` file was made just now, so only its maker can hold a grant.

    The sender may read the file: that was decided when the message was sent. A file that it
    read by rule, such as an outcome, needs no source grant. Without `still_held`, a grant that the
    sender lost before the message arrived is not passed on.
    """
    resource = kb_file(file.id)
    if file.kind is FileKind.OUTCOME:
        resource = Resource(ResourceKind.OUTCOME, file.id)
    if not new or receiver == ctx.actor.agent_id:
        has = holding(ctx.held(receiver, resource), Level.READ, ctx.now)
        if has.allowed or has.reason == "denied_by_grant":
            return None
    if file.kind is not FileKind.FILE and receiver in ctx.boss_chain(file.home_agent_id):
        return None
    parent = expires_at = None
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
    terms: Any = {"parent": parent, "expires_at": expires_at, "by_user": ctx.actor.user_id}
    grant = _store(ctx, _made(ctx, receiver, resource, Level.READ, Mode.ALLOW, **terms))
    ctx.record("grant.give", f"grant:{grant.id}", {**_details(grant), "by_mail": True})
    return grant


@command(
    "grants.revoke",
    AsTool(
        "capability_revoke",
        "Take back what you granted, or give up what you hold.",
        id="grant",
        without=("company",),
    ),
    AsRoute("DELETE /companies/{companyId}/grants/{id}", "revoke_grant_in_company"),
    AsRoute("DELETE /grants/{id}", "revoke_grant", without=("company",)),
)
def revoke(
    ctx: Context, *, grant: GrantRef, company: CompanyRef | None = None
) -> shapes.RevokedGrantShape:
    """Take a grant back, with everything that was passed on from it."""
    if company is not None:
        lookup.company_of_caller(ctx, company)
    row = lookup.find(ctx, _GRANT, grant)
    ctx.require(Action.GRANT_REVOKE, on=f"grant:{row.id}", **_about(row))
    if row.revoked_at is not None:
        raise Conflict("The grant was revoked already.")
    gone = take_back(ctx, row)
    if row.kind is ResourceKind.MCP_SERVER:
        _resting_on_mail("execution.tool_changes").taken(ctx, gone)
    return {"id": row.id, "revoked": gone}


@query(
    "grants.listing",
    Added("besides_mail", False),
    Added("titles", False),
    AsTool(
        "capability_list",
        "Your capabilities, and why you hold them.",
        without=("company", "unused", "besides_mail", "titles"),
        given={"derived": True},
        answer="capabilities",
    ),
    AsRoute("GET /companies/{companyId}/grants", "list_grants", page="id"),
)
def listing(
    ctx: Context,
    *,
    company: CompanyRef | None = None,
    agent: Annotated[AgentRef, Help("A report of yours instead of you", model=True)] | None = None,
    unused: bool = False,
    derived: bool = False,
    besides_mail: Annotated[bool, Help("Without those that came with mail.")] = False,
    titles: Annotated[bool, Help("With the titles of outcomes and files.")] = False,
    after: Annotated[After, Help("Id of the last one seen")] = "",
    limit: Limit = 100,
) -> list[shapes.GrantShape | shapes.DerivedGrantShape]:
    """The live grants of one agent, or of the company; only the unused ones if asked.

    With `derived`, the first page of an agent begins with the rights that nobody had to give.
    """
    lookup.company_of_caller(ctx, company)
    paging: dict[str, object] = {"after": after, "limit": limit, "now": ctx.now}
    holder = ctx.actor.agent_id if agent is None else lookup.agent(ctx, agent).id
    rows: list[shapes.GrantShape | shapes.DerivedGrantShape] = []
    if holder is None:
        ctx.require(Action.GRANT_READ, on="grants")
        live = statements.LIVE_BESIDES_MAIL if besides_mail else statements.LIVE_IN_COMPANY
        grants = ctx.tx.all(statements.UNUSED if unused else live, **paging)
    else:
        who = ctx.tx.existing(agent_statements.AGENT, agent=holder)
        ctx.require(Action.GRANT_READ, over=holder, target_boss=who.boss_id)
        live = statements.HELD_BESIDES_MAIL if besides_mail else statements.HELD_BY
        grants = ctx.tx.all(statements.UNUSED_BY if unused else live, holder=holder, **paging)
        if derived and not after:
            rows += rights_by_rule(ctx, who)
    rows += [views.grant(grant, reason(grant)) for grant in grants]
    if titles:
        _add_titles(ctx, rows)
    return rows


def _add_titles(ctx: Context, rows: Sequence[shapes.GrantShape | shapes.DerivedGrantShape]) -> None:
    """Add the titles of outcomes and files, as far as the caller may know them."""
    may_read = reader(ctx)
    for row in rows:
        kind, _, own = row["resource"].partition(":")
        if kind == ResourceKind.OUTCOME.value:
            outcome = ctx.tx.one(outcome_statements.OUTCOME, outcome=own)
            if outcome is not None and may_read(outcome):
                row["title"] = outcome.title
        elif kind == ResourceKind.KB_FILE.value:
            file = ctx.tx.one(file_statements.FILE, file=own)
            if file is not None and decide_file(ctx, Action.FILE_SEE, file).allowed:
                row["title"] = file.description


def reason(grant: Grant) -> str:
    """Return why the holder has a grant, in words."""
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


def _made(
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
    paths: str | None = None,
    branches: str | None = None,
) -> Grant:
    return Grant(
        **new_row(ctx),
        holder_id=holder,
        kind=resource.kind,
        resource_id=resource.id,
        level=level,
        mode=mode,
        scope_id=scope,
        parent_id=parent.id if parent else None,
        granted_by_agent=ctx.actor.agent_id if parent else None,
        granted_by_user=by_user,
        expires_at=expires_at,
        paths=paths,
        branches=branches,
    )


def give_again(ctx: Context, was: Grant, source: str | None) -> Grant | None:
    """Restore a grant that a reorganisation revoked, if it could be given now; `source` replaces
    its parent."""
    holder = ctx.tx.one(agent_statements.AGENT, agent=was.holder_id)
    scope = ctx.tx.one(outcome_statements.OUTCOME, outcome=was.scope_id)
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
        or (new.resource == WHOLE_MACHINE and new.parent_id is not None)
        or not _has_source(ctx, new)
    ):
        return None
    return _store(ctx, new)


def _has_source(ctx: Context, grant: Grant) -> bool:
    if grant.parent_id is None:
        return True
    parent = ctx.tx.one(statements.GRANT_ANYWHERE, grant=grant.parent_id)
    return (
        parent is not None
        and parent.live(ctx.now)
        and covers(ctx.held(parent.holder_id, grant.resource), grant, ctx.now)
    )


def _store(ctx: Context, grant: Grant) -> Grant:
    ctx.tx.add(grant, level=int(grant.level))
    return grant


def _take_back_excess(ctx: Context, holder: AgentId, resource: Resource) -> None:
    """Revoke the grants that the holder passed on and could not pass on any more."""
    grants = ctx.tx.all(
        statements.GIVEN, granter=holder, kind=resource.kind.value, resource=resource.id
    )
    for grant in excessive(ctx.held(holder, resource), grants, ctx.now):
        gone = take_back(ctx, grant)
        if resource.kind is ResourceKind.MCP_SERVER:
            _resting_on_mail("execution.tool_changes").taken(ctx, gone)


def named(ctx: Context, text: object) -> Resource:
    """Return the resource that a text names, if the caller may know of it."""
    resource = parse_resource(text)
    if resource.kind is ResourceKind.KB_FILE:
        return kb_file(require_file(ctx, Action.FILE_SEE, lookup.file(ctx, resource.id)).id)
    if resource.kind is ResourceKind.MESSAGE and resource.id != IN_BACKGROUND:
        return Resource(resource.kind, lookup.agent(ctx, resource.id).id)
    if resource.kind is ResourceKind.OUTCOME:
        return Resource(resource.kind, _outcome(ctx, resource.id).id)
    # Servers, secrets and repositories are referred to by name, so a right can exist before the
    # thing does, as in an import or a hire whose operator adds it later. The giver does not learn
    # which names exist, and removing a thing revokes all rights to its name.
    return resource


def _outcome(ctx: Context, text: str) -> Outcome:
    outcome = lookup.find(ctx, OUTCOME, text)
    require_outcome(ctx, Action.OUTCOME_READ, outcome)
    return outcome


def _scope(ctx: Context, receiver: Agent, text: object) -> OutcomeId:
    """Return the outcome that a grant ends with: the receiver's mandate unless another is named."""
    if text is None:
        text = receiver.id
    if not isinstance(text, str):
        raise BadInput("scope must be an outcome's id.", "Leave it out for the mandate.")
    outcome = _outcome(ctx, text)
    if outcome.kind is OutcomeKind.INBOX:
        raise BadInput("An inbox opens and closes by itself.", "Choose an outcome as scope.")
    if outcome.status is not OutcomeStatus.OPEN:
        raise Conflict("That outcome is finished.", "Choose an open outcome as scope.")
    return outcome.id


def _check_reach(ctx: Context, resource: Resource) -> None:
    """Check that a board member over a part of the company gives only what lies in that part."""
    if ctx.membership is None or ctx.membership.scope_agent_id is None:
        return
    if resource.kind is ResourceKind.KB_FILE:
        require_file(ctx, Action.FILE_READ, lookup.file(ctx, resource.id))
        return
    if resource == Resource(ResourceKind.MESSAGE, IN_BACKGROUND):
        return  # it is about the receiver itself
    home = resource.id if resource.kind is ResourceKind.MESSAGE else None
    if resource.kind is ResourceKind.OUTCOME:
        home = _outcome(ctx, resource.id).owner_id
    ctx.require(Action.GRANT_GIVE, resource, home=home)


def _about(grant: Grant) -> Matter:
    """The facts about a grant. One that people made to restrain an agent is not for an agent to
    lift."""
    for_people = grant.mode is not Mode.ALLOW or grant.resource == WHOLE_MACHINE
    return {"home": grant.holder_id, "grant": grant, "for_people": for_people}


def _reader(ctx: Context) -> Callable[[Grant], bool]:
    """Return a predicate: agents see grants that they could revoke; people may see without
    control."""
    agent = ctx.actor.kind is ActorKind.AGENT
    action = Action.GRANT_REVOKE if agent else Action.GRANT_READ
    return lambda grant: ctx.decide(action, **_about(grant)).allowed


_GRANT = lookup.Noun("grant", statements.GRANT_ANYWHERE, statements.GRANTS_BY_PREFIX, _reader)


def _details(grant: Grant) -> dict[str, object]:
    return {
        "holder": grant.holder_id,
        "resource": str(grant.resource),
        "level": grant.level.word,
        "mode": grant.mode.value,
        "scope": grant.scope_id,
        "parent": grant.parent_id,
        "expires_at": views.time(grant.expires_at),
        **views.grant_limits(grant),
    }


def expiry(text: object) -> Micros | None:
    return None if text is None else given_time(text, "expires_at")
