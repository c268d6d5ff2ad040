"""Life cycle of an approval; the only module that changes its status.

The consequences of a decision belong to each type of approval, and are in `approvals.py`. The
requester is told by mail, which wakes an agent; people find what they can decide in their list.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from remit.authority import Action, holding
from remit.clock import MINUTE, Micros
from remit.errors import BadInput, Conflict, NotFound, Refused, stale
from remit.ids import AgentId, ApprovalId, CompanyId, MessageId, QuestionId
from remit.model.event import Event
from remit.model.messaging.mail import LONGEST_SUBJECT
from remit.model.organisation import configuration as configurations
from remit.model.organisation.agent import OPERATIONAL, Agent
from remit.model.organisation.approval import (
    LARGEST_PAYLOAD,
    OPEN,
    TRANSITIONS,
    Approval,
    ApprovalStatus,
    ApprovalType,
    Revision,
    is_as_asked,
)
from remit.model.organisation.decision import Decision, Effect
from remit.model.organisation.grant import (
    AGENT_CREATE,
    APPROVAL_DECIDE,
    Level,
    Resource,
    ResourceKind,
    is_over_machine,
)
from remit.model.organisation.permission import PermissionLevel, Reach
from remit.model.organisation.principal import SYSTEM, ActorKind, Principal
from remit.model.text import digest_of, monthly
from remit.model.work.outcome import Outcome
from remit.model.work.wait import WaitKind
from remit.services import lookup
from remit.services.command import Context
from remit.services.execution import waking
from remit.services.messaging import inbox, letter_context, mail, origins
from remit.services.redaction import text_without_secrets
from remit.services.work import waits
from remit.store.engine.statement import renewed
from remit.store.organisation import governance as statements
from remit.store.organisation import people
from remit.store.record import events as event_log
from remit.store.work import outcomes as outcome_statements

DECIDING = Resource(ResourceKind.ACTION, APPROVAL_DECIDE)
#: How long after a decision its requester is started, while it awaits another one.
GATHERING: Micros = MINUTE


def ask(
    ctx: Context,
    kind: ApprovalType,
    payload: Mapping[str, Any],
    *,
    agent: Agent | None = None,
    mandate: Outcome | None = None,
    home: Agent | None = None,
    expires_at: Micros | None = None,
    **more: Any,
) -> Approval:
    """Request an approval of exactly this payload, and route it to the decider.

    It is about an `agent`, whose `mandate` the caller may have at hand, and lies with `home`.
    """
    about, lies_with = (party.id if party else None for party in (agent, home))
    approval = _new(ctx, kind, payload, agent=about, home=lies_with, expires_at=expires_at, **more)
    approval = replace(approval, routed_to_agent_id=_route(ctx, approval, agent, home))
    _store(ctx, approval)
    ctx.record("approval.request", f"approval:{approval.id}", _details(approval))
    _tell_decider(ctx, approval)
    _have_requester_wait(ctx, approval, mandate)
    return approval


def hire_payload(
    agent: Agent,
    mandate: Outcome,
    *,
    requested_by: str | None,
    outcome: str | None = None,
    grants: list[dict[str, object]] | None = None,
    **terms: object,
) -> dict[str, object]:
    """The payload of a hire: name, place, purpose, configuration, rights, and further terms."""
    return {
        "agentId": agent.id,
        "requestedByAgentId": requested_by,
        "name": agent.name,
        "role": agent.role.value,
        "title": agent.title,
        "reportsTo": agent.boss_id,
        "outcomeId": outcome,
        "purpose": mandate.title,
        "perpetual": mandate.perpetual,
        "permissions": json.loads(agent.permissions),
        "grants": grants or [],
        "requestedConfigurationSnapshot": configurations.configuration_of(agent),
        **terms,
    }


def decided_already(
    ctx: Context, kind: ApprovalType, payload: Mapping[str, Any], *, agent: AgentId, note: str
) -> Approval:
    """Record an approval of something that its decider did directly."""
    approval = replace(
        _new(ctx, kind, payload, agent=agent, home=agent),
        status=ApprovalStatus.APPROVED,
        decision_note=note,
        decided_by_user_id=ctx.actor.user_id,
        decided_at=ctx.now,
        used_at=ctx.now,
    )
    _store(ctx, approval)
    ctx.record("approval.approve", f"approval:{approval.id}", _details(approval))
    return approval


def _new(
    ctx: Context,
    kind: ApprovalType,
    payload: Mapping[str, Any],
    *,
    agent: AgentId | None,
    home: AgentId | None,
    expires_at: Micros | None = None,
    call_digest: str | None = None,
    blob: tuple[str, str] | None = None,
) -> Approval:
    text = _payload_text(payload)
    return Approval(
        id=ApprovalId(ctx.ids.new()),
        company_id=CompanyId(ctx.company or ""),
        type=kind,
        status=ApprovalStatus.PENDING,
        requested_by_agent_id=ctx.actor.agent_id,
        requested_by_user_id=ctx.actor.user_id,
        requested_by_run_id=ctx.actor.run_id,
        agent_id=agent,
        home_agent_id=ctx.actor.agent_id or home,
        payload=text,
        revision=1,
        digest=digest_of(payload),
        call_digest=call_digest,
        blob_file_id=blob[0] if blob else None,
        blob_sha256=blob[1] if blob else None,
        expires_at=expires_at,
        created_at=ctx.now,
        updated_at=ctx.now,
    )


def _store(ctx: Context, approval: Approval) -> None:
    ctx.tx.add(approval)
    _keep_revision(ctx, approval)


def _keep_revision(ctx: Context, approval: Approval) -> None:
    content = (approval.id, approval.revision, approval.payload, approval.digest)
    ctx.tx.add(Revision(*content, ctx.actor.agent_id, ctx.actor.user_id, ctx.now))


def revise(ctx: Context, approval: Approval, payload: Mapping[str, Any]) -> Approval:
    """Replace the payload; earlier revisions stay visible."""
    new = replace(
        approval,
        payload=_payload_text(payload),
        digest=digest_of(payload),
        revision=approval.revision + 1,
        updated_at=ctx.now,
    )
    ctx.tx.run(statements.REVISE_APPROVAL, approval=approval.id, **renewed(new))
    _keep_revision(ctx, new)
    return new


def is_altered(ctx: Context, approval: Approval) -> bool:
    """Return whether the payload differs from its latest revision, from its digest, or from the
    digest in the record."""
    seen = ctx.tx.one(statements.REVISION, approval=approval.id, number=approval.revision)
    same = seen is not None and (seen.payload, seen.digest) == (approval.payload, approval.digest)
    return not same or not is_as_asked(approval) or not is_as_recorded(ctx, approval)


def is_as_recorded(ctx: Context, approval: Approval) -> bool:
    """Return whether the event of the latest submission names this revision and this digest.

    Who can write to the database can change payload, digest and revision together, but not the
    event without breaking the chain. A request that its decider made and approved at once was never
    submitted; its approval is the event.
    """
    named = {"resource": f"approval:{approval.id}"}
    events = ctx.tx.all(event_log.SUBMISSIONS, **named)
    if not events and approval.status not in OPEN:
        events = ctx.tx.all(event_log.APPROVED, **named)
    return bool(events) and submits(events[-1], approval)


def submits(event: Event, approval: Approval) -> bool:
    """Return whether an event is unchanged and submits an approval as it is now."""
    return event_log.tells_of(event, revision=approval.revision, digest=approval.digest)


def refuse_altered(ctx: Context, approval: Approval) -> None:
    """Refuse an approval whose payload is not exactly what was asked for, shown and hashed."""
    if is_altered(ctx, approval):
        ctx.accept(Action.APPROVAL_DECIDE, f"approval:{approval.id}", altered(approval))


def altered(approval: Approval) -> Decision:
    return Decision(
        Effect.DENY,
        "altered",
        "The request was altered: its digest is another.",
        f"approval:{approval.id}",
    )


def check_seen(approval: Approval, seen: int | None) -> None:
    """Refuse if the decider saw another revision than the current one."""
    if seen is not None and seen != approval.revision:
        raise stale(
            f"It was revised meanwhile: you saw revision {seen}, it is at {approval.revision}.",
            revision=approval.revision,
            digest=approval.digest,
        )


#: Statuses as the beginning of a sentence about an approval, and as what is done to one.
_STATES: Final = {
    ApprovalStatus.PENDING: "It awaits a decision",
    ApprovalStatus.REVISION_REQUESTED: "It was sent back for changes",
    ApprovalStatus.APPROVED: "It was approved",
    ApprovalStatus.REJECTED: "It was rejected",
    ApprovalStatus.CANCELLED: "It was withdrawn",
}
_DECISIONS: Final = {
    ApprovalStatus.PENDING: "submitted again",
    ApprovalStatus.REVISION_REQUESTED: "sent back",
    ApprovalStatus.APPROVED: "approved",
    ApprovalStatus.REJECTED: "rejected",
    ApprovalStatus.CANCELLED: "withdrawn",
}


def still_asks(approval: Approval, revision: int, digest: str) -> bool:
    """Return whether an approval is undecided and asks for exactly what somebody saw."""
    seen = (ApprovalStatus.PENDING, revision, digest)
    return (approval.status, approval.revision, approval.digest) == seen


def move(ctx: Context, approval: Approval, wanted: ApprovalStatus, note: str | None) -> Approval:
    """Change the status of an approval, if its transitions allow that, and begin or end the wait
    for it."""
    if wanted not in TRANSITIONS[approval.status]:
        raise Conflict(
            f"{_STATES[approval.status]}, so it cannot be {_DECISIONS[wanted]}.",
            "The agent that asked has to submit it again first."
            if approval.status is ApprovalStatus.REVISION_REQUESTED
            else "Look at who decided it, and why.",
            code="wrong_status",
            details={"status": approval.status.value},
        )
    deciding = wanted not in OPEN
    new = replace(
        approval,
        status=wanted,
        decision_note=note,
        decided_by_user_id=ctx.actor.user_id if deciding else None,
        decided_by_agent_id=ctx.actor.agent_id if deciding else None,
        decided_at=ctx.now if deciding else None,
        updated_at=ctx.now,
    )
    if not ctx.tx.run(
        statements.MOVE_APPROVAL,
        approval=approval.id,
        was=approval.status.value,
        seen_revision=approval.revision,
        **renewed(new),
    ):
        raise Conflict("Somebody else decided it just now.", "Look at it again.")
    if wanted is ApprovalStatus.PENDING:
        _have_requester_wait(ctx, new)
    else:
        waits.end(ctx, WaitKind.APPROVAL, new.id)
        inbox.settle_about(ctx, _matter(new), f"it was {wanted.value.replace('_', ' ')}")
    return new


def _matter(approval: Approval) -> str:
    return waits.matter(WaitKind.APPROVAL, approval.id)


def _have_requester_wait(ctx: Context, approval: Approval, mandate: Outcome | None = None) -> None:
    """Begin the wait of a requesting agent; a person does not wait.

    It holds up the mandate of the agent that the approval is about, if the requester owns that, as
    in a hire for its outcome; or else the outcomes that the requester works on.
    """
    asker, about = approval.requested_by_agent_id, approval.agent_id
    if asker is not None:
        if mandate is None and about is not None:
            mandate = ctx.tx.one(outcome_statements.OUTCOME, outcome=about)
        waits.begin(
            ctx,
            WaitKind.APPROVAL,
            approval.id,
            asker,
            to_agent=approval.routed_to_agent_id,
            about=None if mandate is None or mandate.owner_id != asker else [mandate],
        )


def withdraw(ctx: Context, agent: Agent) -> list[Approval]:
    """Cancel the approvals about or requested by an agent that is gone; returns them.

    Those that it was to decide are routed to the next above.
    """
    gone = []
    for approval in ctx.tx.all(statements.UNDECIDED_OF_AGENT, agent=agent.id):
        new = cancel_one(ctx, approval, f"{agent.name} was shut down")
        if approval.requested_by_agent_id != agent.id:
            tell_requester(ctx, new, "Cancelled", new.decision_note)
        gone.append(new)
    for approval in ctx.tx.all(statements.UNDECIDED_ROUTED_TO, agent=agent.id):
        route_again(ctx, approval)
    return gone


def cancel_one(ctx: Context, approval: Approval, note: str) -> Approval:
    """Cancel an approval, without mail to the requester, who is told in another way."""
    new = move(ctx, approval, ApprovalStatus.CANCELLED, note)
    ctx.record("approval.cancel", f"approval:{new.id}", _details(new))
    return new


def route_again(ctx: Context, approval: Approval) -> Approval:
    """Route an approval to its present decider, and tell them."""
    new = replace(approval, routed_to_agent_id=_route(ctx, approval))
    ctx.tx.run(statements.ROUTE_APPROVAL, approval=approval.id, new_agent=new.routed_to_agent_id)
    if approval.status is ApprovalStatus.PENDING:
        _tell_decider(ctx, new)
        waits.redirect(ctx, WaitKind.APPROVAL, approval.id, new.routed_to_agent_id)
    return new


def _tell_decider(ctx: Context, approval: Approval) -> None:
    """Mail the deciding agent, if there is one; the board finds the approval in its list."""
    if approval.routed_to_agent_id is not None:
        tell(
            ctx,
            f"agent:{approval.routed_to_agent_id}",
            f"To decide: {summary(approval)}",
            f"{_who(ctx, approval.requester)} asks for your approval of approval:{approval.id}, "
            f"revision {approval.revision}.\nLook at it with approval_view.",
            about=_matter(approval),
        )


def tell_requester(
    ctx: Context, approval: Approval, verdict: str, note: str | None, step: str = ""
) -> None:
    """Mail the requester what was decided, by whom and why; that wakes an agent."""
    if approval.requester == ctx.actor.address:
        return
    by = ctx.actor.name if ctx.actor.kind is not ActorKind.SYSTEM else "Remit"
    about = summary(approval)
    lines = [f"{verdict}: {about}.", f"By {by}, approval:{approval.id}."]
    if note:
        lines += ["", note]
    if step:
        lines += ["", step]
    origin = origins.raised(ctx, approval.requested_by_run_id)
    tell(
        ctx,
        approval.requester,
        f"{verdict}: {about}",
        "\n".join(lines),
        origin=origin,
        outcome=letter_context.outcome_of_run(ctx, approval.requested_by_run_id),
    )
    asker = approval.requested_by_agent_id
    if asker is not None and ctx.tx.one(statements.IS_AWAITED_BY, agent=asker):
        # The next decision often follows at once; one run then reads both.
        waking.gather(ctx, asker, GATHERING)


def tell(
    ctx: Context,
    to: str,
    subject: str,
    text: str,
    attachments: Sequence[str] = (),
    origin: MessageId | None = None,
    question: QuestionId | None = None,
    about: str | None = None,
    to_know: bool = False,
    outcome: str | None = None,
) -> None:
    """Send mail from Remit itself. A receiver that is gone is skipped. Unread letters `about` a
    matter go with it. A letter that leaves its reader nothing to do is `to_know`: an agent is not
    started for it."""
    origin = origin or origins.of_caller(ctx)
    with ctx.acting_as(SYSTEM), suppress(NotFound, Conflict):
        mail.post(
            ctx,
            to=to,
            subject=subject[:LONGEST_SUBJECT],
            text=text,
            attachments=attachments,
            origin=origin,
            question=question,
            about=about,
            to_know=to_know,
            outcome=outcome,
        )


def boss_address(agent: Agent) -> str:
    """Address of an agent's boss, an agent or a person."""
    return f"agent:{agent.boss_id}" if agent.boss_id else f"user:{agent.boss_user_id}"


@contextmanager
def in_their_name(ctx: Context, approval: Approval, step: str) -> Iterator[None]:
    """Context manager: carry out what was approved, as the requester. If the requester may not do
    it any more, a Conflict is raised."""
    with ctx.acting_as(principal(ctx, approval), ticket=approval.id):
        try:
            yield
        except (Refused, NotFound, BadInput) as error:
            raise Conflict(
                f"The request cannot be carried out any more: {error.sentence}", step
            ) from None


def principal(ctx: Context, approval: Approval) -> Principal:
    """Return the requester as a principal, with its present status."""
    if approval.requested_by_agent_id is None:
        assert approval.requested_by_user_id is not None
        # Users are never deleted.
        user = ctx.tx.existing(people.USER, user=approval.requested_by_user_id)
        return Principal(ActorKind.USER, user.id, user.name)
    # Only an agent that never acted is deleted.
    return Principal.of(lookup.known_agent(ctx, approval.requested_by_agent_id))


def summary(approval: Approval) -> str:
    """A summary of the request in a few words."""
    payload = json.loads(approval.payload)
    match approval.type:
        case ApprovalType.HIRE_AGENT:
            return f"hire {payload.get('name')} as {payload.get('role')}"
        case ApprovalType.CONFIG_CHANGE:
            changed = ", ".join(payload.get("changed", ()))
            return f"change {changed} of {payload.get('name')}"
        case ApprovalType.CAPABILITY_USE:
            return f"{payload.get('action')} on {payload.get('resource')}"
        case ApprovalType.BUDGET:
            return f"a budget of {monthly(payload)}"
        case _:
            title = payload.get("title")
            words = title if isinstance(title, str) and title else approval.type.value
            plain = "".join(char if char.isprintable() else " " for char in words)
            # It becomes the subject of mail, a post in a chat and part of events.
            return text_without_secrets(" ".join(plain.split()))[0][:120]


def _route(ctx: Context, approval: Approval, *at_hand: Agent | None) -> AgentId | None:
    """Return the nearest agent above the requester that may decide; None for the board."""
    asker = _agent(ctx, approval.requested_by_agent_id, at_hand)
    if asker is None or asker.boss_id is None or is_for_people(ctx, approval, asker, *at_hand):
        return None
    for above in ctx.boss_chain(asker.id)[1:]:
        agent = lookup.agent_row(ctx, above)
        if agent is not None and agent.status in OPERATIONAL and may_decide(ctx, agent.id):
            return agent.id
    return None


def may_decide(ctx: Context, agent: str) -> bool:
    """Return whether an agent may decide requests of agents below it."""
    held = holding(ctx.held(agent, DECIDING), Level.USE, ctx.now)
    by_level = held.reason == "no_capability" and ctx.reach_of(agent) is not Reach.NOBODY
    return held.allowed or by_level


def is_for_people(ctx: Context, approval: Approval, *at_hand: Agent | None) -> bool:
    """Return whether only people decide it: an agent with the level `boss` asked for it or gains by
    it, its payload was altered, or it is about a level, a permission, a secret or access to the
    whole machine."""
    asker = _agent(ctx, approval.requested_by_agent_id, at_hand)
    about = _agent(ctx, approval.agent_id, at_hand)
    if any(
        party is not None and party.permission_level is PermissionLevel.BOSS
        for party in (asker, about)
    ):
        return True
    if not is_as_asked(approval):
        return True
    payload = json.loads(approval.payload)
    match approval.type:
        case ApprovalType.HIRE_AGENT:
            return (
                payload.get("permissionLevel") is not None
                or bool(payload.get("permissions"))
                or any(is_over_machine(wish.get("resource")) for wish in payload.get("grants", ()))
                or configurations.is_for_people(payload["requestedConfigurationSnapshot"])
            )
        case ApprovalType.CONFIG_CHANGE:
            if about is None:
                return True
            now = configurations.configuration_of(about)
            return configurations.is_for_people({**now, **payload["configuration"]}, now)
        case ApprovalType.CAPABILITY_USE:
            # A helper has the adapter of its requester.
            borrows = payload["action"] == AGENT_CREATE and asker is not None
            config = configurations.configuration_of(asker) if asker and borrows else None
            return is_over_machine(payload["resource"]) or (
                config is not None and configurations.is_for_people(config)
            )
        case _:
            return False


def is_closed_to_caller(ctx: Context, approval: Approval) -> bool:
    """Return whether the calling agent may not decide it: only people may, or the agent gains by
    it."""
    if ctx.actor.kind is not ActorKind.AGENT:
        return False
    own = approval.agent_id is not None and approval.agent_id in ctx.boss_chain(ctx.actor.id)
    return own or is_for_people(ctx, approval)


def may_be_decided(ctx: Context, approval: Approval) -> bool:
    """Return whether the caller may decide about an approval now."""
    undecided = approval.status in OPEN and not approval.expired(ctx.now)
    return (
        undecided
        and ctx.decide(
            Action.APPROVAL_DECIDE,
            DECIDING,
            over=approval.home_agent_id or approval.agent_id,
            requester=approval.requested_by_agent_id,
            listed=False,
            for_people=is_closed_to_caller(ctx, approval),
        ).allowed
    )


def _agent(ctx: Context, agent: AgentId | None, at_hand: Iterable[Agent | None]) -> Agent | None:
    """An agent by its id, unless the caller has it at hand."""
    if agent is None:
        return None
    known = next(
        (candidate for candidate in at_hand if candidate is not None and candidate.id == agent),
        None,
    )
    return known or lookup.agent_row(ctx, agent)


def _payload_text(payload: Mapping[str, Any]) -> str:
    text = json.dumps(payload, ensure_ascii=True)
    if len(text) > LARGEST_PAYLOAD:
        raise BadInput(
            f"The request is larger than {LARGEST_PAYLOAD // 1024} KiB.",
            "Put long texts into a file and refer to it.",
        )
    return text


def _who(ctx: Context, requester: str) -> str:
    kind, _, who = requester.partition(":")
    if kind == "agent":
        agent = lookup.agent_row(ctx, who)
        return agent.name if agent else "an agent"
    return lookup.user_name(ctx, who, "somebody")


def details(approval: Approval) -> dict[str, object]:
    """Details of an approval for its events."""
    return {
        "type": approval.type.value,
        "revision": approval.revision,
        "digest": approval.digest,
        "agent": approval.agent_id,
    }


def _details(approval: Approval) -> dict[str, object]:
    routed = {"status": approval.status.value, "routed_to": approval.routed_to_agent_id}
    return {**details(approval), **routed}
