"""Wishes: letters from people to agents, each of which must be answered."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import DAY, HOUR, MINUTE, Micros
from remit.ids import AgentId, CompanyId, MessageId, UserId

#: Time in which the agent that ended a wish's last part may write to the person about it.
GRACE: Micros = 2 * MINUTE
#: Time after which an open wish is checked again, in case its end was missed.
LOOK_AGAIN: Micros = HOUR
#: Time after which an unclaimed letter is shown to its sender as unanswered.
UNREAD_SHOWN: Micros = 10 * MINUTE
#: Time without any movement after which a wish is shown to its sender.
STILL_SHOWN: Micros = DAY
#: How an agent without a model begins its answer to a letter.
NOTHING_DONE = "I have no model, so nothing was done about your message; I only read it."


WishStatus = StrEnum("WishStatus", "OPEN ENDED")


@dataclass(frozen=True, slots=True)
class Wish:
    message_id: MessageId
    company_id: CompanyId
    user_id: UserId
    agent_id: AgentId
    status: WishStatus
    #: Time of the next check whether everything made of it has ended.
    look_at: Micros
    created_at: Micros
    ended_at: Micros | None
    #: `answered`, `result`, `judged`, `taken back`, `discarded`, or `no model`.
    ended_why: str | None
    #: Another letter of the same run, to which everything that the run made is attributed.
    shared_with: MessageId | None = None
