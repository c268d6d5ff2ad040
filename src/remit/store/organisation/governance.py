"""Statements about approvals, their revisions and comments, and agents' configurations."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam as bind

from remit.model.organisation.agent import Agent
from remit.model.organisation.agent_spec import CONFIGURED
from remit.model.organisation.approval import Approval, Comment, Revision
from remit.model.organisation.company import Company
from remit.model.organisation.configuration import ConfigRevision
from remit.model.organisation.grant import Grant
from remit.model.work.file import File
from remit.store.engine.statement import (
    Rows,
    Statement,
    counted,
    delete_from,
    if_asked,
    new,
    unless,
    values_of,
)
from remit.store.tables import (
    access_log,
    agent_places,
    agents,
    approval_looks,
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

_APPROVAL_REVISIONS = Rows(Revision, "number")
_APPROVAL_COMMENTS = Rows(Comment)
_CONFIG_REVISIONS = Rows(ConfigRevision, "number")
_AGENTS = Rows(Agent)
_APPROVALS = Rows(Approval)
_FILES = Rows(File)
_one = approvals.c.id == bind("approval")
_undecided = approvals.c.status.in_([sa.literal("pending"), sa.literal("revision_requested")])

# Approvals

#: One approval by id, of any company.
APPROVAL_ANYWHERE = _APPROVALS.one(id="approval")
#: The company's approvals whose ids lie between two.
APPROVALS_BY_PREFIX = _APPROVALS.between(company_id="company", limit=bind("limit"))
#: A page of a company's approvals, newest first; of one status or one agent, if asked.
APPROVALS = _APPROVALS.before(
    if_asked(approvals.c.status, "status"),
    unless(
        "any_requester",
        approvals.c.requested_by_agent_id == bind("requester"),
        approvals.c.routed_to_agent_id == bind("requester"),
    ),
    company_id="company",
)
#: A page of the approvals that await a decision, oldest first.
PENDING = _APPROVALS.after(
    _undecided, approvals.c.status == sa.literal("pending"), company_id="company"
)
#: The newest approval of an identical call of an agent.
OF_CALL = _APPROVALS.find(
    requested_by_agent_id="agent", call_digest="digest", order=[approvals.c.id.desc()], limit=1
)
#: An agent's calls that await approval or were decided since a time, newest first.
CALLS_THAT_HOLD = _APPROVALS.find(
    approvals.c.call_digest.is_not(None),
    sa.or_(_undecided, approvals.c.decided_at >= bind("since")),
    requested_by_agent_id="agent",
    order=[approvals.c.id.desc()],
)
#: Undecided approvals that an agent requested or that are about it.
UNDECIDED_OF_AGENT = _APPROVALS.find(
    _undecided,
    sa.or_(
        approvals.c.requested_by_agent_id == bind("agent"), approvals.c.agent_id == bind("agent")
    ),
    order=(),
)
#: Whether an approval is undecided that an agent requested or is to decide.
IS_UNDECIDED_WITH = _APPROVALS.any(
    _undecided,
    sa.or_(
        approvals.c.requested_by_agent_id == bind("agent"),
        approvals.c.routed_to_agent_id == bind("agent"),
    ),
    company_id="company",
)
#: Whether an agent awaits another decision.
IS_AWAITED_BY = _APPROVALS.any(
    approvals.c.status == sa.literal_column("'pending'"), requested_by_agent_id="agent"
)
#: Undecided approvals that an agent is to decide.
UNDECIDED_ROUTED_TO = _APPROVALS.find(_undecided, routed_to_agent_id="agent", order=())
#: Routes an approval to another agent for the decision.
ROUTE_APPROVAL = _APPROVALS.update(
    _one, routed_to_agent_id=bind("new_agent"), updated_at=bind("now")
)
#: Moves an approval to another status, unless it changed since the decider read it.
MOVE_APPROVAL = _APPROVALS.update(
    _one,
    approvals.c.status == bind("was"),
    approvals.c.revision == bind("seen_revision"),
    **new("status", "decided_at", "decision_note", "decided_by_user_id", "decided_by_agent_id"),
    updated_at=bind("now"),
)
#: Stores the next revision of a requested call.
REVISE_APPROVAL = _APPROVALS.update(
    _one, **new("payload", "digest", "revision"), updated_at=bind("now")
)
#: Stores the result of an approved call, once.
USE_APPROVAL = _APPROVALS.update(
    _one,
    approvals.c.status == sa.literal("approved"),
    approvals.c.used_at.is_(None),
    result=bind("new_result"),
    used_at=bind("now"),
)
#: Records that the requester has read the result.
COLLECT_RESULT = _APPROVALS.update(_one, collected_at=bind("now"))
#: Undecided approvals that have expired, earliest first.
DUE = values_of(
    approvals.c.id,
    _undecided,
    approvals.c.expires_at <= bind("now"),
    order=[approvals.c.expires_at, approvals.c.id],
    limit=bind("limit"),
)
#: Whether an undecided approval refers to a blob, which is then no orphan.
HOLDS_BLOB = _APPROVALS.any(_undecided, blob_file_id="file", blob_sha256="sha256")
#: All revisions of an approval.
REVISIONS = _APPROVAL_REVISIONS.find(approval_id="approval")
#: One revision of an approval.
REVISION = _APPROVAL_REVISIONS.one(approval_id="approval", number="number")
#: One comment of an approval.
COMMENT = _APPROVAL_COMMENTS.one(id="comment", approval_id="approval")
#: A page of an approval's comments.
COMMENTS = _APPROVAL_COMMENTS.after(approval_id="approval")

# Looks at approvals

#: The revisions of an approval that a reader looked at.
LOOKS = values_of(
    approval_looks.c.revision,
    approval_looks.c.approval_id == bind("approval"),
    approval_looks.c.reader == bind("reader"),
)

# Configurations

#: A page of an agent's configurations, newest first.
CONFIG_REVISIONS = _CONFIG_REVISIONS.before(agent_id="agent")
#: One configuration of an agent, by id or number.
CONFIG_REVISION = _CONFIG_REVISIONS.one(
    sa.or_(config_revisions.c.id == bind("revision"), config_revisions.c.number == bind("number")),
    agent_id="agent",
)
#: A new configuration of an agent, if it still is at the revision that was seen.
CONFIGURE_AGENT = _AGENTS.update(
    agents.c.id == bind("agent"),
    agents.c.config_revision == bind("seen_revision"),
    **new(*(field.name for field in CONFIGURED)),
    name_key=bind("new_key"),
    config_revision=agents.c.config_revision + 1,
    updated_at=bind("now"),
)
_with_level = (
    agents.c.company_id == bind("company"),
    # An agent that awaits approval gets the definition of the level at its hiring.
    agents.c.status.not_in([sa.literal("terminated"), sa.literal("pending_approval")]),
)
#: The company's agents with a permission level.
AGENTS_WITH_LEVEL = _AGENTS.find(*_with_level, permission_level="level")
#: How many agents of a company have each permission level.
COUNT_BY_LEVEL = Statement(
    sa.select(agents.c.permission_level, sa.func.count())
    .where(*_with_level)
    .group_by(agents.c.permission_level),
    counted,
)
#: Sets the permission policy of a company.
SET_POLICY = Rows(Company).update(
    companies.c.id == bind("company"), permission_policy=bind("new_policy")
)
#: Sets the permissions and the permission level of an agent.
PERMIT_AGENT = _AGENTS.update(
    agents.c.id == bind("agent"),
    permissions=bind("new_permissions"),
    permission_level=bind("new_level"),
    updated_at=bind("now"),
)
# Deletion of an agent that was never hired; only its approval remains.

_it: sa.BindParameter[str] = bind("agent")


def _revoke(*which: sa.ColumnElement[bool], **values: Any) -> Statement[None]:
    """Revoke grants; those revoked before keep their time of revocation."""
    ended = sa.func.coalesce(grants.c.revoked_at, bind("now"))
    return Rows(Grant).update(*which, revoked_at=ended, **values)


_OF_AGENT = (config_revisions, agent_places, tokens, schedules)
#: Deletes or clears the rows that refer to the agent; only people and its bosses dealt with it.
FORGET_AGENT = (
    _APPROVALS.update(approvals.c.agent_id == _it, agent_id=sa.null()),
    _APPROVALS.update(approvals.c.home_agent_id == _it, home_agent_id=sa.null()),
    *(delete_from(table, agent_id="agent") for table in _OF_AGENT),
    _FILES.update(files.c.home_agent_id == _it, home_agent_id=sa.null()),
    _revoke(grants.c.kind == sa.literal("message"), grants.c.resource_id == _it),
)
_outcome: sa.BindParameter[str] = bind("outcome")
#: Removes the mandate of an agent that was never hired from the graph, and ends grants on it.
FORGET_OUTCOME = (
    delete_from(outcome_edges, parent_id="outcome"),
    delete_from(outcome_edges, child_id="outcome"),
    delete_from(outcome_blockers, outcome_id="outcome"),
    delete_from(outcome_blockers, blocker_id="outcome"),
    # The grants of its scope ended with it.
    _revoke(grants.c.scope_id == _outcome, scope_id=sa.null()),
    _revoke(grants.c.kind == sa.literal("outcome"), grants.c.resource_id == _outcome),
)
_file: sa.BindParameter[str] = bind("file")
#: Whether a document is the text of a message.
SENT_FILE = values_of(messages.c.id, body_file_id="file", limit=1)
#: Makes a kept document an ordinary file that no list shows.
KEEP_AS_FILE = _FILES.update(files.c.id == _file, kind=sa.literal("file"), unlisted=sa.true())
#: Deletes a file with its versions, links and access log, and ends grants on it.
DELETE_FILE = (
    *(delete_from(table, file_id="file") for table in (access_log, file_links, file_versions)),
    _revoke(grants.c.kind == sa.literal("kb_file"), grants.c.resource_id == _file),
    delete_from(files, id="file"),
)
#: The name of a member whose part of the company begins at this agent.
MEMBER_OVER = values_of(
    users.c.name,
    memberships.c.scope_agent_id == _it,
    join=(memberships, memberships.c.user_id == users.c.id),
    limit=1,
)
#: Deletes the mandate of an agent that was never hired.
DELETE_OUTCOME = delete_from(outcomes, id="outcome")
#: Deletes an agent that was never hired.
DELETE_AGENT = _AGENTS.delete(
    sa.and_(agents.c.id == _it, agents.c.status == sa.literal("terminated"))
)
