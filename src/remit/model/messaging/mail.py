"""Mail: messages, their deliveries, and addresses."""

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from remit.clock import DAY, Micros
from remit.errors import BadInput
from remit.ids import (
    AgentId,
    CompanyId,
    FileId,
    MessageId,
    OutcomeId,
    QuestionId,
    RunId,
    UserId,
)
from remit.model.organisation.principal import ActorKind

#: Attempts after which a person must look at a message.
MOST_ATTEMPTS = 3
#: Failed runs with the same letters after which these are delivered one at a time.
MOST_FAULTS_TOGETHER = 3
#: The most letters in one turn of an agent.
MOST_PER_TURN = 10
#: How long a letter to know stays unread before it starts a run of its own.
LONGEST_UNKNOWN: Micros = DAY
#: Longest chain of answers, so that agents do not answer each other for ever.
MOST_HOPS = 20
MOST_ATTACHMENTS = 50
#: Why a letter that was to be tried at most once is done; it is part of an index.
TRIED_ONCE = "tried once, as asked"
LONGEST_SUBJECT = 200


#: Receivers besides bosses, reports and the board; each policy includes the one before. TEAM:
#: agents with the same boss. SUBTREE: all agents below.
Messaging = StrEnum("Messaging", "CHAIN TEAM SUBTREE OPEN")


#: Reason of a message that Remit sent in an agent's place. LAST_WORDS: the final text of a run that
#: did nothing else. REPORT: that of a run that acted and did not write. RESULT: the end of a wish.
Mark = StrEnum("Mark", "LAST_WORDS REPORT RESULT")


#: Sentences for people.
MARKS = {
    Mark.LAST_WORDS: "result of the run: it answered without doing anything",
    Mark.REPORT: "result of the run: it did not reply itself",
    Mark.RESULT: "sent by Remit: what was made of it has ended",
}


#: DEFERRED: not due yet. LEASED: claimed by a run. DEAD: out of attempts, or its receiver is gone;
#: a person must look at it.
DeliveryStatus = StrEnum("DeliveryStatus", "DEFERRED QUEUED LEASED DONE DEAD CANCELLED")


@dataclass(frozen=True, slots=True)
class Message:
    id: MessageId
    company_id: CompanyId
    thread_id: MessageId
    reply_to: MessageId | None
    sender_kind: ActorKind
    sender_agent_id: AgentId | None
    sender_user_id: UserId | None
    sender_run_id: RunId | None
    #: Derived from the sender, never from the content.
    from_board: bool
    #: Address as its sender wrote it.
    address: str
    subject: str
    body_file_id: FileId
    body_version: int
    #: JSON: ids of files.
    attachments: str
    hops: int
    at_most_once: bool
    #: Its role besides a letter: a question's id, or a capability request as JSON.
    question_id: QuestionId | None
    request: str | None
    #: Whether it is the answer of a background job.
    background: bool
    #: Outside address that it came from, if it came through a channel.
    channel: str | None
    created_at: Micros
    #: Whether its sender waits for a reply to it.
    expects_reply: bool = False
    #: The person's letter that it results from.
    origin_id: MessageId | None = None
    #: One of `Mark`, if Remit sent it in an agent's place.
    mark: str | None = None
    #: The speaker's name in the chat system.
    outside_sender: str | None = None
    #: The matter of a letter of Remit, such as `account:<id>`: unread copies go when it is over.
    about: str | None = None
    #: Whether Remit wrote it to be known, not to be acted on: it starts no run by itself.
    to_know: bool = False
    #: The outcome that it is about.
    outcome_id: OutcomeId | None = None

    @property
    def is_to_itself(self) -> bool:
        """Whether a run wrote it to its own agent."""
        return self.sender_run_id is not None and self.address == f"agent:{self.sender_agent_id}"


@dataclass(frozen=True, slots=True)
class Delivery:
    id: int
    company_id: CompanyId
    message_id: MessageId
    agent_id: AgentId | None
    user_id: UserId | None
    status: DeliveryStatus
    deliver_at: Micros
    position: int | None
    attempt: int = 1
    run_id: RunId | None = None
    ended_at: Micros | None = None
    ended_why: str | None = None
    #: Whether a run that claimed it failed, so that it may have been handled.
    begun: bool = False
    #: Number of runs with it that failed for no other known reason.
    faults: int = 0
    #: The last of these runs that had claimed nothing else.
    alone_run_id: RunId | None = None

    @property
    def may_have_been_handled(self) -> bool:
        """Whether an earlier run may have handled it, at least in part."""
        return self.begun or self.attempt > 1


def heading(what: str, text: str) -> str:
    """Make a subject from the first line of a text, without control characters."""
    first = next(iter(text.strip().splitlines()), "")
    plain = "".join(" " if unicodedata.category(char) in ("Cc", "Cf") else char for char in first)
    return f"{what}: {plain}"[:LONGEST_SUBJECT]


#: Marks that mail programs put before the subject of an answer, in several languages.
_ANSWER = re.compile(r"(?:(?:re|aw|antw|sv|vs|odp|rif|res)(?:\[\d+\])?\s*:\s*)+", re.IGNORECASE)


def answer_subject(subject: str) -> str:
    """Return the subject of an answer; empty for a letter without one."""
    bare = _ANSWER.sub("", subject, count=1).strip() if _ANSWER.match(subject) else subject.strip()
    return f"Re: {bare}"[:LONGEST_SUBJECT] if bare else ""


#: BACKGROUND: no inbox; a message there is run once as a job.
AddressKind = StrEnum("AddressKind", "AGENT USER BOARD CHANNEL BACKGROUND")


@dataclass(frozen=True, slots=True)
class Address:
    kind: AddressKind
    #: A name or id; empty for the board.
    who: str = ""


#: Address of background jobs.
BACKGROUND = "agent:background"
_CHANNEL = re.compile(r"[a-z][a-z0-9-]{0,31}:[^\s]{1,128}")


def parse_address(text: object) -> Address:
    """Read `agent:<name>`, `agent:background`, `user:<name>`, `board` or `channel:<kind>:<id>`."""
    if not isinstance(text, str) or len(text) > 200:
        raise BadInput("to must be an address.", "Write it like agent:writer or board.")
    text = text.strip()
    if text.casefold() in ("board", "human"):
        return Address(AddressKind.BOARD)
    if text.removeprefix("agent:").casefold() == AddressKind.BACKGROUND:
        return Address(AddressKind.BACKGROUND)
    kind, colon, who = text.partition(":")
    if colon and who and kind in ("agent", "user"):
        return Address(AddressKind(kind), who)
    if colon and kind == "channel" and _CHANNEL.fullmatch(who) and who.isprintable():
        return Address(AddressKind.CHANNEL, who)
    if not colon and text:
        return Address(AddressKind.AGENT, text)
    raise BadInput(f"{text[:60]!r} is not an address.", "Write it like agent:writer or board.")
