"""Shapes of runs, jobs and accounts."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from remit.model.execution.account import AccountState
from remit.model.execution.fault import Holds as FaultHolds
from remit.model.execution.job import JobStatus
from remit.model.execution.run import RunStatus
from remit.model.execution.transcript import EntryKind
from remit.services.people.shapes import NewTokenShape
from remit.services.shape_basics import Moment, OwnedShape


class PriceShape(TypedDict):
    """Price of a model for a million tokens, in dollars, and where it is from."""

    model: str
    input: float
    cached: float
    output: float
    source: str


class RunShape(OwnedShape):
    agent_id: str
    status: Annotated[str, RunStatus]
    why: str | None
    occasion: str | None
    outcome_ids: list[str]
    worker: str | None
    adapter_type: str | None
    session_id: str | None
    started_at: Moment
    completed_at: Moment | None
    envelope_ids: list[str]
    final_response: str | None
    context_length: int | None
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    #: None while nobody knows what its tokens cost.
    cost_usd: float | None
    cost_estimated: bool
    #: The tokens of unknown cost, once it has ended.
    tokens_unpriced: int
    price: PriceShape | None
    exit_reason: str | None
    error: str | None
    fault: str | None
    fault_until: Moment | None
    accountable_user_id: str | None
    log_bytes: int


class DenialShape(TypedDict):
    tool: str
    count: int


class RunWithDenialsShape(RunShape):
    denied: list[DenialShape]


class LogPieceShape(TypedDict):
    number: int
    at: Moment
    stream: str
    text: str


class RunLogShape(TypedDict):
    run_id: str
    status: Annotated[str, RunStatus]
    pieces: list[LogPieceShape]
    live: bool


class TranscriptEntryShape(TypedDict):
    """An entry of a run's transcript."""

    number: int
    at: Moment | None
    kind: Annotated[str, EntryKind]
    shown: str
    text: str
    cut: bool
    size: int
    tool: NotRequired[str]
    call: NotRequired[str]
    stream: NotRequired[str]
    turn: NotRequired[int]
    attempt: NotRequired[int]
    most: NotRequired[int]
    wait_ms: NotRequired[int]
    status: NotRequired[int | str]
    fault: NotRequired[str]
    tokens_in: NotRequired[int]
    tokens_out: NotRequired[int]
    tokens_cached: NotRequired[int]
    failed: NotRequired[bool]
    cost_usd: NotRequired[float]
    cost_estimated: NotRequired[bool]
    seconds: NotRequired[float]


class ReportedShape(TypedDict):
    id: str
    ok: bool


class JobShape(OwnedShape):
    agent_id: str
    message_id: str
    status: Annotated[str, JobStatus]
    adapter_type: str
    due_at: Moment
    attempts: int
    worker: str | None
    created_at: Moment
    started_at: Moment | None
    completed_at: Moment | None
    error: str | None
    answer_id: str | None
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    #: None while nobody knows what its tokens cost.
    cost_usd: float | None
    cost_estimated: bool
    #: The tokens of unknown cost, once it has ended.
    tokens_unpriced: int
    price: PriceShape | None


class JobWithWaitShape(JobShape):
    waits_for: str | None


class AccountShape(OwnedShape):
    kind: Annotated[str, FaultHolds]
    name: str
    adapter_type: str
    endpoint: str | None
    credential: str | None
    worker: str | None
    state: Annotated[str, AccountState]
    fault: str | None
    cause: str | None
    since: Moment | None
    until: Moment | None
    tried_at: Moment | None
    tried_by_run: str | None
    failures: int
    waiting: int
    jobs_waiting: int
    sentence: str
    step: str | None


class AccountStateShape(TypedDict):
    id: str
    state: Annotated[str, AccountState]


class StartedRunShape(NewTokenShape):
    run_id: str


class ClaimedRunShape(StartedRunShape):
    #: Whether the run probes a closed account.
    probe: bool
    company_id: str
    epoch: int
    #: The wakes that this run covers: later ones start another run.
    seen: int
    why: str


class ClaimedJobShape(TypedDict):
    id: str
    epoch: int
    agent_id: str
    company_id: str


class WokenShape(TypedDict):
    woken: list[str]


class RunReportShape(TypedDict):
    """End of a run as a remote agent reported it."""

    ok: bool
    text: str
    reason: str
    error: str | None
    fault: str | None
    fault_until: int | None
    session: str | None
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost_micros: int


class BossShape(TypedDict):
    #: `agent` or `user`.
    kind: str
    name: str
    #: The agent's mandate, which has the agent's id.
    outcome: str | None


class MandateShape(TypedDict):
    title: str
    purpose: str


class RunEndShape(TypedDict, total=False):
    """End of a run, as its adapter reports it."""

    session_id: str | None
    final_response: str | None
    context_length: int | None
    exit_reason: str | None
    error: str | None
    fault: str | None
    fault_until: int | None
    acted: bool
    changed_files: str | None
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost_micros: int
    cost_estimated: bool
