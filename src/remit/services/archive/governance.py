"""Approvals and configurations in an export: writing and reading.

Secrets are removed from every document, and digests are computed without them: an import decides
exactly what was written. A call that still waits for approval is left out: its requester can make
it again.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from remit.errors import BadInput
from remit.ids import ApprovalId
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.agent_spec import CONFIGURED
from remit.model.organisation.approval import (
    LARGEST_PAYLOAD,
    LONGEST_COMMENT,
    LONGEST_NOTE,
    OPEN,
    Approval,
    ApprovalStatus,
    ApprovalType,
    Comment,
    Revision,
    is_as_asked,
)
from remit.model.organisation.configuration import CONFIG_KEYS, ConfigRevision
from remit.model.text import digest_of
from remit.services.archive import layout
from remit.services.archive.fields import Fields
from remit.services.archive.plan import Plan, known
from remit.services.archive.records import Author, Entry, Kind, Record, raw
from remit.services.redaction import REMOVED, without_secrets
from remit.services.shape_basics import JsonObject


def travels(approval: Approval) -> bool:
    """Return whether an approval is exported: not a parked call, which may have bytes that no
    version owns."""
    return approval.type is not ApprovalType.CAPABILITY_USE or approval.status not in OPEN


def _clean(text: str) -> Any:
    return without_secrets(json.loads(text))[0]


def _read_json(fields: Fields, key: str) -> str:
    document = fields.get(key)
    if document is None:
        raise fields.wrong(key, "is missing")
    if not isinstance(document, dict):
        raise fields.wrong(key, "must be an object")
    text = json.dumps(document, ensure_ascii=True)
    if len(text) > LARGEST_PAYLOAD:
        raise fields.wrong(key, f"must be at most {LARGEST_PAYLOAD // 1024} KiB")
    return text


def _read_configuration_of(fields: Fields, key: str) -> str:
    """Read a configuration with exactly the known keys; older archives lack later ones."""
    config = fields.get(key)
    later = {field.key for field in CONFIGURED if field.part.later}
    if not isinstance(config, dict) or {*config} | later != {*CONFIG_KEYS}:
        raise fields.wrong(key, "must have exactly what a configuration has")
    return _read_json(fields, key)


def _read_changed(fields: Fields, key: str) -> str:
    changed = fields.texts(key)
    if not set(changed) <= set(CONFIG_KEYS):
        raise fields.wrong(key, "names what a configuration does not have")
    return json.dumps(changed)


_DOCUMENT = Kind(_clean, _read_json)
_DIGEST = raw(64)

APPROVAL = Record(
    Approval,
    *("id", "type", "status"),
    Author("requested_by", "requested_by_agent_id", "requested_by_user_id", required=True),
    *("agent=agent_id", "home=home_agent_id", "routed_to=routed_to_agent_id", "revision"),
    Entry("call_digest", _DIGEST, default=None),
    Entry("decision_note", raw(LONGEST_NOTE), default=None),
    Author("decided_by", "decided_by_agent_id", "decided_by_user_id"),
    "decided_at",
    Entry("result", _DOCUMENT, default=None),
    *("used_at", "collected_at", "expires_at", "created_at", "updated_at"),
)
REVISION = Record(
    Revision,
    "number",
    Entry("payload", _DOCUMENT),
    Entry("digest", _DIGEST),
    Author("by", "author_agent_id", "author_user_id"),
    "created_at",
)
COMMENT = Record(
    Comment,
    "id",
    Author("by", "author_agent_id", "author_user_id"),
    "reply_to",
    Entry("body", raw(LONGEST_COMMENT)),
    *("created_at", "updated_at"),
)
CONFIGURATION = Record(
    ConfigRevision,
    *("id", "agent=agent_id", "number"),
    Entry("configuration", Kind(_clean, _read_configuration_of), "config"),
    Entry("changed", Kind(json.loads, _read_changed), "changed_keys"),
    *("source", "approval=approval_id"),
    Author("by", "created_by_agent_id", "created_by_user_id"),
    "created_at",
)


def approval(
    value: Approval, revisions: Sequence[Revision], comments: Sequence[Comment]
) -> JsonObject:
    return APPROVAL.write(
        value,
        revisions=[_revision(revision) for revision in revisions],
        comments=[COMMENT.write(comment) for comment in comments],
    )


def _revision(value: Revision) -> JsonObject:
    written = REVISION.write(value)
    return {**written, "digest": digest_of(written["payload"])} if is_as_asked(value) else written


def configuration(value: ConfigRevision, approvals: set[ApprovalId]) -> JsonObject:
    known = value.approval_id if value.approval_id in approvals else None
    return CONFIGURATION.write(value, approval=known)


def check(plan: Plan) -> None:
    """Check approvals and configurations against each other and against their company."""
    for approval in plan.approvals.values():
        where = plan.where[approval.id]
        known(approval.requested_by_agent_id, plan.agents, where, "requested_by")
        known(approval.agent_id, plan.agents, where, "agent")
        known(approval.home_agent_id, plan.agents, where, "home")
        known(approval.routed_to_agent_id, plan.agents, where, "routed_to")
        known(approval.decided_by_agent_id, plan.agents, where, "decided_by")
    for revision in plan.approval_revisions:
        where = plan.where[revision.approval_id]
        known(revision.author_agent_id, plan.agents, where, "the author of a revision")
    for comment in plan.comments.values():
        known(comment.author_agent_id, plan.agents, plan.where[comment.id], "by")
    hired = {
        hire.agent_id
        for hire in plan.approvals.values()
        if hire.type is ApprovalType.HIRE_AGENT and hire.status in OPEN
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


def _read_approval(plan: Plan, fields: Fields) -> None:
    approval_id = ApprovalId(fields.id("id"))
    revisions = [
        _read_revision(approval_id, revision_fields)
        for revision_fields in fields.tables("revisions")
    ]
    count = fields.number("revision")
    if [revision.number for revision in revisions] != list(range(1, count + 1)):
        raise fields.wrong("revisions", "must be all of them, in order")
    latest = revisions[-1]
    comments = fields.tables("comments")
    read = APPROVAL.read(
        fields, company_id=plan.company.id, payload=latest.payload, digest=latest.digest
    )
    if (read.status in OPEN) != (read.decided_at is None):
        raise fields.wrong("decided_at", "belongs to what was decided, and only there")
    if read.used_at is not None and read.status is not ApprovalStatus.APPROVED:
        raise fields.wrong("used_at", "belongs to what was approved, and only there")
    if not travels(read):
        raise fields.wrong("status", "is that of a call that waits, which does not travel")
    for comment_fields in comments:
        _read_comment(approval_id, plan, comment_fields)
    plan.approval_revisions += revisions
    plan.add(plan.approvals, read.id, read, fields.path)


def _read_revision(approval_id: ApprovalId, fields: Fields) -> Revision:
    read = REVISION.read(fields, approval_id=approval_id)
    # Older exports have the digest of the request with its secrets. A request that was altered in
    # another way keeps its digest, which does not match, and cannot be approved here, either.
    if REMOVED in read.payload:
        return replace(read, digest=digest_of(json.loads(read.payload)))
    return read


def _read_comment(approval_id: ApprovalId, plan: Plan, fields: Fields) -> None:
    read = COMMENT.read(fields, company_id=plan.company.id, approval_id=approval_id)
    if read.reply_to is not None and (
        read.reply_to not in plan.comments
        or plan.comments[read.reply_to].approval_id != approval_id
    ):
        raise fields.wrong("reply_to", "must be an earlier comment on the same approval")
    plan.add(plan.comments, read.id, read, fields.path)


def _read_configuration(plan: Plan, fields: Fields) -> None:
    read = CONFIGURATION.read(fields, company_id=plan.company.id)
    plan.add(plan.configurations, read.id, read, fields.path)


#: Readers of one line, by file.
READERS = {layout.APPROVALS: _read_approval, layout.CONFIGURATIONS: _read_configuration}
