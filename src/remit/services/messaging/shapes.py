"""Shapes of mail, questions and schedules."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from remit.model.execution.run import RunStatus
from remit.model.messaging.mail import DeliveryStatus
from remit.model.messaging.question import QuestionStatus
from remit.model.messaging.schedule import ScheduleStatus
from remit.model.organisation.agent import AgentStatus
from remit.model.work.outcome import OutcomeStatus
from remit.services.rights.shapes import CapabilityRequestShape
from remit.services.shape_basics import (
    CycleToldShape,
    EndedShape,
    Moment,
    NamedShape,
    OwnedShape,
    TitledShape,
)


class EndedMailShape(EndedShape):
    #: Background jobs that were cancelled.
    jobs: list[str]


class MessageShape(OwnedShape):
    thread_id: str
    reply_to: str | None
    sender: str
    from_board: bool
    to: str
    subject: str
    file_id: str
    attachments: list[str]
    question_id: str | None
    request: CapabilityRequestShape | None
    origin_id: str | None
    mark: str | None
    #: The speaker, if the channel names one.
    outside_sender: str | None
    created_at: Moment


class SentMessageShape(MessageShape, CycleToldShape):
    #: Why its receiver will not read it soon; None if it will.
    not_started: str | None


class SentRequestShape(MessageShape, CycleToldShape):
    """A message that asks for a capability."""


class NamedMessageShape(MessageShape):
    sender_name: str
    to_name: str


class BodyShape(TypedDict):
    body: str
    #: Whether the body was cut.
    body_cut: bool


class DeliveryShape(TypedDict):
    to: str
    to_name: str
    status: Annotated[str, DeliveryStatus]
    attempt: int
    deliver_at: Moment
    ended_at: Moment | None
    ended_why: str | None
    job_id: NotRequired[str]


class LetterStateShape(TypedDict):
    """Where a letter of a person stands: a word and a sentence."""

    state: str
    sentence: str


class LetterShape(MessageShape, BodyShape):
    sender_name: str


class ListedMessageShape(NamedMessageShape):
    unread: bool
    deliveries: list[DeliveryShape]


class FollowedMessageShape(ListedMessageShape, LetterStateShape, BodyShape):
    """Letter of the calling person, and its result."""


class ReadMessageShape(ListedMessageShape, BodyShape):
    pass


class TracedRunShape(TypedDict):
    id: str
    agent: str
    status: Annotated[str, RunStatus]
    started_at: Moment
    error: str | None


class TracedOutcomeShape(TitledShape):
    status: Annotated[str, OutcomeStatus]
    owner: str


class TracedHireShape(NamedShape):
    status: Annotated[str, AgentStatus]


class TracedQuestionShape(TypedDict):
    id: str
    text: str
    status: Annotated[str, QuestionStatus]


TracedLetterShape = TypedDict("TracedLetterShape", {"id": str, "from": str, "to": str})

TracedReplyShape = TypedDict(
    "TracedReplyShape", {"id": str, "from": str, "at": Moment, "mark": str | None}
)


class ConsequencesShape(LetterStateShape):
    """All that came of a letter of a person."""

    runs: list[TracedRunShape]
    outcomes: list[TracedOutcomeShape]
    hires: list[TracedHireShape]
    questions: list[TracedQuestionShape]
    letters: list[TracedLetterShape]
    replies: list[TracedReplyShape]


class TraceShape(ConsequencesShape):
    message_id: str


class MessageInFullShape(ReadMessageShape):
    thread: list[ReadMessageShape]
    trace: TraceShape | None


class AcknowledgedShape(TypedDict):
    acknowledged: list[str]


class EndedLetterShape(TypedDict):
    id: str
    to: str
    subject: str


class EndedOutcomeShape(TitledShape):
    owner: str


class EndedQuestionShape(TypedDict):
    id: str
    text: str


class EndedApprovalShape(TypedDict):
    id: str
    about: str


class EndedWorkShape(TypedDict):
    """A job or a run that was ended."""

    id: str
    agent: str


class KeptOutcomeShape(TitledShape):
    why: str


class TakenBackShape(EndedShape):
    """Everything that ended with a wish."""

    letters: list[EndedLetterShape]
    outcomes: list[EndedOutcomeShape]
    agents: list[NamedShape]
    questions: list[EndedQuestionShape]
    approvals: list[EndedApprovalShape]
    jobs: list[EndedWorkShape | str]
    runs: list[EndedWorkShape]
    kept: list[KeptOutcomeShape]
    dry_run: bool


class DeadLetterShape(TitledShape):
    agent_id: str | None
    why: str | None
    since: Moment | None


class RevivedShape(TypedDict):
    revived: list[str]


class ScheduleShape(TypedDict):
    id: str
    agent_id: str
    cron: str | None
    timezone: str
    to: str
    subject: str
    body: str
    status: Annotated[str, ScheduleStatus]
    next_at: Moment | None
    last_at: Moment | None
    created_at: Moment


class QuestionShape(TypedDict):
    id: str
    agent_id: str
    to: str
    question: str
    options: list[str]
    status: Annotated[str, QuestionStatus]
    answer: str | None
    answered_by: str | None
    created_at: Moment
    ended_at: Moment | None


class QuestionWithCycleShape(QuestionShape, CycleToldShape):
    pass


class TakenMessageShape(LetterShape):
    """A message that a run has taken up."""

    status: Annotated[str, DeliveryStatus]
    attempt: int
    may_have_been_handled: bool
    position: int | None


class ReceivedMessageShape(TakenMessageShape):
    """A message in an inbox."""

    to_name: str
    delivered_at: Moment


class TitledIdShape(TitledShape):
    id: str


class QuoteShape(TitledIdShape):
    """An earlier letter, cut to its beginning and end."""

    sender: str
    sender_name: str
    created_at: Moment
    body: str
    body_cut: bool


class LetterContextShape(TypedDict):
    """The letters that one answers, and the outcome that it is about."""

    in_reply_to: TitledIdShape | None
    #: The letter that it answers and the one before that, oldest first.
    quotes: list[QuoteShape]
    #: The outcome that it is about.
    about: TitledIdShape | None


class TurnMessageShape(TakenMessageShape, LetterContextShape):
    """A message with what is needed to act on it without remembering anything."""


class InboxShape(TypedDict):
    messages: list[TurnMessageShape]
    #: How many wait in all.
    waiting: int


class RemindedShape(TypedDict):
    reminded: int


class DueMailShape(TypedDict):
    """Counts of deferred messages that arrived, and of schedules that sent one."""

    arrived: int
    fired: int


class BuriedMailShape(TypedDict):
    """Mail that ended with an agent."""

    letters: list[str]
    #: Each with the time at which it would have fired next.
    schedules: dict[str, int | None]
