"""Shapes of read models for people."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from remit.model.execution.cost import CostShape
from remit.model.execution.run import RunStatus
from remit.model.organisation.agent import AgentStatus
from remit.services.execution.shapes import BossShape, JobShape, RunShape
from remit.services.messaging.shapes import (
    LetterStateShape,
    MessageShape,
    QuestionShape,
    ScheduleShape,
)
from remit.services.organisation.shapes import AgentShape
from remit.services.record.shapes import EventShape
from remit.services.rights.shapes import DerivedGrantShape, GrantShape
from remit.services.shape_basics import JsonObject, Moment, NamedShape, Role
from remit.services.work.shapes import GraphShape, OutcomeShape, WaitShape


class DashboardShape(TypedDict):
    """A company in numbers; null where the caller does not see all of what would be counted."""

    company_id: str | None
    agents: dict[str, int]
    running: int
    unread: int
    outcomes: dict[str, int] | None
    pending_approvals: int | None


class TriedModelShape(TypedDict):
    ok: bool
    sentence: str
    next_step: str
    details: dict[str, object]


class TestedAdapterShape(TypedDict):
    adapter_type: str
    usable: bool
    sentence: str
    next_step: str
    details: dict[str, object]
    #: Result of one small request to its model.
    tried: TriedModelShape | None


class BaseToolsShape(TypedDict):
    count: int
    tokens: int


class AwaitingShape(TypedDict):
    """Something that awaits a person."""

    kind: str
    id: str
    company_id: str | None
    title: str
    agent_id: str | None
    since: Moment | None
    cause: str
    next: NotRequired[str]
    limit: NotRequired[str]
    allowed: NotRequired[int | None]
    raise_to: NotRequired[int]
    raise_to_shown: NotRequired[str]
    #: How many agents the row stands for.
    agents: NotRequired[int]


class SignShape(TypedDict):
    """A sign that an agent is overloaded."""

    kind: str
    id: str
    company_id: str
    title: str
    agent_id: str
    since: None


class LooseQuestionShape(QuestionShape):
    kind: str


class LooseScheduleShape(ScheduleShape):
    kind: str


class LooseJobShape(JobShape):
    kind: str


LooseEndShape = AwaitingShape | SignShape | LooseQuestionShape | LooseScheduleShape | LooseJobShape


class LooseEndsShape(TypedDict):
    loose_ends: list[LooseEndShape]


class AdapterShape(TypedDict):
    type: str
    summary: str
    documentation: str | None
    problem: str | None


class AdapterInFullShape(AdapterShape):
    text: str
    base_tools: BaseToolsShape


class StandingShape(TypedDict):
    """An agent in a line of the front page."""

    agent_id: str
    name: str
    title: str
    #: Its state in a word, and the CSS class of that.
    word: str
    looks: str
    run_id: str | None
    since: Moment | None
    #: How many agents with the same state the line stands for.
    agents: int
    doing: str
    last: str
    #: Of its run.
    cost: CostShape | None


class FrontShape(TypedDict):
    agents: int
    words: dict[str, int]
    listed: list[StandingShape]
    not_listed: int


class TodayShape(TypedDict):
    runs: int
    failed: int
    micros: int
    cost: CostShape


class TrendShape(TypedDict):
    """Bars of a chart, oldest first; times and money in millionths."""

    range: str
    began: list[int]
    span: int
    runs: list[int]
    failed: list[int]
    money: list[int]
    costs: list[CostShape]
    #: The sum of the bars.
    cost: CostShape
    today: TodayShape
    month_micros: int
    month_cost: CostShape
    day_limit: int | None
    month_limit: int | None


class WishShape(LetterStateShape):
    thread_id: str
    subject: str


class AgentAdapterShape(TypedDict):
    """Adapter of an agent with its settings, which are not to be shown."""

    adapter_type: str
    adapter_config: JsonObject


class PageBossShape(BossShape):
    id: str | None


class IdleShape(TypedDict):
    reason: str
    sentence: str


class BriefAgentShape(NamedShape):
    role: Role
    title: str
    status: Annotated[str, AgentStatus]


class RootAgentShape(AgentShape):
    """An agent at the top."""

    #: Whether it only acknowledges mail, having neither a model nor a script.
    without_model: bool


class AgentPageShape(AgentShape):
    """Head of an agent's page. Keys for readers of configurations are None for others."""

    boss: PageBossShape
    #: The first few.
    reports: list[BriefAgentShape]
    report_count: int
    #: The person at the top of the chain of bosses.
    accountable: str
    #: Tabs that the caller may see, and actions that the caller may take.
    sees: set[str]
    may: set[str]
    #: None for callers who may not see the mail.
    unread: int | None
    #: The pending approval of its hire.
    approval_id: str | None
    run: RunShape | None
    idle: IdleShape | None


class AgentOverviewShape(TypedDict):
    mandate: OutcomeShape
    #: Runs of each of the last days, today last.
    runs_by_day: list[int]
    last_run: RunShape | None
    state_version: int
    state_size: int
    state_updated_at: Moment | None


class CorrespondenceShape(MessageShape):
    #: Whether the caller may read the text.
    readable: bool


class HeldRightsShape(TypedDict):
    given: list[GrantShape]
    by_rule: list[DerivedGrantShape]
    #: How many grants came by mail.
    by_mail: int


class JudgeShape(TypedDict):
    agent_id: str | None
    user_id: str | None


class StandingOutcomeShape(OutcomeShape):
    #: State in a word; see `outcome_tree.state`.
    state: str
    waits: list[WaitShape]
    judge: JudgeShape | None


class TreeRowShape(StandingOutcomeShape):
    depth: int
    parts_done: int
    parts: int
    #: How many parts are not shown.
    hidden: int
    opens: bool


class TreePageShape(TypedDict):
    rows: list[TreeRowShape]
    cut_off: bool


class DrawnRowShape(TreeRowShape):
    owner: str


class DrawnTreeShape(GraphShape):
    """Upper levels of the tree."""

    nodes: list[DrawnRowShape]


class RecordLineShape(TypedDict):
    at: Moment
    first: Moment
    events: list[EventShape]
    effects: int
    times: int
    others: int
    run: RunShape | None


class RecordPageShape(TypedDict):
    lines: list[RecordLineShape]
    #: Continues the list.
    before: int | None
    #: The newest position in the record.
    last: int


class AgentTotalsShape(CostShape):
    """Totals over all runs of an agent."""

    runs: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int


class RunTotalsShape(CostShape):
    runs: int
    failed: int
    tokens: int


class RunSpanShape(CostShape):
    id: str
    agent_id: str
    status: Annotated[str, RunStatus]
    started_at: int
    ended_at: int | None


class RunSpansShape(TypedDict):
    spans: list[RunSpanShape]
    cut_off: bool
    now: Moment


class OrganisationLineShape(NamedShape):
    """An agent in the drawing of the organisation."""

    title: str | None
    role: Role
    status: Annotated[str, AgentStatus]
    reports_to: str | None
    word: str
    kind: str
    why: str
    #: The worst state in its branch, and the CSS class of that.
    worst: str
    worst_kind: str
    bad_below: int
    #: Of this month.
    cost: CostShape
    cost_below: CostShape
    #: Start of its live run, or else of its last one.
    at: int | None


class FileChoicesShape(TypedDict):
    read: bool
    write: bool
    audit: bool
