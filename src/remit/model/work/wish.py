"""Wishes: letters from people to agents, each to be answered."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import HOUR, MINUTE, Micros
from remit.ids import AgentId, CompanyId, MessageId, UserId

#: Time for the agent that ended the last part of a wish to write to the person about it.
GRACE: Micros = 2 * MINUTE
#: Missed wishes are found after this.
LOOK_AGAIN: Micros = HOUR
#: A letter that nobody took up for so long is shown to its sender as unanswered.
UNREAD_SHOWN: Micros = 10 * MINUTE


WishStatus = StrEnum("WishStatus", "OPEN ENDED")


@dataclass(frozen=True, slots=True)
class Wish:
    message_id: MessageId
    company_id: CompanyId
    user_id: UserId
    agent_id: AgentId
    status: WishStatus
    #: When Remit looks again whether everything made of it has ended.
    look_at: Micros
    created_at: Micros
    ended_at: Micros | None
    #: `answered`, `result`, `judged`, `taken back`, or `discarded`.
    ended_why: str | None
    #: Read in the same run as this letter, of which everything was made that the run made.
    shared_with: MessageId | None = None
