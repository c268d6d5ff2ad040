"""The decision function."""

from dataclasses import replace
from enum import StrEnum

from remit.authority.boss import governs
from remit.authority.capability import condition, holding
from remit.authority.facts import Facts
from remit.authority.governance import GOVERNING, decide_governance
from remit.authority.outcome import decide_outcome
from remit.authority.repository import changing
from remit.ids import AgentId
from remit.model.messaging.mail import Messaging
from remit.model.organisation.agent import OPERATIONAL, AgentStatus
from remit.model.organisation.decision import BY_REMIT, Decision, Effect, allow, deny
from remit.model.organisation.grant import Grant, Level, Mode, Resource
from remit.model.organisation.permission import Reach
from remit.model.organisation.principal import ActorKind, Principal
from remit.model.organisation.user import UserRole


class Action(StrEnum):
    """The actions that can be asked for. The value is the name in events."""

    COMPANY_CREATE = "company.create"
    #: Diagnose the instance's machine, and back everything up.
    INSTANCE_OPERATE = "instance.operate"
    COMPANY_READ = "company.read"
    COMPANY_CHANGE = "company.change"
    COMPANY_EXPORT = "company.export"
    #: Let a company that came from outside begin on the instance's machine.
    COMPANY_ACCEPT = "company.accept"
    #: The permission levels and their actions.
    POLICY_READ = "policy.read"
    POLICY_CHANGE = "policy.change"
    USER_READ = "user.read"
    USER_CHANGE = "user.change"
    AGENT_READ = "agent.read"
    #: Create an agent directly, without approval.
    AGENT_APPOINT = "agent.appoint"
    AGENT_CREATE = "agent.create"
    AGENT_PERMIT = "agent.permit"
    #: Set an agent's permission level.
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
    #: Halt a company or a subtree, and lift the halt.
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
    #: Submit for a verdict.
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
    #: Name an address that this machine will fetch from.
    REPO_ADD = "repo.add"
    REPO_CHANGE = "repo.change"
    #: Fetch it now.
    REPO_SYNC = "repo.sync"
    REPO_USE = "repo.use"
    #: Show a folder of the machine to runs.
    FOLDER_CHANGE = "folder.change"
    #: Changes of a repository: propose, merge, view, comment on.
    CHANGE_PROPOSE = "change.propose"
    CHANGE_MERGE = "change.merge"
    CHANGE_READ = "change.read"
    CHANGE_COMMENT = "change.comment"
    AGENT_PURGE = "agent.purge"
    BINDING_READ = "binding.read"
    BINDING_CHANGE = "binding.change"
    AGENT_LEND = "agent.lend"


#: Read-only actions, which are all that an observer may do.
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
        Action.CHANGE_READ,
        Action.BINDING_READ,
    }
)

#: Actions on the company as a whole: authority over one subtree is not enough.
_COMPANY_WIDE = frozenset(
    {
        Action.COMPANY_CHANGE,
        Action.COMPANY_EXPORT,
        Action.COMPANY_ACCEPT,
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
        Action.FOLDER_CHANGE,
        Action.AGENT_PURGE,
    }
)

#: Actions on no company, or on all of them.
_OF_INSTANCE = frozenset({Action.COMPANY_CREATE, Action.INSTANCE_OPERATE})
#: Actions on the instance's own machine: authority in the company is not enough.
_OPERATING = frozenset(
    {
        Action.COMPANY_ACCEPT,
        Action.SECRET_CHANGE,
        Action.MCP_SERVER_CHANGE,
        Action.FOLDER_CHANGE,
    }
)

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

#: Actions for which an agent needs a capability: `instance.configure` for all things, or the right
#: to use the one thing.
_BY_CAPABILITY = frozenset(
    {Action.MCP_SERVER_READ, Action.MCP_SERVER_CALL, Action.REPO_READ, Action.REPO_SYNC}
)

#: Actions on a repository, by the level that an agent holds.
_OF_REPO = {
    Action.REPO_USE: Level.READ,
    Action.CHANGE_READ: Level.READ,
    Action.CHANGE_COMMENT: Level.PROPOSE,
    Action.CHANGE_PROPOSE: Level.PROPOSE,
    Action.CHANGE_MERGE: Level.MERGE,
}

#: Actions that an agent may do with its own things only.
_ITS_OWN = frozenset(
    {Action.SCHEDULE_CHANGE, Action.QUESTION_ASK, Action.MESSAGE_READ, Action.BINDING_READ}
)

_LEVEL = {
    Action.FILE_READ: Level.READ,
    Action.FILE_AUDIT: Level.READ,
    Action.FILE_WRITE: Level.WRITE,
}


def decide(actor: Principal, action: Action, resource: Resource | None, facts: Facts) -> Decision:
    """May `actor` do `action` to `resource` (the company itself when None), given the facts?"""
    if actor.kind is ActorKind.SYSTEM:
        return BY_REMIT
    if actor.kind is ActorKind.USER:
        decision = _decide_user(actor, action, facts)
    else:
        decision = _decide_agent(actor, action, resource, facts)
        if _may_be_overruled(decision) and _governs(actor, action, resource, facts):
            decision = allow("boss_level", "You have the say there by your level.", BOSS_LEVEL)
    if facts.kept_by_remit and decision.allowed and action in _CHANGING_OUTCOMES:
        return deny("kept_by_remit", "Remit opens and closes this outcome by itself.")
    return decision


#: The basis of a decision that follows from the level of the asking agent.
BOSS_LEVEL = "rule:boss_level"


def _may_be_overruled(decision: Decision) -> bool:
    """Return whether a level can change this refusal: explicit grants and rules for every agent
    cannot be overruled."""
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
        return False  # a grant denies it the decision, or leaves it to a person
    return governs(action.value, actor.id, facts)


def _decide_user(actor: Principal, action: Action, facts: Facts) -> Decision:
    if action in _OF_INSTANCE:
        if actor.operator:
            return allow("operator", "You run this instance.")
        what = "creates companies" if action is Action.COMPANY_CREATE else "does this"
        return deny("not_operator", f"Only an operator of the instance {what}.")
    if facts.to_background:
        return deny("agents_only", "Only agents have background jobs.")
    if facts.to_channel:
        return deny("agents_only", "Only agents are bound to channels.")
    membership = facts.membership
    if membership is not None and action is Action.KEY_CHANGE and facts.seat_user == actor.id:
        return allow("seat", "You hold this agent's seat.")
    if membership is None:
        return deny("not_a_member", "You have no part in this company.", conceal=True)
    if action in _OPERATING and not actor.operator:
        return deny("not_operator", "Only an operator of the instance does this.")
    if action is Action.MCP_SERVER_CALL:
        return deny("agents_only", "Agents use MCP servers; people let them.")
    if action is Action.CHANGE_PROPOSE:
        return deny("agents_only", "Agents propose changes; people push to the repository itself.")
    if membership.role is UserRole.OBSERVER and action not in _LOOKING:
        return deny("observer", "Observers look and do not change.")
    if action is Action.REPO_ADD and not actor.operator:
        return deny("not_operator", "Only an operator says what this machine fetches.")
    scope = membership.scope_agent_id
    if scope is None:
        return allow("board", f"You are {membership.role.value} of the company.", "rule:board")
    if action is Action.COMPANY_READ or (
        action in (Action.AGENT_READ, Action.FILE_SEE) and facts.listed
    ):
        return allow("member", "Members see who works here and what exists.")
    if action is Action.MESSAGE_SEND and facts.receiver_is_board:
        return allow("member", "You write to the board over your part.")
    if action in (Action.FILE_SEE, Action.FILE_READ) and facts.received:
        return allow("received", "It was sent to you.")
    if action in _COMPANY_WIDE:
        return deny("outside_scope", "This concerns the whole company, not only your part.")
    if scope in facts.place:
        return allow("board", "It lies in your part of the company.")
    return deny(
        "outside_scope", "It lies outside your part of the company.", conceal=not facts.listed
    )


def _decide_agent(
    actor: Principal, action: Action, resource: Resource | None, facts: Facts
) -> Decision:
    if actor.agent_status not in OPERATIONAL:
        status = actor.agent_status or AgentStatus.TERMINATED
        return deny("agent_inactive", f"This agent is {status.value.replace('_', ' ')}.")
    if action in _EVERY_AGENT:
        return allow("member", "Every agent of the company may.")
    if action in OUTCOME_ACTIONS:
        held = tuple(g for g in facts.held if g.holder_id == actor.id and g.resource == resource)
        return decide_outcome(action.value, held, facts.relation, facts.delegated, facts.now)
    if action.value in GOVERNING:
        held = _own(facts.held, actor, resource)
        return decide_governance(action.value, actor.id, held, facts)
    if action in (Action.AGENT_CONTROL, Action.AGENT_TERMINATE):
        # Supervision is transitive, and never reaches oneself or upward.
        if actor.id not in facts.place[1:]:
            return deny("not_below_you", "You supervise only who works below you.")
        if facts.by_person:
            return deny("paused_by_person", "A person paused it; no agent lifts that.")
        return allow("ancestor", "It works below you.")
    if action in (Action.HALT_STOP, Action.HALT_GO):
        return _decide_halt(actor, action, facts)
    if action is Action.MESSAGE_SEND:
        return _decide_message(actor, resource, facts)
    if action in _ITS_OWN:
        if facts.place and facts.place[0] == actor.id:
            return allow("self", "It is your own.")
        if action is Action.MESSAGE_READ and facts.among_reports:
            return allow("common_boss", "Your reports write to each other.")
        return deny("not_yours", "It belongs to another agent.", conceal=True)
    if action is Action.QUESTION_ANSWER:
        if facts.target_boss is not None and facts.target_boss == actor.id:
            return allow("boss", "Your report asks you.")
        if actor.id in _passed_by(facts):
            return allow("asked", "It was passed on to you.")
        return deny("not_asked", "It was put to somebody else.", conceal=True)
    if action is Action.THREAD_CANCEL:
        if actor.id in facts.place:
            return allow("ancestor", "It is yours, or of somebody below you.")
        return deny("not_below_you", "Only its owner and those above cancel it.", conceal=True)
    if action is Action.LOG_WRITE:
        if facts.place and facts.place[0] == actor.id:
            return allow("self", "It is your own log.")
        return deny("not_your_log", "An agent submits to its own log.")
    if action in _LEVEL or action is Action.FILE_SEE:
        held = _own(facts.held, actor, resource)
        by_rule = _about_agent(actor, action, facts) if facts.about_agent else None
        by_grant = _decide_file(action, held, facts)
        return by_rule if by_rule is not None and by_grant.reason != "denied_by_grant" else by_grant
    if action in _OF_REPO:
        return _decide_repo(actor, action, _own(facts.held, actor, resource), facts)
    if action in _BY_CAPABILITY:
        return holding(_own(facts.held, actor, resource), Level.USE, facts.now)
    if action is Action.GRANT_GIVE:
        if facts.for_people:
            return deny("people_decide", "Only people give access to the whole machine.")
        if facts.target_boss is not None and facts.target_boss == actor.id:
            return allow("boss", "It is your report.")
        return deny("not_your_report", "You can grant only to your own direct reports.")
    if action is Action.GRANT_REVOKE:
        if facts.grant is not None and facts.grant.granted_by_agent == actor.id:
            return allow("granter", "You gave this grant.", f"grant:{facts.grant.id}")
        if facts.grant is not None and _own_to_give_up(actor, facts.grant):
            return allow("holder", "You give up what you hold.", f"grant:{facts.grant.id}")
        return deny(
            "not_your_grant",
            "Only who gave a grant, its holder or the board can revoke it.",
            conceal=True,
        )
    if action is Action.GRANT_READ:
        if facts.place and facts.place[0] == actor.id:
            return allow("self", "It is your own.")
        if facts.target_boss is not None and facts.target_boss == actor.id:
            return allow("boss", "It is your report's.")
        return deny("not_your_report", "You see your own capabilities and your reports'.")
    return deny("board_only", "Only the board does this.")


def _decide_repo(
    actor: Principal, action: Action, held: tuple[Grant, ...], facts: Facts
) -> Decision:
    """Decide about a clone or a change. An author may view and comment on a change, and not judge
    it."""
    own = bool(facts.place) and facts.place[0] == actor.id
    if own and action is Action.CHANGE_MERGE:
        return deny("own_change", "Nobody judges a change of their own.")
    if own and action in (Action.CHANGE_READ, Action.CHANGE_COMMENT):
        return allow("self", "It is your own.")
    if actor.id in facts.place[1:] and action in (Action.CHANGE_READ, Action.CHANGE_COMMENT):
        return allow("ancestor", "It is of somebody below you.")
    need = _OF_REPO[action]
    if action is Action.CHANGE_READ:
        decision = holding(held, need, facts.now)
        return decision if decision.allowed else replace(decision, effect=Effect.DENY, conceal=True)
    if facts.into is None:
        return holding(held, need, facts.now)
    return changing(held, need, facts.into, facts.touched, facts.now)


def _decide_halt(actor: Principal, action: Action, facts: Facts) -> Decision:
    """An agent halts agents below it, and lifts halts that it or an agent below it made."""
    if actor.id not in facts.place[1:]:
        return deny("not_below_you", "You stop and let go on only who works below you.")
    if action is Action.HALT_GO and facts.by_person:
        return deny("stopped_by_person", "A person stopped it; no agent lifts that.")
    if action is Action.HALT_GO and actor.id not in facts.maker:
        return deny("stopped_from_above", "Somebody who is not below you stopped it.")
    return allow("ancestor", "It works below you.")


def _passed_by(facts: Facts) -> tuple[AgentId, ...]:
    """Return the agents that a question passed: from the asking agent's boss to the current one."""
    if facts.asked is None or facts.asked not in facts.place:
        return ()
    return facts.place[1 : facts.place.index(facts.asked) + 1]


def _decide_message(actor: Principal, resource: Resource | None, facts: Facts) -> Decision:
    """An agent writes to itself, its boss and its reports; to others by the company's policy."""
    held = tuple(g for g in facts.held if g.holder_id == actor.id and g.resource == resource)
    granted = holding(held, Level.USE, facts.now)
    if granted.reason == "denied_by_grant":
        return granted
    if facts.to_channel and not facts.bound:
        # A capability on the channel can deny or ask, but does not replace the binding.
        return deny("not_bound", "You are not bound to a channel of that kind.")
    by_rule = _message_rule(actor, resource.id if resource is not None else "", facts)
    if by_rule is not None:
        # An explicit grant goes before a rule of the tree.
        gate = condition(held, Level.USE, facts.now)
        return gate or allow(by_rule[0], by_rule[1], f"rule:{by_rule[0]}")
    if granted.effect is not Effect.DENY:
        return granted
    return deny("not_in_reach", "You write to your boss and to your own reports.")


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
    """The rule for documents about an agent: the agent and its bosses read them."""
    writing = action is Action.FILE_WRITE
    if facts.place and facts.place[0] == actor.id and (not writing or facts.is_memory):
        return allow("self", "It is about you.")
    if actor.id in facts.place[1:] and not writing:
        return allow("ancestor", "It is about an agent below you.")
    return None


def _decide_file(action: Action, held: tuple[Grant, ...], facts: Facts) -> Decision:
    if action is Action.FILE_SEE and facts.listed:
        return allow("listed", "The file is listed.")
    need = _LEVEL.get(action, Level.READ)
    decision = holding(held, need, facts.now)
    if decision.effect is Effect.DENY and not facts.listed:
        # An unlisted file is known to its readers and writers alone.
        known = action is Action.FILE_WRITE and (
            holding(held, Level.READ, facts.now).effect is not Effect.DENY
        )
        if not known:
            return deny(decision.reason, decision.sentence, decision.basis, conceal=True)
    if decision.effect is Effect.ASK and action is Action.FILE_SEE:
        return allow("asked", "You may ask to read it, so you know of it.", decision.basis)
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
