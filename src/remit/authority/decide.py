"""The decision function."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from remit.authority.boss import governs
from remit.authority.capability import condition, holding
from remit.authority.governance import GOVERNING, decide_governance
from remit.authority.outcome import Relation, decide_outcome
from remit.clock import Micros
from remit.ids import AgentId, UserId
from remit.model.agent import OPERATIONAL, AgentStatus
from remit.model.decision import Decision, Effect
from remit.model.grant import Grant, Level, Mode, Resource
from remit.model.mail import Messaging
from remit.model.permission import Reach
from remit.model.principal import ActorKind, Principal
from remit.model.user import Membership, UserRole


class Action(StrEnum):
    """What can be asked for. The value is what events record."""

    COMPANY_CREATE = "company.create"
    COMPANY_READ = "company.read"
    COMPANY_CHANGE = "company.change"
    COMPANY_EXPORT = "company.export"
    #: What the permission levels bundle.
    POLICY_READ = "policy.read"
    POLICY_CHANGE = "policy.change"
    USER_READ = "user.read"
    USER_CHANGE = "user.change"
    AGENT_READ = "agent.read"
    #: To create an agent directly, past every approval.
    AGENT_APPOINT = "agent.appoint"
    AGENT_CREATE = "agent.create"
    AGENT_PERMIT = "agent.permit"
    #: To give an agent one of the permission levels.
    LEVEL_CHANGE = "level.change"
    CONFIG_READ = "config.read"
    CONFIG_CHANGE = "config.change"
    CONFIG_PROPOSE = "config.propose"
    APPROVAL_REQUEST = "approval.request"
    APPROVAL_READ = "approval.read"
    APPROVAL_COMMENT = "approval.comment"
    APPROVAL_DECIDE = "approval.decide"
    APPROVAL_RESUBMIT = "approval.resubmit"
    APPROVAL_CANCEL = "approval.cancel"
    AGENT_TERMINATE = "agent.terminate"
    KEY_READ = "key.read"
    KEY_CHANGE = "key.change"
    RUN_CHANGE = "run.change"
    AGENT_CONTROL = "agent.control"
    #: To stop a company or a subtree, and to let it go on.
    HALT_STOP = "halt.stop"
    HALT_GO = "halt.go"
    ORG_CHANGE = "org.change"
    LOG_WRITE = "log.write"
    MESSAGE_SEND = "message.send"
    MESSAGE_READ = "message.read"
    SCHEDULE_CHANGE = "schedule.change"
    QUESTION_ASK = "question.ask"
    QUESTION_ANSWER = "question.answer"
    THREAD_CANCEL = "thread.cancel"
    OUTCOME_READ = "outcome.read"
    OUTCOME_CREATE = "outcome.create"
    OUTCOME_CHANGE = "outcome.change"
    OUTCOME_FINISH = "outcome.finish"
    #: To hand it in for a verdict.
    OUTCOME_SUBMIT = "outcome.submit"
    OUTCOME_DELEGATE = "outcome.delegate"
    OUTCOME_RECLAIM = "outcome.reclaim"
    FILE_CREATE = "file.create"
    FILE_SEE = "file.see"
    FILE_READ = "file.read"
    FILE_WRITE = "file.write"
    FILE_AUDIT = "file.audit"
    GRANT_READ = "grant.read"
    GRANT_GIVE = "grant.give"
    GRANT_REVOKE = "grant.revoke"
    SECRET_READ = "secret.read"  # noqa: S105  what is done, not a secret
    SECRET_CHANGE = "secret.change"  # noqa: S105  what is done, not a secret
    MCP_SERVER_READ = "mcp_server.read"
    MCP_SERVER_CHANGE = "mcp_server.change"
    MCP_SERVER_CALL = "mcp_server.call"
    EVENT_READ = "event.read"
    EVENT_VERIFY = "event.verify"
    REPO_READ = "repo.read"
    #: To name an address that this machine will then fetch.
    REPO_ADD = "repo.add"
    REPO_CHANGE = "repo.change"
    #: To have it fetched now.
    REPO_SYNC = "repo.sync"
    REPO_USE = "repo.use"
    AGENT_PURGE = "agent.purge"
    BINDING_READ = "binding.read"
    BINDING_CHANGE = "binding.change"


#: What looking takes; an observer may do these and nothing else.
_LOOKING = frozenset(
    {
        Action.COMPANY_READ,
        Action.POLICY_READ,
        Action.USER_READ,
        Action.AGENT_READ,
        Action.KEY_READ,
        Action.OUTCOME_READ,
        Action.MESSAGE_READ,
        Action.APPROVAL_READ,
        Action.CONFIG_READ,
        Action.FILE_SEE,
        Action.FILE_READ,
        Action.FILE_AUDIT,
        Action.GRANT_READ,
        Action.EVENT_READ,
        Action.EVENT_VERIFY,
        Action.REPO_READ,
        Action.BINDING_READ,
    }
)

#: What concerns the company as a whole, so that a say in one subtree is not enough.
_COMPANY_WIDE = frozenset(
    {
        Action.COMPANY_CHANGE,
        Action.COMPANY_EXPORT,
        Action.POLICY_READ,
        Action.POLICY_CHANGE,
        Action.USER_CHANGE,
        Action.USER_READ,
        Action.EVENT_READ,
        Action.EVENT_VERIFY,
        Action.SECRET_READ,
        Action.SECRET_CHANGE,
        Action.MCP_SERVER_READ,
        Action.MCP_SERVER_CHANGE,
        Action.REPO_READ,
        Action.REPO_ADD,
        Action.REPO_CHANGE,
        Action.REPO_SYNC,
        Action.AGENT_PURGE,
    }
)

#: What reaches into the instance's own machine: a say in the company is not enough.
_OPERATING = frozenset({Action.SECRET_CHANGE, Action.MCP_SERVER_CHANGE})

#: Open to every agent of the company: the base tools, and knowing who works there.
_EVERY_AGENT = frozenset({Action.COMPANY_READ, Action.AGENT_READ, Action.FILE_CREATE})

OUTCOME_ACTIONS = frozenset(
    {
        Action.OUTCOME_READ,
        Action.OUTCOME_CREATE,
        Action.OUTCOME_CHANGE,
        Action.OUTCOME_FINISH,
        Action.OUTCOME_SUBMIT,
        Action.OUTCOME_DELEGATE,
        Action.OUTCOME_RECLAIM,
    }
)

_CHANGING_OUTCOMES = OUTCOME_ACTIONS - {Action.OUTCOME_READ}

#: What an agent may do that holds the right to it, and no other: `instance.configure` for what
#: concerns all, or the right to use the one thing.
_BY_CAPABILITY = frozenset(
    {
        Action.MCP_SERVER_READ,
        Action.MCP_SERVER_CALL,
        Action.REPO_READ,
        Action.REPO_SYNC,
        Action.REPO_USE,
    }
)

#: What an agent may do with its own, and with nobody else's.
_ITS_OWN = frozenset(
    {
        Action.SCHEDULE_CHANGE,
        Action.QUESTION_ASK,
        Action.MESSAGE_READ,
        Action.BINDING_READ,
    }
)

_LEVEL = {
    Action.FILE_READ: Level.READ,
    Action.FILE_AUDIT: Level.READ,
    Action.FILE_WRITE: Level.WRITE,
}


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a decision may depend on, besides who asks for what."""

    now: Micros
    #: The asking user's part in this company.
    membership: Membership | None = None
    #: The agents under which the resource lies: its own first, then each boss above.
    #: Empty for what belongs to the company as a whole, or when the tree cannot be trusted.
    place: tuple[AgentId, ...] = ()
    #: What the asking agent holds on the resource.
    held: tuple[Grant, ...] = ()
    #: Whether the file may be known to everybody in the company.
    listed: bool = True
    #: The boss of the agent that is acted upon.
    target_boss: AgentId | None = None
    #: The boss of the asking agent.
    own_boss: AgentId | None = None
    #: Whether the asking agent and the one that is acted upon have the same boss, agent or person.
    same_boss: bool = False
    #: The agent that a question was put to, or passed on to; the board when None.
    asked: AgentId | None = None
    #: Whether the mail answers a question of its receiver that is the asking agent's to answer.
    awaits_answer: bool = False
    #: The company's rule for mail.
    messaging: Messaging = Messaging.CHAIN
    #: Whether the mail goes to a person with authority over the asking agent.
    receiver_is_board: bool = False
    #: Whether the mail is to be run in the background, for the asking agent.
    to_background: bool = False
    #: Whether the mail goes to a channel, and whether the asking agent is bound to that kind.
    to_channel: bool = False
    bound: bool = False
    #: Whether the message went from one report of the asking agent to another.
    among_reports: bool = False
    #: Whether the file came to the asking person by mail.
    received: bool = False
    #: Whether a person made the halt or the pause that is to be lifted.
    by_person: bool = False
    #: The agent that made the halt, and its bosses upward.
    maker: tuple[AgentId, ...] = ()
    #: The grant that is acted upon.
    grant: Grant | None = None
    #: How the asking agent stands to the outcome.
    relation: Relation = Relation.NONE
    #: Whether the outcome was handed over as a whole.
    delegated: bool = False
    #: What was said about the asking agent and hiring.
    can_create_agents: bool | None = None
    #: Whether the asking agent leads the company.
    is_ceo: bool = False
    #: A new agent for an outcome that the asking agent hands over, not for a post.
    for_delegation: bool = False
    #: The agent that asked for the approval.
    requester: AgentId | None = None
    #: Whether Remit itself opens and closes the outcome.
    kept_by_remit: bool = False
    #: The person in the seat of the agent that is acted upon.
    seat_user: UserId | None = None
    #: A document about an agent, its memory or its log: it and its bosses may read it.
    about_agent: bool = False
    #: Its memory, which it also writes.
    is_memory: bool = False
    #: Over whom the asking agent has a say by its level.
    reach: Reach = Reach.NOBODY
    #: The asking agent and its bosses upward.
    above: tuple[AgentId, ...] = ()
    #: Whether whom it concerns has the level `boss`.
    over_boss: bool = False
    #: Whether only people decide it, such as who gets a secret.
    for_people: bool = False


def decide(actor: Principal, action: Action, resource: Resource | None, facts: Facts) -> Decision:
    """May `actor` do `action` to `resource` (the company itself when None), given the facts?"""
    if actor.kind is ActorKind.SYSTEM:
        return _allow("system", "Remit does this by itself.", "rule:system")
    if actor.kind is ActorKind.USER:
        decision = _decide_user(actor, action, facts)
    else:
        decision = _decide_agent(actor, action, resource, facts)
        if _may_be_overruled(decision) and _governs(actor, action, resource, facts):
            decision = _allow("boss_level", "You have the say there by your level.", BOSS_LEVEL)
    if facts.kept_by_remit and decision.allowed and action in _CHANGING_OUTCOMES:
        return _deny("kept_by_remit", "Remit opens and closes this outcome by itself.")
    return decision


#: What a decision rests on that follows from the level of the asking agent.
BOSS_LEVEL = "rule:boss_level"


def _may_be_overruled(decision: Decision) -> bool:
    """What was said explicitly, and what holds for every agent, goes before a level."""
    return decision.effect is Effect.DENY and decision.reason not in (
        "denied_by_grant",
        "agent_inactive",
        "own_mandate",
        "not_bound",
    )


def _governs(actor: Principal, action: Action, resource: Resource | None, facts: Facts) -> bool:
    if facts.reach is Reach.NOBODY:
        return False
    if action is Action.APPROVAL_DECIDE and any(
        grant.mode is not Mode.ALLOW and grant.live(facts.now)
        for grant in _own(facts.held, actor, resource)
    ):
        return False  # somebody said that it does not decide, or that a person does
    return governs(
        action.value,
        actor.id,
        facts.place,
        reach=facts.reach,
        above=facts.above,
        over_boss=facts.over_boss,
        for_people=facts.for_people,
        by_person=facts.by_person,
        requester=facts.requester,
    )


def _decide_user(actor: Principal, action: Action, facts: Facts) -> Decision:
    if action is Action.COMPANY_CREATE:
        if actor.operator:
            return _allow("operator", "You run this instance.", "rule:operator")
        return _deny("not_operator", "Only an operator of the instance creates companies.")
    if facts.to_background:
        return _deny("agents_only", "Only agents have background jobs.")
    if facts.to_channel:
        return _deny("agents_only", "Only agents are bound to channels.")
    membership = facts.membership
    if membership is not None and action is Action.KEY_CHANGE and facts.seat_user == actor.id:
        return _allow("seat", "You hold this agent's seat.", "rule:seat")
    if membership is None:
        return _deny("not_a_member", "You have no part in this company.", conceal=True)
    if action in _OPERATING and not actor.operator:
        return _deny("not_operator", "Only an operator of the instance does this.")
    if action is Action.MCP_SERVER_CALL:
        return _deny("agents_only", "Agents use MCP servers; people let them.")
    if membership.role is UserRole.OBSERVER and action not in _LOOKING:
        return _deny("observer", "Observers look and do not change.")
    if action is Action.REPO_ADD and not actor.operator:
        return _deny("not_operator", "Only an operator says what this machine fetches.")
    scope = membership.scope_agent_id
    if scope is None:
        return _allow("board", f"You are {membership.role.value} of the company.", "rule:board")
    if action is Action.COMPANY_READ or (
        action in (Action.AGENT_READ, Action.FILE_SEE) and facts.listed
    ):
        return _allow("member", "Members see who works here and what exists.", "rule:member")
    if action is Action.MESSAGE_SEND and facts.receiver_is_board:
        return _allow("member", "You write to the board over your part.", "rule:member")
    if action in (Action.FILE_SEE, Action.FILE_READ) and facts.received:
        return _allow("received", "It was sent to you.", "rule:received")
    if action in _COMPANY_WIDE:
        return _deny("outside_scope", "This concerns the whole company, not only your part.")
    if scope in facts.place:
        return _allow("board", "It lies in your part of the company.", "rule:board")
    return _deny(
        "outside_scope", "It lies outside your part of the company.", conceal=not facts.listed
    )


def _decide_agent(
    actor: Principal, action: Action, resource: Resource | None, facts: Facts
) -> Decision:
    if actor.agent_status not in OPERATIONAL:
        status = actor.agent_status or AgentStatus.TERMINATED
        return _deny("agent_inactive", f"This agent is {status.value.replace('_', ' ')}.")
    if action in _EVERY_AGENT:
        return _allow("member", "Every agent of the company may.", "rule:member")
    if action in OUTCOME_ACTIONS:
        held = tuple(g for g in facts.held if g.holder_id == actor.id and g.resource == resource)
        return decide_outcome(action.value, held, facts.relation, facts.delegated, facts.now)
    if action.value in GOVERNING:
        return decide_governance(
            action.value,
            actor.id,
            facts.place,
            _own(facts.held, actor, resource),
            facts.now,
            is_ceo=facts.is_ceo,
            can_create_agents=facts.can_create_agents,
            for_delegation=facts.for_delegation,
            requester=facts.requester,
            for_people=facts.for_people,
        )
    if action in (Action.AGENT_CONTROL, Action.AGENT_TERMINATE):
        # Supervision is transitive, and never reaches oneself or upward.
        if actor.id not in facts.place[1:]:
            return _deny("not_below_you", "You supervise only who works below you.")
        if facts.by_person:
            return _deny("paused_by_person", "A person paused it; no agent lifts that.")
        return _allow("ancestor", "It works below you.", "rule:ancestor")
    if action in (Action.HALT_STOP, Action.HALT_GO):
        return _decide_halt(actor, action, facts)
    if action is Action.MESSAGE_SEND:
        return _decide_message(actor, resource, facts)
    if action in _ITS_OWN:
        if facts.place and facts.place[0] == actor.id:
            return _allow("self", "It is your own.", "rule:self")
        if action is Action.MESSAGE_READ and facts.among_reports:
            return _allow("common_boss", "Your reports write to each other.", "rule:common_boss")
        return _deny("not_yours", "It belongs to another agent.", conceal=True)
    if action is Action.QUESTION_ANSWER:
        if facts.target_boss is not None and facts.target_boss == actor.id:
            return _allow("boss", "Your report asks you.", "rule:boss")
        if actor.id in _passed_by(facts):
            return _allow("asked", "It was passed on to you.", "rule:asked")
        return _deny("not_asked", "It was put to somebody else.", conceal=True)
    if action is Action.THREAD_CANCEL:
        if actor.id in facts.place:
            return _allow("ancestor", "It is yours, or of somebody below you.", "rule:ancestor")
        return _deny("not_below_you", "Only its owner and those above cancel it.", conceal=True)
    if action is Action.LOG_WRITE:
        if facts.place and facts.place[0] == actor.id:
            return _allow("self", "It is your own log.", "rule:self")
        return _deny("not_your_log", "An agent submits to its own log.")
    if action in _LEVEL or action is Action.FILE_SEE:
        held = _own(facts.held, actor, resource)
        by_rule = _about_agent(actor, action, facts) if facts.about_agent else None
        given = _decide_file(action, held, facts)
        return by_rule if by_rule is not None and given.reason != "denied_by_grant" else given
    if action in _BY_CAPABILITY:
        return holding(_own(facts.held, actor, resource), Level.USE, facts.now)
    if action is Action.GRANT_GIVE:
        if facts.target_boss is not None and facts.target_boss == actor.id:
            return _allow("boss", "It is your report.", "rule:boss")
        return _deny("not_your_report", "You can grant only to your own direct reports.")
    if action is Action.GRANT_REVOKE:
        if facts.grant is not None and facts.grant.granted_by_agent == actor.id:
            return _allow("granter", "You gave this grant.", f"grant:{facts.grant.id}")
        if facts.grant is not None and _own_to_give_up(actor, facts.grant):
            return _allow("holder", "You give up what you hold.", f"grant:{facts.grant.id}")
        return _deny(
            "not_your_grant",
            "Only who gave a grant, its holder or the board can revoke it.",
            conceal=True,
        )
    if action is Action.GRANT_READ:
        if facts.place and facts.place[0] == actor.id:
            return _allow("self", "It is your own.", "rule:self")
        if facts.target_boss is not None and facts.target_boss == actor.id:
            return _allow("boss", "It is your report's.", "rule:boss")
        return _deny("not_your_report", "You see your own capabilities and your reports'.")
    return _deny("board_only", "Only the board does this.")


def _decide_halt(actor: Principal, action: Action, facts: Facts) -> Decision:
    """An agent stops who works below it, and lifts what it or somebody below it stopped."""
    if actor.id not in facts.place[1:]:
        return _deny("not_below_you", "You stop and let go on only who works below you.")
    if action is Action.HALT_GO and facts.by_person:
        return _deny("stopped_by_person", "A person stopped it; no agent lifts that.")
    if action is Action.HALT_GO and actor.id not in facts.maker:
        return _deny("stopped_from_above", "Somebody who is not below you stopped it.")
    return _allow("ancestor", "It works below you.", "rule:ancestor")


def _passed_by(facts: Facts) -> tuple[AgentId, ...]:
    """Who was asked one after the other: from the boss of who asks up to who is asked now."""
    if facts.asked is None or facts.asked not in facts.place:
        return ()
    return facts.place[1 : facts.place.index(facts.asked) + 1]


def _decide_message(actor: Principal, resource: Resource | None, facts: Facts) -> Decision:
    """An agent writes to itself, its boss and its reports; to others as the company has it."""
    held = tuple(g for g in facts.held if g.holder_id == actor.id and g.resource == resource)
    granted = holding(held, Level.USE, facts.now)
    if granted.reason == "denied_by_grant":
        return granted
    if facts.to_channel and not facts.bound:
        # A capability on the channel can forbid or ask, and takes the place of no binding.
        return _deny("not_bound", "You are not bound to a channel of that kind.")
    by_rule = _message_rule(actor, resource.id if resource is not None else "", facts)
    if by_rule is not None:
        # What was said explicitly goes before what follows from the tree.
        gate = condition(held, Level.USE, facts.now)
        return gate or _allow(by_rule[0], by_rule[1], f"rule:{by_rule[0]}")
    if granted.effect is not Effect.DENY:
        return granted
    return _deny("not_in_reach", "You write to your boss and to your own reports.")


#: Each setting adds to the one before it.
_SIBLINGS = frozenset({Messaging.TEAM, Messaging.SUBTREE, Messaging.OPEN})


def _message_rule(actor: Principal, receiver: str, facts: Facts) -> tuple[str, str] | None:
    if facts.receiver_is_board:
        return "board", "It is the board over you."
    if facts.to_background:
        return "self", "It is a job of your own."
    if facts.to_channel:
        return "bound", "The channel is bound to you."
    if not receiver:
        return None
    if receiver == actor.id:
        return "self", "You write to yourself."
    if facts.target_boss is not None and facts.target_boss == actor.id:
        return "boss", "It is your report."
    if facts.own_boss is not None and facts.own_boss == receiver:
        return "report", "It is your boss."
    if facts.awaits_answer:
        return "asked", "It awaits your answer."
    if facts.messaging in _SIBLINGS and facts.same_boss:
        return "team", "You have the same boss."
    if facts.messaging is Messaging.SUBTREE and actor.id in facts.place[1:]:
        return "subtree", "It works below you."
    if facts.messaging is Messaging.OPEN and facts.place:
        return "open", "Everybody here may write to everybody."
    return None


def _own_to_give_up(actor: Principal, grant: Grant) -> bool:
    """A right can be given up by its holder; a prohibition or a condition cannot."""
    return grant.holder_id == actor.id and grant.mode is Mode.ALLOW


def _about_agent(actor: Principal, action: Action, facts: Facts) -> Decision | None:
    """What follows from whom a document is about."""
    writing = action is Action.FILE_WRITE
    if facts.place and facts.place[0] == actor.id and (not writing or facts.is_memory):
        return _allow("self", "It is about you.", "rule:self")
    if actor.id in facts.place[1:] and not writing:
        return _allow("ancestor", "It is about an agent below you.", "rule:ancestor")
    return None


def _decide_file(action: Action, held: tuple[Grant, ...], facts: Facts) -> Decision:
    if action is Action.FILE_SEE and facts.listed:
        return _allow("listed", "The file is listed.", "rule:listed")
    need = _LEVEL.get(action, Level.READ)
    decision = holding(held, need, facts.now)
    if decision.effect is Effect.DENY and not facts.listed:
        # An unlisted file is known to its readers and writers alone.
        known = action is Action.FILE_WRITE and (
            holding(held, Level.READ, facts.now).effect is not Effect.DENY
        )
        if not known:
            return _deny(decision.reason, decision.sentence, decision.basis, conceal=True)
    if decision.effect is Effect.ASK and action is Action.FILE_SEE:
        return _allow("asked", "You may ask to read it, so you know of it.", decision.basis)
    return decision


def _own(held: tuple[Grant, ...], actor: Principal, resource: Resource | None) -> tuple[Grant, ...]:
    """Only the actor's own grants on this very resource count, whatever was loaded."""
    if resource is None:
        return ()
    return tuple(
        grant
        for grant in held
        if grant.holder_id == actor.id
        and grant.resource_id == resource.id
        and grant.kind is resource.kind
    )


def _allow(reason: str, sentence: str, basis: str) -> Decision:
    return Decision(Effect.ALLOW, reason, sentence, basis)


def _deny(
    reason: str, sentence: str, basis: str | None = None, *, conceal: bool = False
) -> Decision:
    return Decision(Effect.DENY, reason, sentence, basis or f"rule:{reason}", conceal)
