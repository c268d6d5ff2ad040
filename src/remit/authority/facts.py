"""The facts that a decision depends on: services load them, authority only judges."""

from dataclasses import dataclass
from typing import TypedDict

from remit.authority.outcome import Relation
from remit.clock import Micros
from remit.ids import AgentId, UserId
from remit.model.messaging.mail import Messaging
from remit.model.organisation.grant import Grant
from remit.model.organisation.permission import Reach
from remit.model.organisation.user import Membership


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a decision besides the actor, the action and the resource."""

    now: Micros
    #: The asking user's part in this company.
    membership: Membership | None = None
    #: The agents above the resource: its own first, then each boss upward. Empty for what belongs
    #: to the company as a whole, or when the tree cannot be trusted.
    place: tuple[AgentId, ...] = ()
    #: The asking agent's grants on the resource.
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
    #: Whether the mail answers a question of its receiver that the asking agent is to answer.
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
    #: The relation of the asking agent to the outcome.
    relation: Relation = Relation.NONE
    #: Whether the outcome was handed over as a whole.
    delegated: bool = False
    #: The asking agent's permission to create agents; None for the default.
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
    #: The reach of the asking agent's authority by its level.
    reach: Reach = Reach.NOBODY
    #: The asking agent and its bosses upward.
    above: tuple[AgentId, ...] = ()
    #: Whether the agent that it concerns has the level `boss`.
    over_boss: bool = False
    #: Whether only people decide it, such as who gets a secret.
    for_people: bool = False
    #: Of a change of a repository: its target branch, and the files that it touches.
    into: str | None = None
    touched: tuple[str, ...] = ()


class GivenFacts(TypedDict, total=False):
    """The facts that a service passes to a decision; see `Facts` for their meaning."""

    place: tuple[AgentId, ...]
    held: tuple[Grant, ...]
    listed: bool
    target_boss: AgentId | None
    own_boss: AgentId | None
    same_boss: bool
    asked: AgentId | None
    awaits_answer: bool
    messaging: Messaging
    receiver_is_board: bool
    to_background: bool
    to_channel: bool
    bound: bool
    among_reports: bool
    received: bool
    by_person: bool
    maker: tuple[AgentId, ...]
    grant: Grant | None
    relation: Relation
    delegated: bool
    can_create_agents: bool | None
    is_ceo: bool
    for_delegation: bool
    requester: AgentId | None
    kept_by_remit: bool
    seat_user: UserId | None
    about_agent: bool
    is_memory: bool
    reach: Reach
    above: tuple[AgentId, ...]
    over_boss: bool
    for_people: bool
    into: str | None
    touched: tuple[str, ...]
