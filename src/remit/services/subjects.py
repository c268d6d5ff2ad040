"""Outcomes and files as subjects of decisions: the caller's relation to them, and its grants.

The document of an outcome is decided as the outcome, whichever of the two was named.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Unpack

from remit.authority import Action, GivenFacts, Relation
from remit.errors import NotFound
from remit.ids import AgentId
from remit.model.organisation.decision import Decision, Effect
from remit.model.organisation.grant import Grant, Resource, ResourceKind, kb_file
from remit.model.work.file import File, FileKind
from remit.model.work.outcome import Outcome, OutcomeKind
from remit.services.command import Context
from remit.services.context import Matter
from remit.services.lookup import Noun, find
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import grants as grant_statements
from remit.store.work import outcomes as outcome_statements
from remit.store.work import waits as wait_statements

_AS_OUTCOME = {
    Action.FILE_SEE: Action.OUTCOME_READ,
    Action.FILE_READ: Action.OUTCOME_READ,
    Action.FILE_AUDIT: Action.OUTCOME_READ,
    Action.FILE_WRITE: Action.OUTCOME_CHANGE,
}


def require_file(ctx: Context, action: Action, file: File, *, asking_too: bool = False) -> File:
    """Refuse the call unless the caller may do `action` to the file.

    With `asking_too`, a use that needs approval passes, and nobody is asked.
    """
    action, resource, facts = about_file(ctx, file, action)
    decision = ctx.decide(action, resource, **facts)
    if decision.effect is not Effect.ASK or not asking_too:
        try:
            ctx.accept(action, str(resource), decision)
        except NotFound:
            # The document of a hidden outcome is concealed in the same words as a file.
            raise NotFound.of("file") from None
    return file


def decide_file(ctx: Context, action: Action, file: File, **facts: Unpack[GivenFacts]) -> Decision:
    """Return the decision about a file, without enforcing it."""
    action, resource, known = about_file(ctx, file, action)
    matter: Matter = {**known, **facts}
    return ctx.decide(action, resource, **matter)


def about_file(ctx: Context, file: File, action: Action) -> tuple[Action, Resource, Matter]:
    """Return the action, resource and facts of a decision about a file."""
    if file.kind is FileKind.OUTCOME:
        # An outcome and its document are created together.
        outcome = ctx.tx.existing(outcome_statements.OUTCOME, outcome=file.id)
        return _AS_OUTCOME[action], _resource(outcome), _outcome_facts(ctx, outcome)
    facts: Matter = {"home": file.home_agent_id, "listed": not file.unlisted}
    if ctx.membership is not None and ctx.membership.scope_agent_id is not None:
        facts["received"] = _received(ctx, file)
    if file.kind in (FileKind.STATE, FileKind.LOG):
        facts["about_agent"] = True
        facts["is_memory"] = file.kind is FileKind.STATE
        facts["place"] = ctx.boss_chain(file.home_agent_id)
    return action, kb_file(file.id), facts


def _received(ctx: Context, file: File) -> bool:
    """Return whether the calling person received the file by mail; people hold no grants."""
    return (
        ctx.tx.one(
            mail_statements.RECEIVED, user=ctx.actor.id, file=file.id, attached=f'%"{file.id}"%'
        )
        is not None
    )


def _resource(outcome: Outcome) -> Resource:
    return Resource(ResourceKind.OUTCOME, outcome.id)


def _outcome_facts(ctx: Context, outcome: Outcome) -> Matter:
    return {
        "home": outcome.owner_id,
        "relation": relation(ctx, outcome),
        "delegated": outcome.delegated,
        "kept_by_remit": outcome.kind is OutcomeKind.INBOX,
        "listed": False,
    }


def require_outcome(ctx: Context, action: Action, outcome: Outcome) -> Decision:
    """Decide about an outcome, and refuse the call unless it is allowed."""
    return ctx.require(action, _resource(outcome), **_outcome_facts(ctx, outcome))


def require_named_outcome(ctx: Context, action: Action, text: str) -> Outcome:
    """Return the outcome that a text names, if the caller may do `action` to it."""
    outcome = find(ctx, OUTCOME, text)
    require_outcome(ctx, action, outcome)
    return outcome


def require_outcomes_of(ctx: Context, owner: str | None) -> None:
    """Refuse the call unless the caller may list an agent's outcomes; None is the company's."""
    if ctx.actor.agent_id is None:
        # A read, so observers may; a member over a part names an owner in it.
        ctx.require(Action.OUTCOME_READ, on="outcomes", home=owner)
    elif owner != ctx.actor.agent_id:
        ctx.require(Action.AGENT_CONTROL, over=owner)
    else:
        ctx.require(Action.COMPANY_READ, on="outcomes")


def decide_outcome(ctx: Context, action: Action, outcome: Outcome) -> Decision:
    """Return the decision about an outcome, without enforcing it."""
    return ctx.decide(action, _resource(outcome), **_outcome_facts(ctx, outcome))


def relation(ctx: Context, outcome: Outcome) -> Relation:
    """Return the relation of the calling agent to an outcome."""
    me = ctx.actor.agent_id

    def is_reason() -> bool:
        return (
            ctx.tx.one(outcome_statements.IS_REASON_FOR, agent=me, outcome=outcome.id) is not None
        )

    def is_judge() -> bool:
        awaited = outcome.open_waits and ctx.tx.one(
            wait_statements.AWAITED_VERDICT, agent=me, outcome=outcome.id
        )
        return bool(awaited)

    return _relation(me, outcome, ctx.boss_chain, is_reason, is_judge)


def _relation(
    me: AgentId | None,
    outcome: Outcome,
    place: Callable[[str], tuple[Any, ...]],
    is_reason: Callable[[], bool],
    is_judge: Callable[[], bool] = lambda: False,
) -> Relation:
    if me is None:
        return Relation.NONE
    if outcome.owner_id == me:
        return Relation.OWNER
    if outcome.delegated and outcome.delegator_id == me:
        return Relation.DELEGATOR
    above = place(outcome.owner_id)[1:]
    if me in above:
        if is_judge():
            return Relation.JUDGE
        return Relation.BOSS if above[0] == me else Relation.ABOVE
    return Relation.REASON if is_reason() else Relation.NONE


def reader(ctx: Context) -> Callable[[Outcome], bool]:
    """Return a predicate: whether the caller may read an outcome. Caches decisions, for lists."""
    me = ctx.actor.agent_id
    place = cache(ctx.boss_chain)
    reasons: frozenset[str] = frozenset()
    held: dict[str, tuple[Grant, ...]] = {}
    if me is not None:
        reasons = frozenset(ctx.tx.all(outcome_statements.REASONS_OF, agent=me))
        for grant in ctx.tx.all(
            grant_statements.HELD_OF_KIND, holder=me, kind=ResourceKind.OUTCOME.value
        ):
            held[grant.resource_id] = (*held.get(grant.resource_id, ()), grant)

    def decided(owner: str, relation: Relation, granted_on: str | None) -> bool:
        return ctx.decide(
            Action.OUTCOME_READ,
            None if granted_on is None else Resource(ResourceKind.OUTCOME, granted_on),
            place=place(owner),
            held=() if granted_on is None else held[granted_on],
            relation=relation,
        ).allowed

    # Only the grants held on it distinguish an outcome; all others with the same owner and relation
    # share one decision.
    decided_once = cache(decided)

    def may_read(outcome: Outcome) -> bool:
        relation = _relation(me, outcome, place, lambda: outcome.id in reasons)
        granted_on = outcome.id if outcome.id in held else None
        return decided_once(outcome.owner_id, relation, granted_on)

    return may_read


OUTCOME = Noun(
    "outcome",
    outcome_statements.OUTCOME_ANYWHERE,
    outcome_statements.OUTCOMES_BY_PREFIX,
    reader,
    marks=("kb://",),
)
