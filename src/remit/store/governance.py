"""Statements about approvals, their revisions and comments, and agents' configurations."""

from __future__ import annotations

from sqlalchemy import (
    BindParameter,
    Boolean,
    and_,
    delete,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    true,
    update,
)
from sqlalchemy import bindparam as bind

from remit.model.agent import Agent
from remit.model.approval import Approval, Comment, Revision
from remit.model.configuration import ConfigRevision
from remit.store.statement import Statement, change, columns, counted, into, scalar
from remit.store.tables import (
    access_log,
    agent_places,
    agents,
    approval_comments,
    approval_revisions,
    approvals,
    companies,
    config_revisions,
    file_links,
    file_versions,
    files,
    grants,
    memberships,
    messages,
    outcome_blockers,
    outcome_edges,
    outcomes,
    schedules,
    tokens,
    users,
)

_all = columns(approvals, Approval)
_undecided = approvals.c.status.in_([literal("pending"), literal("revision_requested")])

# Approvals

INSERT_APPROVAL = change(insert(approvals))
APPROVAL_ANYWHERE = Statement(
    select(*_all).where(approvals.c.id == bind("approval")), into(Approval)
)
APPROVALS_BY_PREFIX = Statement(
    select(*_all)
    .where(
        approvals.c.company_id == bind("company"),
        approvals.c.id >= bind("low"),
        approvals.c.id < bind("high"),
    )
    .limit(bind("limit")),
    into(Approval),
)
#: Newest first; of one status, and of one requester, if asked.
APPROVALS = Statement(
    select(*_all)
    .where(
        approvals.c.company_id == bind("company"),
        approvals.c.id < bind("before"),
        or_(approvals.c.status == bind("status"), bind("any_status", type_=Boolean) == true()),
        or_(
            approvals.c.requested_by_agent_id == bind("requester"),
            approvals.c.routed_to_agent_id == bind("requester"),
            bind("any_requester", type_=Boolean) == true(),
        ),
    )
    .order_by(approvals.c.id.desc())
    .limit(bind("limit")),
    into(Approval),
)
#: What awaits a decision, oldest first.
PENDING = Statement(
    select(*_all)
    .where(
        approvals.c.company_id == bind("company"),
        approvals.c.id > bind("after"),
        _undecided,
        approvals.c.status == literal("pending"),
    )
    .order_by(approvals.c.id)
    .limit(bind("limit")),
    into(Approval),
)
#: The same call again: newest first.
OF_CALL = Statement(
    select(*_all)
    .where(
        approvals.c.requested_by_agent_id == bind("agent"),
        approvals.c.call_digest == bind("digest"),
    )
    .order_by(approvals.c.id.desc())
    .limit(1),
    into(Approval),
)
#: An agent's calls that wait for approval, or were decided not long ago: newest first.
CALLS_THAT_HOLD = Statement(
    select(*_all)
    .where(
        approvals.c.requested_by_agent_id == bind("agent"),
        approvals.c.call_digest.is_not(None),
        or_(_undecided, approvals.c.decided_at >= bind("since")),
    )
    .order_by(approvals.c.id.desc()),
    into(Approval),
)
UNDECIDED_OF_AGENT = Statement(
    select(*_all).where(
        _undecided,
        or_(
            approvals.c.requested_by_agent_id == bind("agent"),
            approvals.c.agent_id == bind("agent"),
        ),
    ),
    into(Approval),
)
UNDECIDED_ROUTED_TO = Statement(
    select(*_all).where(_undecided, approvals.c.routed_to_agent_id == bind("agent")),
    into(Approval),
)
ROUTE_APPROVAL = change(
    update(approvals)
    .where(approvals.c.id == bind("approval"))
    .values(routed_to_agent_id=bind("new_agent"), updated_at=bind("now"))
)
#: First answer wins: nothing changes unless it is still what the decider saw.
MOVE_APPROVAL = change(
    update(approvals)
    .where(
        approvals.c.id == bind("approval"),
        approvals.c.status == bind("was"),
        approvals.c.revision == bind("seen_revision"),
    )
    .values(
        status=bind("new_status"),
        decision_note=bind("new_note"),
        decided_by_user_id=bind("new_user"),
        decided_by_agent_id=bind("new_agent"),
        decided_at=bind("new_decided_at"),
        updated_at=bind("now"),
    )
)
REVISE_APPROVAL = change(
    update(approvals)
    .where(approvals.c.id == bind("approval"))
    .values(
        payload=bind("new_payload"),
        digest=bind("new_digest"),
        revision=bind("new_revision"),
        updated_at=bind("now"),
    )
)
USE_APPROVAL = change(
    update(approvals)
    .where(
        approvals.c.id == bind("approval"),
        approvals.c.status == literal("approved"),
        approvals.c.used_at.is_(None),
    )
    .values(used_at=bind("now"), result=bind("new_result"))
)
COLLECT_RESULT = change(
    update(approvals).where(approvals.c.id == bind("approval")).values(collected_at=bind("now"))
)
DUE = Statement(
    select(approvals.c.id)
    .where(_undecided, approvals.c.expires_at <= bind("now"))
    .order_by(approvals.c.expires_at, approvals.c.id)
    .limit(bind("limit")),
    scalar,
)
#: Bytes that wait for a decision are no orphans.
HOLDS_BLOB = Statement(
    select(approvals.c.id)
    .where(
        approvals.c.blob_file_id == bind("file"),
        approvals.c.blob_sha256 == bind("sha256"),
        _undecided,
    )
    .limit(1),
    scalar,
)
INSERT_REVISION = change(insert(approval_revisions))
REVISIONS = Statement(
    select(*columns(approval_revisions, Revision))
    .where(approval_revisions.c.approval_id == bind("approval"))
    .order_by(approval_revisions.c.number),
    into(Revision),
)
REVISION = Statement(
    select(*columns(approval_revisions, Revision)).where(
        approval_revisions.c.approval_id == bind("approval"),
        approval_revisions.c.number == bind("number"),
    ),
    into(Revision),
)
INSERT_COMMENT = change(insert(approval_comments))
COMMENT = Statement(
    select(*columns(approval_comments, Comment)).where(
        approval_comments.c.id == bind("comment"),
        approval_comments.c.approval_id == bind("approval"),
    ),
    into(Comment),
)
COMMENTS = Statement(
    select(*columns(approval_comments, Comment))
    .where(
        approval_comments.c.approval_id == bind("approval"),
        approval_comments.c.id > bind("after"),
    )
    .order_by(approval_comments.c.id)
    .limit(bind("limit")),
    into(Comment),
)

# Configurations

INSERT_CONFIG = change(insert(config_revisions))
CONFIG_REVISIONS = Statement(
    select(*columns(config_revisions, ConfigRevision))
    .where(
        config_revisions.c.agent_id == bind("agent"),
        config_revisions.c.number < bind("before"),
    )
    .order_by(config_revisions.c.number.desc())
    .limit(bind("limit")),
    into(ConfigRevision),
)
CONFIG_REVISION = Statement(
    select(*columns(config_revisions, ConfigRevision)).where(
        config_revisions.c.agent_id == bind("agent"),
        or_(
            config_revisions.c.id == bind("revision"),
            config_revisions.c.number == bind("number"),
        ),
    ),
    into(ConfigRevision),
)
CONFIGURE_AGENT = change(
    update(agents)
    .where(agents.c.id == bind("agent"), agents.c.config_revision == bind("seen_revision"))
    .values(
        name=bind("new_name"),
        name_key=bind("new_key"),
        role=bind("new_role"),
        title=bind("new_title"),
        capabilities=bind("new_capabilities"),
        prompt=bind("new_prompt"),
        adapter_type=bind("new_adapter_type"),
        adapter_config=bind("new_adapter_config"),
        runtime_config=bind("new_runtime_config"),
        budget_monthly_cents=bind("new_budget"),
        budget_monthly_tokens=bind("new_token_budget"),
        metadata=bind("new_metadata"),
        config_revision=agents.c.config_revision + 1,
        updated_at=bind("now"),
    )
)
_with_level = (
    agents.c.company_id == bind("company"),
    # Whoever awaits approval gets the level as it is then.
    agents.c.status.not_in([literal("terminated"), literal("pending_approval")]),
)
AGENTS_WITH_LEVEL = Statement(
    select(*columns(agents, Agent))
    .where(*_with_level, agents.c.permission_level == bind("level"))
    .order_by(agents.c.id),
    into(Agent),
)
COUNT_BY_LEVEL = Statement(
    select(agents.c.permission_level, func.count())
    .where(*_with_level)
    .group_by(agents.c.permission_level),
    counted,
)
SET_POLICY = change(
    update(companies)
    .where(companies.c.id == bind("company"))
    .values(permission_policy=bind("new_policy"))
)
PERMIT_AGENT = change(
    update(agents)
    .where(agents.c.id == bind("agent"))
    .values(
        permissions=bind("new_permissions"),
        permission_level=bind("new_level"),
        updated_at=bind("now"),
    )
)
# An agent that was never taken on, deleted for good. Whatever is left of it is its approval.

_it: BindParameter[str] = bind("agent")
#: What names the agent. Nobody but people and those above ever dealt with it.
FORGET_AGENT = (
    change(update(approvals).where(approvals.c.agent_id == _it).values(agent_id=null())),
    change(update(approvals).where(approvals.c.home_agent_id == _it).values(home_agent_id=null())),
    change(delete(config_revisions).where(config_revisions.c.agent_id == _it)),
    change(delete(agent_places).where(agent_places.c.agent_id == _it)),
    change(delete(tokens).where(tokens.c.agent_id == _it)),
    change(delete(schedules).where(schedules.c.agent_id == _it)),
    change(update(files).where(files.c.home_agent_id == _it).values(home_agent_id=null())),
    change(
        update(grants)
        .where(grants.c.kind == literal("message"), grants.c.resource_id == _it)
        .values(revoked_at=func.coalesce(grants.c.revoked_at, bind("now")))
    ),
)
_outcome: BindParameter[str] = bind("outcome")
FORGET_OUTCOME = (
    change(
        delete(outcome_edges).where(
            or_(outcome_edges.c.parent_id == _outcome, outcome_edges.c.child_id == _outcome)
        )
    ),
    change(
        delete(outcome_blockers).where(
            or_(
                outcome_blockers.c.outcome_id == _outcome,
                outcome_blockers.c.blocker_id == _outcome,
            )
        )
    ),
    # They ended with it.
    change(
        update(grants)
        .where(grants.c.scope_id == _outcome)
        .values(scope_id=null(), revoked_at=func.coalesce(grants.c.revoked_at, bind("now")))
    ),
    change(
        update(grants)
        .where(grants.c.kind == literal("outcome"), grants.c.resource_id == _outcome)
        .values(revoked_at=func.coalesce(grants.c.revoked_at, bind("now")))
    ),
)
_file: BindParameter[str] = bind("file")
#: Whether a document is what a message says.
SENT_FILE = Statement(
    select(messages.c.id).where(messages.c.body_file_id == _file).limit(1), scalar
)
KEEP_AS_FILE = change(
    update(files).where(files.c.id == _file).values(kind=literal("file"), unlisted=true())
)
DELETE_FILE = (
    change(delete(access_log).where(access_log.c.file_id == _file)),
    change(delete(file_links).where(file_links.c.file_id == _file)),
    change(delete(file_versions).where(file_versions.c.file_id == _file)),
    change(
        update(grants)
        .where(grants.c.kind == literal("kb_file"), grants.c.resource_id == _file)
        .values(revoked_at=func.coalesce(grants.c.revoked_at, bind("now")))
    ),
    change(delete(files).where(files.c.id == _file)),
)
#: A member whose part of the company is below this agent.
MEMBER_OVER = Statement(
    select(users.c.name)
    .join(memberships, memberships.c.user_id == users.c.id)
    .where(memberships.c.scope_agent_id == _it)
    .limit(1),
    scalar,
)
DELETE_OUTCOME = change(delete(outcomes).where(outcomes.c.id == _outcome))
DELETE_AGENT = change(
    delete(agents).where(and_(agents.c.id == _it, agents.c.status == literal("terminated")))
)
