"""Approvals and configurations in an export: how each is written down, and read again.

Secrets are taken out of every document, and a digest is of what is left: what is decided after an
import is what was written here. A call that still waits for approval stays behind: whoever made it
can make it again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from remit.clock import to_iso
from remit.errors import BadInput
from remit.ids import AgentId, ApprovalId, CommentId, RevisionId
from remit.model.agent import AgentStatus
from remit.model.approval import (
    LARGEST_PAYLOAD,
    LONGEST_COMMENT,
    LONGEST_NOTE,
    OPEN,
    Approval,
    ApprovalStatus,
    ApprovalType,
    Comment,
    Revision,
    digest_of,
    is_as_asked,
)
from remit.model.configuration import CONFIG_KEYS, ConfigRevision, RevisionSource
from remit.services.archive import layout
from remit.services.archive.fields import Fields
from remit.services.archive.folder import Folder
from remit.services.archive.plan import Plan
from remit.services.archive.references import known
from remit.services.redaction import REMOVED, without_secrets

_LONGEST_DIGEST = 64


def travels(approval: Approval) -> bool:
    """A parked call may have brought bytes along that no version owns."""
    return approval.type is not ApprovalType.CAPABILITY_USE or approval.status not in OPEN


def approval(
    value: Approval, revisions: Sequence[Revision], comments: Sequence[Comment]
) -> dict[str, Any]:
    return {
        "id": value.id,
        "type": value.type.value,
        "status": value.status.value,
        "requested_by": layout.by_whom(value.requested_by_agent_id, value.requested_by_user_id, {}),
        "agent": value.agent_id,
        "home": value.home_agent_id,
        "routed_to": value.routed_to_agent_id,
        "revision": value.revision,
        "call_digest": value.call_digest,
        "decision_note": value.decision_note,
        "decided_by": layout.by_whom(value.decided_by_agent_id, value.decided_by_user_id, {}),
        "decided_at": layout.time(value.decided_at),
        "result": None if value.result is None else _clean(value.result),
        "used_at": layout.time(value.used_at),
        "collected_at": layout.time(value.collected_at),
        "expires_at": layout.time(value.expires_at),
        "created_at": to_iso(value.created_at),
        "updated_at": to_iso(value.updated_at),
        "revisions": [_revision(one) for one in revisions],
        "comments": [_comment(one) for one in comments],
    }


def configuration(value: ConfigRevision, approvals: set[ApprovalId]) -> dict[str, Any]:
    return {
        "id": value.id,
        "agent": value.agent_id,
        "number": value.number,
        "configuration": _clean(value.config),
        "changed": json.loads(value.changed_keys),
        "source": value.source.value,
        "approval": value.approval_id if value.approval_id in approvals else None,
        "by": layout.by_whom(value.created_by_agent_id, value.created_by_user_id, {}),
        "created_at": to_iso(value.created_at),
    }


def read(plan: Plan, folder: Folder) -> None:
    """What the files say, each line by itself."""
    for where, row in folder.lines(layout.APPROVALS):
        _read_approval(plan, Fields(where, row))
    for where, row in folder.lines(layout.CONFIGURATIONS):
        _read_configuration(plan, Fields(where, row))


def check(plan: Plan) -> None:
    """Whether they fit together, and to the company they are in."""
    for one in plan.approvals.values():
        _check_approval(plan, one)
    for revision in plan.approval_revisions:
        where = plan.where[revision.approval_id]
        known(revision.author_agent_id, plan.agents, where, "the author of a revision")
    for comment in plan.comments.values():
        known(comment.author_agent_id, plan.agents, plan.where[comment.id], "by")
    hired = {
        one.agent_id
        for one in plan.approvals.values()
        if one.type is ApprovalType.HIRE_AGENT and one.status in OPEN
    }
    for agent in plan.agents.values():
        if (agent.status is AgentStatus.PENDING_APPROVAL) != (agent.id in hired):
            raise BadInput(
                f"{plan.where[agent.id]}: whoever awaits approval has a hire that awaits it."
            )
    latest: dict[str, int] = {}
    seen: set[tuple[str, int]] = set()
    for config in plan.configurations.values():
        where = plan.where[config.id]
        if (config.agent_id, config.number) in seen:
            raise BadInput(f"{where}: number {config.number} is there twice for this agent.")
        seen.add((config.agent_id, config.number))
        known(config.agent_id, plan.agents, where, "agent")
        known(config.created_by_agent_id, plan.agents, where, "by")
        known(config.approval_id, plan.approvals, where, "approval")
        latest[config.agent_id] = max(latest.get(config.agent_id, 0), config.number)
    for agent in plan.agents.values():
        if agent.id in latest and latest[agent.id] != agent.config_revision:
            raise BadInput(f"{plan.where[agent.id]}: config_revision is not its latest.")


def _clean(text: str) -> Any:
    return without_secrets(json.loads(text))[0]


def _revision(value: Revision) -> dict[str, Any]:
    payload = _clean(value.payload)
    return {
        "number": value.number,
        "payload": payload,
        "digest": digest_of(payload) if is_as_asked(value) else value.digest,
        "by": layout.by_whom(value.author_agent_id, value.author_user_id, {}),
        "created_at": to_iso(value.created_at),
    }


def _comment(value: Comment) -> dict[str, Any]:
    return {
        "id": value.id,
        "by": layout.by_whom(value.author_agent_id, value.author_user_id, {}),
        "reply_to": value.reply_to,
        "body": value.body,
        "created_at": to_iso(value.created_at),
        "updated_at": to_iso(value.updated_at),
    }


def _read_approval(plan: Plan, fields: Fields) -> None:
    agent, user = fields.author("requested_by", plan.importer)
    judge, person = fields.author("decided_by", plan.importer)
    if agent is None and user is None:
        raise fields.wrong("requested_by", "must be person or agent:ID")
    found = ApprovalId(fields.id("id"))
    revisions = [_read_revision(found, plan, one) for one in fields.tables("revisions")]
    status = fields.one_of("status", ApprovalStatus)
    count = fields.number("revision")
    if [one.number for one in revisions] != list(range(1, count + 1)):
        raise fields.wrong("revisions", "must be all of them, in order")
    read = Approval(
        id=found,
        company_id=plan.company.id,
        type=fields.one_of("type", ApprovalType),
        status=status,
        requested_by_agent_id=agent,
        requested_by_user_id=user,
        requested_by_run_id=None,
        agent_id=_agent(fields, "agent"),
        home_agent_id=_agent(fields, "home"),
        routed_to_agent_id=_agent(fields, "routed_to"),
        payload=revisions[-1].payload,
        revision=count,
        digest=revisions[-1].digest,
        call_digest=None
        if fields.get("call_digest") is None
        else fields.text("call_digest", _LONGEST_DIGEST),
        blob_file_id=None,
        blob_sha256=None,
        decision_note=None
        if fields.get("decision_note") is None
        else fields.text("decision_note", LONGEST_NOTE),
        decided_by_user_id=person,
        decided_by_agent_id=judge,
        decided_at=fields.maybe_time("decided_at"),
        result=_json(fields, "result"),
        used_at=fields.maybe_time("used_at"),
        collected_at=fields.maybe_time("collected_at"),
        expires_at=fields.maybe_time("expires_at"),
        created_at=fields.time("created_at"),
        updated_at=fields.time("updated_at"),
    )
    if (status in OPEN) != (read.decided_at is None):
        raise fields.wrong("decided_at", "belongs to what was decided, and only there")
    if read.used_at is not None and status is not ApprovalStatus.APPROVED:
        raise fields.wrong("used_at", "belongs to what was approved, and only there")
    if not travels(read):
        raise fields.wrong("status", "is that of a call that waits, which does not travel")
    for one in fields.tables("comments"):
        _read_comment(found, plan, one)
    fields.done()
    plan.approval_revisions += revisions
    plan.add(plan.approvals, read.id, read, fields.path)


def _read_revision(approval_id: ApprovalId, plan: Plan, fields: Fields) -> Revision:
    agent, user = fields.author("by", plan.importer)
    payload = _json(fields, "payload")
    if payload is None:
        raise fields.wrong("payload", "is missing")
    written, found = fields.text("digest", _LONGEST_DIGEST), digest_of(json.loads(payload))
    read = Revision(
        approval_id=approval_id,
        number=fields.number("number"),
        payload=payload,
        # Older exports have the digest of what was asked for with its secrets. What was altered
        # otherwise keeps the digest that it does not match, and is not approved here, either.
        digest=found if REMOVED in payload else written,
        author_agent_id=agent,
        author_user_id=user,
        created_at=fields.time("created_at"),
    )
    fields.done()
    return read


def _read_comment(approval_id: ApprovalId, plan: Plan, fields: Fields) -> None:
    agent, user = fields.author("by", plan.importer)
    answered = fields.maybe_id("reply_to")
    read = Comment(
        id=CommentId(fields.id("id")),
        company_id=plan.company.id,
        approval_id=approval_id,
        author_agent_id=agent,
        author_user_id=user,
        reply_to=None if answered is None else CommentId(answered),
        body=fields.text("body", LONGEST_COMMENT),
        created_at=fields.time("created_at"),
        updated_at=fields.time("updated_at"),
    )
    fields.done()
    if read.reply_to is not None and (
        read.reply_to not in plan.comments
        or plan.comments[read.reply_to].approval_id != approval_id
    ):
        raise fields.wrong("reply_to", "must be an earlier comment on the same approval")
    plan.add(plan.comments, read.id, read, fields.path)


def _read_configuration(plan: Plan, fields: Fields) -> None:
    agent, user = fields.author("by", plan.importer)
    changed = fields.texts("changed")
    if not set(changed) <= set(CONFIG_KEYS):
        raise fields.wrong("changed", "names what a configuration does not have")
    config = _json(fields, "configuration")
    if config is None or not _is_whole(json.loads(config)):
        raise fields.wrong("configuration", "must have exactly what a configuration has")
    approved = fields.maybe_id("approval")
    read = ConfigRevision(
        id=RevisionId(fields.id("id")),
        company_id=plan.company.id,
        agent_id=AgentId(fields.id("agent")),
        number=fields.number("number"),
        config=config,
        changed_keys=json.dumps(changed),
        source=fields.one_of("source", RevisionSource),
        approval_id=None if approved is None else ApprovalId(approved),
        created_by_agent_id=agent,
        created_by_user_id=user,
        created_at=fields.time("created_at"),
    )
    fields.done()
    plan.add(plan.configurations, read.id, read, fields.path)


def _check_approval(plan: Plan, approval: Approval) -> None:
    where = plan.where[approval.id]
    for what, agent in (
        ("requested_by", approval.requested_by_agent_id),
        ("agent", approval.agent_id),
        ("home", approval.home_agent_id),
        ("routed_to", approval.routed_to_agent_id),
        ("decided_by", approval.decided_by_agent_id),
    ):
        known(agent, plan.agents, where, what)


def _agent(fields: Fields, name: str) -> AgentId | None:
    found = fields.maybe_id(name)
    return None if found is None else AgentId(found)


def _json(fields: Fields, name: str) -> str | None:
    found = fields.get(name)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise fields.wrong(name, "must be an object")
    text = json.dumps(found, ensure_ascii=True)
    if len(text) > LARGEST_PAYLOAD:
        raise fields.wrong(name, f"must be at most {LARGEST_PAYLOAD // 1024} KiB")
    return text


def _is_whole(config: dict[str, Any]) -> bool:
    """Every part, and no other; archives from before there were budgets in tokens lack those."""
    return {*config, "budgetMonthlyTokens"} == set(CONFIG_KEYS)
