"""Mail: messages, their deliveries, and who they are for."""

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.errors import BadInput
from remit.ids import AgentId, CompanyId, FileId, MessageId, QuestionId, RunId, UserId
from remit.model.organisation.principal import ActorKind

#: A message that was tried this often without success is for a person to look at.
MOST_ATTEMPTS = 3
#: After so many failed runs with the same letters, they are handed over one at a time.
MOST_FAULTS_TOGETHER = 3
#: The most letters in one turn of an agent.
MOST_PER_TURN = 10
#: Answers to answers to answers end here.
MOST_HOPS = 20
MOST_ATTACHMENTS = 50
LONGEST_SUBJECT = 200


#: Receivers besides bosses, reports and the board. Each setting adds to the one before: TEAM
#: those with the same boss, SUBTREE everybody below.
Messaging = StrEnum("Messaging", "CHAIN TEAM SUBTREE OPEN")


#: Why Remit sent something to a person that nobody thought of sending. LAST_WORDS: of a run that
#: did nothing else. REPORT: the last words of a run that did something and did not write. RESULT:
#: what became of a wish.
Mark = StrEnum("Mark", "LAST_WORDS REPORT RESULT")


#: As people read it.
MARKS = {
    Mark.LAST_WORDS: "result of the run: it answered without doing anything",
    Mark.REPORT: "result of the run: it did not reply itself",
    Mark.RESULT: "sent by Remit: what was made of it has ended",
}


#: DEFERRED: waits for its time. LEASED: a run has taken it up. DEAD: tried too often, or its
#: receiver is gone; a person must look at it.
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
    #: Derived from who sent it, never from what it says.
    from_board: bool
    #: As it was written on the envelope.
    address: str
    subject: str
    body_file_id: FileId
    body_version: int
    #: JSON: ids of files.
    attachments: str
    hops: int
    at_most_once: bool
    #: Its second role besides a letter: a question's id, or a request for a capability as JSON.
    question_id: QuestionId | None
    request: str | None
    #: The answer of a background job.
    background: bool
    #: The address outside from which it came, if it came through a channel.
    channel: str | None
    created_at: Micros
    #: Whether its sender waits for a reply to it.
    expects_reply: bool = False
    #: The letter of a person that it came of.
    origin_id: MessageId | None = None
    #: One of `Mark`, when Remit saw to it that it was sent.
    mark: str | None = None
    #: The speaker outside, by the name used there.
    outside_sender: str | None = None


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
    #: Whether a run had taken it up and did not end well, so that it may have been handled.
    begun: bool = False
    #: How many runs that had taken it up failed for no other known reason.
    faults: int = 0
    #: The first of these that had taken up nothing else.
    alone_run_id: RunId | None = None


def heading(what: str, text: str) -> str:
    """A subject made of the first line of a text, whatever characters are in it."""
    first = next(iter(text.strip().splitlines()), "")
    plain = "".join(" " if unicodedata.category(char) in ("Cc", "Cf") else char for char in first)
    return f"{what}: {plain}"[:LONGEST_SUBJECT]


#: BACKGROUND: nobody's inbox; what is sent there is run once.
AddressKind = StrEnum("AddressKind", "AGENT USER BOARD CHANNEL BACKGROUND")


@dataclass(frozen=True, slots=True)
class Address:
    kind: AddressKind
    #: A name or id; empty for the board.
    who: str = ""


#: How the background is written on an envelope.
BACKGROUND = "agent:background"
_CHANNEL = re.compile(r"[a-z][a-z0-9-]{0,31}:[^\s]{1,128}")


def parse_address(text: object) -> Address:
    """Read `agent:<name>`, `agent:background`, `user:<name>`, `board` or `channel:<kind>:<id>`."""
    if not isinstance(text, str) or len(text) > 200:
        raise BadInput("to must be an address.", "Write it like agent:writer or board.")
    text = text.strip()
    if text in ("board", "human"):
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
