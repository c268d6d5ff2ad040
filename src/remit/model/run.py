"""Runs: single executions of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, RunId


class RunStatus(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Run:
    id: RunId
    company_id: CompanyId
    agent_id: AgentId
    status: RunStatus
    workspace: str | None
    started_at: Micros
    ended_at: Micros | None
