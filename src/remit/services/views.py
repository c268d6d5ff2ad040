"""How things look to callers: plain dictionaries with snake_case keys and ISO times.

Each is checked against its type in `shapes`, which descriptions of the API are made of.
"""

from __future__ import annotations

import json
from typing import Any, cast, overload

from remit.clock import Micros, to_iso
from remit.model.agent import Agent
from remit.model.approval import Approval, Comment, Revision
from remit.model.company import Company
from remit.model.decision import Decision, Effect
from remit.model.event import Event
from remit.model.file import AccessEntry, File, Version
from remit.model.grant import Grant, Level
from remit.model.job import Job
from remit.model.limit import stored as limits_of
from remit.model.mail import BACKGROUND, Message
from remit.model.outcome import Outcome, why_not_actionable
from remit.model.permission import CAN_CREATE_AGENTS, can_create_agents
from remit.model.principal import Token
from remit.model.question import Question
from remit.model.run import Run
from remit.model.schedule import Schedule
from remit.services import shapes
from remit.services.redaction import text_without_secrets, without_secrets
from remit.store.people import Member

View = dict[str, Any]


@overload
def time(at: Micros) -> str: ...
@overload
def time(at: Micros | None) -> str | None: ...
def time(at: Micros | None) -> str | None:
    return None if at is None else to_iso(at)


def company(value: Company) -> View:
    shown: shapes.CompanyShape = {
        "id": value.id,
        "name": value.name,
        "messaging": value.messaging.value,
        "require_board_approval_for_new_agents": value.require_board_approval_for_new_agents,
        "require_approval_for_config_changes": value.require_approval_for_config_changes,
        "chat_llm_provider": value.chat_llm_provider,
        "chat_llm_model": value.chat_llm_model,
        "review_hours": value.review_hours,
        "limits": limits_of(value.limits).view(),
        "created_at": time(value.created_at),
    }
    return cast(View, shown)


def member(value: Member) -> View:
    shown: shapes.MemberShape = {
        "id": value.user_id,
        "name": value.name,
        "role": value.role.value,
        "scope_agent_id": value.scope_agent_id,
        "company_id": value.company_id,
        "created_at": time(value.created_at),
    }
    return cast(View, shown)


def agent(value: Agent) -> View:
    shown: shapes.AgentShape = {
        "id": value.id,
        "company_id": value.company_id,
        "name": value.name,
        "role": value.role.value,
        "title": value.title,
        "status": value.status.value,
        "reports_to": value.boss_id,
        "boss_user_id": value.boss_user_id,
        "capabilities": text_without_secrets(value.capabilities)[0] if value.capabilities else "",
        "adapter_type": value.adapter_type,
        "permissions": {CAN_CREATE_AGENTS: _may_hire(value)},
        "permission_level": value.permission_level.value,
        "budget_monthly_cents": value.budget_monthly_cents,
        "budget_monthly_tokens": value.budget_monthly_tokens,
        "seat_user_id": value.seat_user_id,
        "state_file_id": value.state_file_id,
        "log_file_id": value.log_file_id,
        "created_at": time(value.created_at),
        "updated_at": time(value.updated_at),
    }
    return cast(View, shown)


def _may_hire(value: Agent) -> bool:
    said = can_create_agents(value.permissions)
    return value.is_ceo if said is None else said


def approval(value: Approval) -> View:
    """What is asked for, without the secrets in it."""
    payload, removed = without_secrets(json.loads(value.payload))
    shown: shapes.ApprovalShape = {
        "id": value.id,
        "company_id": value.company_id,
        "type": value.type.value,
        "status": value.status.value,
        "requested_by_agent_id": value.requested_by_agent_id,
        "requested_by_user_id": value.requested_by_user_id,
        "requested_by_run_id": value.requested_by_run_id,
        "agent_id": value.agent_id,
        "routed_to_agent_id": value.routed_to_agent_id,
        "payload": payload,
        "revision": value.revision,
        "digest": value.digest,
        "decision_note": value.decision_note,
        "decided_by_user_id": value.decided_by_user_id,
        "decided_by_agent_id": value.decided_by_agent_id,
        "decided_at": time(value.decided_at),
        "result": None if value.result is None else without_secrets(json.loads(value.result))[0],
        "used_at": time(value.used_at),
        "expires_at": time(value.expires_at),
        "created_at": time(value.created_at),
        "updated_at": time(value.updated_at),
        "redacted": removed,
    }
    return cast(View, shown)


def approval_revision(value: Revision) -> View:
    shown: shapes.ApprovalRevisionShape = {
        "number": value.number,
        "payload": without_secrets(json.loads(value.payload))[0],
        "digest": value.digest,
        "author_agent_id": value.author_agent_id,
        "author_user_id": value.author_user_id,
        "created_at": time(value.created_at),
    }
    return cast(View, shown)


def comment(value: Comment) -> View:
    shown: shapes.CommentShape = {
        "id": value.id,
        "company_id": value.company_id,
        "approval_id": value.approval_id,
        "author_agent_id": value.author_agent_id,
        "author_user_id": value.author_user_id,
        "reply_to": value.reply_to,
        "body": value.body,
        "created_at": time(value.created_at),
        "updated_at": time(value.updated_at),
    }
    return cast(View, shown)


def outcome(value: Outcome, now: Micros | None = None) -> View:
    view: shapes.OutcomeShape = {
        "id": value.id,
        "company_id": value.company_id,
        "title": value.title,
        "status": value.status.value,
        "owner_id": value.owner_id,
        "perpetual": value.perpetual,
        "delegated": value.delegated,
        "delegator_id": value.delegator_id,
        "urgent": value.urgent,
        "important": value.important,
        "deferred_until": time(value.deferred_until),
        "version": value.version,
        "verdict": None if value.verdict is None else json.loads(value.verdict),
        "created_at": time(value.created_at),
        "updated_at": time(value.updated_at),
        "finished_at": time(value.finished_at),
    }
    if now is not None:
        reason = why_not_actionable(value, now)
        view["actionable"] = reason is None
        view["why_not_actionable"] = reason
        view["waiting"] = value.open_waits > 0
    return cast(View, view)


def token(value: Token) -> View:
    """Everything but the token itself, which nobody has any more."""
    shown: shapes.TokenShape = {
        "id": value.id,
        "kind": value.kind.value,
        "label": value.label,
        "agent_id": value.agent_id,
        "user_id": value.user_id,
        "created_at": time(value.created_at),
        "expires_at": time(value.expires_at),
        "revoked_at": time(value.revoked_at),
    }
    return cast(View, shown)


def file(value: File, level: Level | None = None) -> View:
    if level is Level.NONE:
        # Hash and size would tell something about contents that must not be read.
        known: shapes.FileShape = {
            "id": value.id,
            "company_id": value.company_id,
            "description": value.description,
            "unlisted": value.unlisted,
            "level": level.word,
            "created_at": time(value.created_at),
        }
        return cast(View, known)
    view: shapes.FileShape = {
        "id": value.id,
        "company_id": value.company_id,
        "kind": value.kind.value,
        "description": value.description,
        "unlisted": value.unlisted,
        "version": value.version,
        "hash": value.sha256,
        "size": value.size,
        "created_at": time(value.created_at),
        "updated_at": time(value.updated_at),
    }
    if level is not None:
        view["level"] = level.word
    return cast(View, view)


def version(value: Version) -> View:
    shown: shapes.VersionShape = {
        "number": value.number,
        "hash": value.sha256,
        "size": value.size,
        "at": time(value.at),
        "agent_id": value.agent_id,
        "user_id": value.user_id,
        "run_id": value.run_id,
    }
    return cast(View, shown)


def access(value: AccessEntry) -> View:
    shown: shapes.AccessShape = {
        "at": time(value.at),
        "access": value.access.value,
        "version": value.version,
        "agent_id": value.agent_id,
        "user_id": value.user_id,
        "run_id": value.run_id,
    }
    return cast(View, shown)


def grant(value: Grant, reason: str | None = None) -> View:
    view: shapes.GrantShape = {
        "id": value.id,
        "holder_id": value.holder_id,
        "resource": str(value.resource),
        "level": value.level.word,
        "mode": value.mode.value,
        "scope": value.scope_id,
        "parent_id": value.parent_id,
        "granted_by": granter(value),
        "created_at": time(value.created_at),
        "expires_at": time(value.expires_at),
        "used_at": time(value.used_at),
    }
    if reason is not None:
        view["reason"] = reason
    return cast(View, view)


def granter(value: Grant) -> str | None:
    if value.granted_by_agent is not None:
        return f"agent:{value.granted_by_agent}"
    return None if value.granted_by_user is None else f"user:{value.granted_by_user}"


OWN = Decision(Effect.ALLOW, "self", "It is your own.", "rule:self")


def message(value: Message) -> View:
    shown: shapes.MessageShape = {
        "id": value.id,
        "company_id": value.company_id,
        "thread_id": value.thread_id,
        "reply_to": value.reply_to,
        "sender": sender(value),
        "from_board": value.from_board,
        "to": value.address,
        "subject": value.subject,
        "file_id": value.body_file_id,
        "attachments": json.loads(value.attachments),
        "question_id": value.question_id,
        "request": None if value.request is None else json.loads(value.request),
        "origin_id": value.origin_id,
        "mark": value.mark,
        "created_at": time(value.created_at),
    }
    return cast(View, shown)


def sender(value: Message) -> str:
    if value.background:
        return BACKGROUND
    if value.channel is not None:
        return value.channel
    who = value.sender_agent_id or value.sender_user_id
    return f"{value.sender_kind.value}:{who}" if who else "system"


def run(value: Run) -> View:
    shown: shapes.RunShape = {
        "id": value.id,
        "company_id": value.company_id,
        "agent_id": value.agent_id,
        "status": value.status.value,
        "why": value.why,
        "occasion": value.occasion,
        "outcome_ids": json.loads(value.outcome_ids),
        "worker": value.worker,
        "adapter_type": value.adapter_type,
        "session_id": value.session_id,
        "started_at": time(value.started_at),
        "completed_at": time(value.ended_at),
        "envelope_ids": json.loads(value.message_ids),
        "final_response": value.final_response,
        "context_length": value.context_length,
        "tokens_in": value.tokens_in,
        "tokens_out": value.tokens_out,
        "tokens_cached": value.tokens_cached,
        "cost_usd": value.cost_micros / 1_000_000,
        "cost_estimated": value.cost_estimated,
        "exit_reason": value.exit_reason,
        "error": value.error,
        "fault": value.fault,
        "fault_until": time(value.fault_until),
        "accountable_user_id": value.accountable_user_id,
        "log_bytes": value.log_bytes,
    }
    return cast(View, shown)


def job(value: Job) -> View:
    shown: shapes.JobShape = {
        "id": value.id,
        "company_id": value.company_id,
        "agent_id": value.agent_id,
        "message_id": value.message_id,
        "status": value.status.value,
        "adapter_type": value.adapter_type,
        "due_at": time(value.due_at),
        "attempts": value.attempts,
        "worker": value.worker,
        "created_at": time(value.created_at),
        "started_at": time(value.started_at),
        "completed_at": time(value.ended_at),
        "error": value.error,
        "answer_id": value.answer_id,
        "tokens_in": value.tokens_in,
        "tokens_out": value.tokens_out,
        "tokens_cached": value.tokens_cached,
        "cost_usd": value.cost_micros / 1_000_000,
    }
    return cast(View, shown)


def schedule(value: Schedule) -> View:
    shown: shapes.ScheduleShape = {
        "id": value.id,
        "agent_id": value.agent_id,
        "cron": value.cron,
        "timezone": value.timezone,
        "to": value.address,
        "subject": value.subject,
        "body": value.body,
        "status": value.status.value,
        "next_at": time(value.next_at),
        "last_at": time(value.last_at),
        "created_at": time(value.created_at),
    }
    return cast(View, shown)


def question(value: Question) -> View:
    shown: shapes.QuestionShape = {
        "id": value.id,
        "agent_id": value.agent_id,
        "to": f"agent:{value.to_agent_id}" if value.to_agent_id else "board",
        "question": value.text,
        "options": json.loads(value.options),
        "status": value.status.value,
        "answer": value.answer,
        "answered_by": value.answered_by,
        "created_at": time(value.created_at),
        "ended_at": time(value.ended_at),
    }
    return cast(View, shown)


def happening(value: Event) -> View:
    """An event as a line of history."""
    details = json.loads(value.details)
    shown: shapes.HappeningShape = {
        "at": time(value.at),
        "action": value.action,
        "by": f"{value.actor_kind.value}:{value.actor_id}".rstrip(":"),
        "run_id": value.run_id,
        "allowed": value.allowed,
        "why": details.get("note") or details.get("reason") or details.get("sentence"),
        "event_id": value.id,
    }
    return cast(View, shown)


def event(value: Event) -> View:
    shown: shapes.EventShape = {
        "id": value.id,
        "seq": value.seq,
        "at": time(value.at),
        "actor": f"{value.actor_kind.value}:{value.actor_id}".rstrip(":"),
        "run_id": value.run_id,
        "action": value.action,
        "resource": value.resource,
        "allowed": value.allowed,
        "reason": value.reason,
        "basis": value.basis,
        "details": _shown(value),
        "hash": value.hash,
    }
    return cast(View, shown)


def _shown(value: Event) -> Any:
    """What a reorganisation keeps so that it can be undone includes adapters' settings."""
    details = json.loads(value.details)
    return without_secrets(details)[0] if value.action.startswith("org.") else details
