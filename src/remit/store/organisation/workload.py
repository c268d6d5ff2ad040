"""Statements about the workload of an agent."""

from sqlalchemy import and_, literal_column, not_, or_, select
from sqlalchemy import bindparam as bind

from remit.store.engine.statement import Statement, count, values_of
from remit.store.tables import files, grants, outcomes, runs

#: How many outcomes an agent could work on and has not touched since a time.
IDLE_OUTCOMES = count(
    outcomes,
    outcomes.c.owner_id == bind("agent"),
    outcomes.c.status == literal_column("'open'"),
    outcomes.c.open_prereqs == literal_column("0"),
    not_(outcomes.c.perpetual),
    or_(outcomes.c.deferred_until.is_(None), outcomes.c.deferred_until <= bind("now")),
    outcomes.c.kind == literal_column("'work'"),
    outcomes.c.updated_at <= bind("before"),
)
#: The length of the conversation of an agent's newest run.
LAST_CONTEXT = values_of(runs.c.context_length, agent_id="agent", order=[runs.c.id.desc()], limit=1)
#: An agent's own daily notes, latest day first; found through its grants, of which it has few.
NOTES = Statement(
    select(files.c.id, files.c.description)
    .join(grants, and_(grants.c.resource_id == files.c.id, grants.c.kind == "kb_file"))
    .where(
        grants.c.holder_id == bind("agent"),
        grants.c.revoked_at.is_(None),
        files.c.home_agent_id == bind("agent"),
        files.c.description.like("memories/____-__-__.md"),
    )
    .distinct()
    .order_by(files.c.description.desc(), files.c.id.desc())
    .limit(bind("limit")),
    lambda file, description: (file, description),
)
