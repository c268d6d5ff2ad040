"""Tables, columns and indexes that each revision since v0.1.0 added. They are defined once, in
`remit.store.tables`; a revision creates its tables without the additions of later revisions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from alembic import op
from sqlalchemy import CheckConstraint, Index, MetaData, Table, text

from remit.store.tables import metadata
from remit.store.tables.base import copied, in_order


@dataclass(frozen=True)
class Dropped:
    """An index that a revision dropped, for the tables of revisions before it."""

    name: str
    table: str
    columns: tuple[str, ...]
    where: str
    sqlite: str
    #: The index that it was declared before.
    before: str

    def add_to(self, table: Table) -> None:
        """Declare it in a table as it was."""
        order = [name for name in table.info["indexes"] if name != self.name]
        order.insert(order.index(self.before), self.name)
        table.info = {**table.info, "indexes": order}
        columns = (table.c[name] for name in self.columns)
        where, sqlite = text(self.where), text(self.sqlite)
        Index(self.name, *columns, postgresql_where=where, sqlite_where=sqlite)


@dataclass(frozen=True)
class Additions:
    tables: tuple[str, ...] = ()
    #: By table, in the order in which they are added.
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Indexes on tables that earlier revisions made.
    indexes: tuple[str, ...] = ()
    #: Check constraints that the revision replaced: the former condition, by table and name.
    checks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()


_BY_SHORT_ID = (
    *("agents", "approvals", "events", "files", "grants", "jobs", "messages", "outcomes"),
    *("questions", "runs", "schedules"),
)

ADDITIONS = {
    "0018": Additions(
        tables=(
            *("halts", "waits", "wait_outcomes", "submissions", "accounts"),
            *("wishes", "notice_hooks", "notices", "limits_reached"),
        ),
        columns={
            "answers": ("version",),
            "outcomes": (
                *("open_waits", "news", "seen", "look_at", "look_for", "reviews", "origin_id"),
            ),
            "runs": (
                *("occasion", "outcome_ids", "shown", "goes_on"),
                *("fault", "fault_until", "account_id", "cost_estimated"),
            ),
            "messages": ("expects_reply", "origin_id", "mark"),
            "companies": ("review_hours", "limits", "permission_policy"),
            "agent_leases": ("spared", "failing_since", "held_by"),
            "deliveries": ("begun", "faults", "alone_run_id"),
            "jobs": ("held_by",),
        },
        indexes=(
            *("ix_outcomes_news", "ix_outcomes_look_at", "ix_outcomes_origin_id"),
            *("ix_agent_leases_due", "ix_agent_leases_held_by", "ix_agents_error"),
            *("ix_messages_sender_user_id", "ix_messages_origin_id", "ix_messages_question_id"),
            "ix_runs_live",
            *(f"ix_{table}_short_id" for table in _BY_SHORT_ID),
        ),
    ),
    "0025": Additions(tables=("folders",)),
    "0026": Additions(
        tables=("notice_rules",),
        columns={"notices": ("digest_id", "escalated_from", "post_id", "told", "settled")},
        indexes=("ix_notices_changeable", "ix_notices_digest_id"),
    ),
    "0027": Additions(
        tables=(
            *("linked_accounts", "link_codes", "channel_receivers", "channel_intake"),
            *("channel_posts", "button_references"),
        ),
        columns={"channel_deliveries": ("outside_id", "files"), "messages": ("outside_sender",)},
        indexes=("ix_channel_deliveries_outside_id",),
    ),
    "0028": Additions(
        tables=("changes", "change_comments", "change_errands"),
        columns={"grants": ("paths", "branches")},
        checks={"grants": {"level": "level BETWEEN 0 AND 3"}},
    ),
    "0029": Additions(columns={"files": ("letter",)}, indexes=("ix_files_written",)),
    "0030": Additions(
        columns=dict.fromkeys(("tokens", "linked_accounts", "link_codes"), ("made_with",)),
        indexes=("ix_tokens_made_with",),
    ),
    "0032": Additions(columns={"agent_bindings": ("held",)}),
    "0033": Additions(
        tables=("forge_watches", "forge_issues"),
        columns={
            "repos": ("forge", "api", "api_secret", "hook", "people", "label"),
            "changes": ("request_number", "request_url", "request_seen"),
            "change_comments": ("outside_id", "outside_author", "heard"),
        },
        indexes=("uq_change_comments_outside_id",),
    ),
    "0035": Additions(tables=("change_checks",), columns={"repos": ("checks",)}),
    "0037": Additions(
        columns={"companies": ("commit_committer", "commit_co_authors", "commit_signing")}
    ),
    "0041": Additions(
        tables=("approval_looks",),
        columns={"channel_posts": ("last_id", "part", "parts")},
        indexes=("ix_channel_posts_last_id",),
    ),
    "0042": Additions(columns={"halts": ("left_out",)}),
    "0043": Additions(
        tables=("confirmations",),
        columns={"channel_receivers": ("proof_digest",), "companies": ("mail_decisions",)},
    ),
    "0046": Additions(
        tables=("lent_plugins",),
        columns=dict.fromkeys(("repos", "folders"), ("instructions",)),
    ),
    "0047": Additions(
        columns={
            "tokens": ("event_id",),
            "repos": ("push", "fork", "fork_username", "fork_secret"),
            "changes": ("released_commit",),
        }
    ),
    "0049": Additions(
        columns={
            "messages": ("about", "to_know", "outcome_id"),
            "runs": ("acted",),
            "accounts": ("ask_at",),
        },
        indexes=("ix_messages_about", "ix_messages_outcome_id"),
    ),
    "0051": Additions(
        columns={
            "companies": ("prices",),
            "jobs": ("cost_estimated", "price"),
            "runs": ("price",),
            "spending": ("money_estimated", "tokens_unpriced"),
        },
        indexes=("ix_deliveries_given_up",),
        checks={
            "limits_reached": {
                "name": "name IN ('agent_runs_per_hour', 'agent_tokens_per_day', "
                "'company_runs_per_hour', 'company_cents_per_day')"
            }
        },
    ),
    "0054": Additions(columns={"runs": ("changed_files",)}),
    "0055": Additions(
        columns={
            "waits": ("desk", "place"),
            "agent_leases": ("look_at", "look_for", "rests", "own_act"),
        },
        indexes=(
            *("ix_outcomes_pressing", "ix_outcomes_heard", "ix_outcomes_left"),
            *("ix_outcomes_timed", "ix_waits_desk", "ix_agent_leases_look_at"),
        ),
        dropped=(
            Dropped(
                "ix_outcomes_news",
                "outcomes",
                ("status", "open_prereqs", "owner_id"),
                where="status = 'open' AND (news > seen OR kind = 'inbox')",
                sqlite="status = 'open' AND (news > seen OR kind = 'inbox')",
                before="ix_outcomes_look_at",
            ),
            Dropped(
                "ix_outcomes_actionable",
                "outcomes",
                ("owner_id", "status", "open_prereqs", "urgent", "important"),
                where="status = 'open' AND open_prereqs = 0 AND NOT perpetual",
                sqlite="status = 'open' AND open_prereqs = 0 AND perpetual = 0",
                before="ix_outcomes_news",
            ),
        ),
    ),
}


def tables_at(revision: str, only: Iterable[str] = ()) -> MetaData:
    """Return the tables as a revision left them; with `only`, some and those they refer to."""
    wanted = set(only or metadata.tables)
    for name in tuple(wanted):
        wanted |= {key.column.table.name for key in metadata.tables[name].foreign_keys}
    tables = MetaData(naming_convention=metadata.naming_convention)
    later = [added for since, added in ADDITIONS.items() if since > revision]
    absent = {name for added in later for name in added.tables}
    for table in metadata.sorted_tables:
        if table.name in absent or table.name not in wanted:
            continue
        copy = copied(table, tables)
        for index in (index for added in later for index in added.dropped):
            if index.table == table.name:
                index.add_to(copy)
        for added in later:
            for name in added.columns.get(table.name, ()):
                # A "system" column is left out of CREATE TABLE.
                copy.c[name].system = True
            for declared in in_order(copy):
                if declared.name in added.indexes:
                    copy.indexes.remove(declared)
        # Newest first, so that the oldest replacement since the revision wins.
        for added in reversed(later):
            for check in _checks(copy):
                if (was := added.checks.get(copy.name, {}).get(_plain(copy, check))) is not None:
                    check.sqltext = text(was)
    return tables


def _checks(table: Table) -> list[CheckConstraint]:
    return [
        constraint for constraint in table.constraints if isinstance(constraint, CheckConstraint)
    ]


def _plain(table: Table, check: CheckConstraint) -> str:
    return str(check.name).removeprefix(f"ck_{table.name}_")


def make(revision: str) -> None:
    """Apply the additions of a revision to the database."""
    added = ADDITIONS[revision]
    if op.get_bind().dialect.name == "postgresql":
        # Keys that an earlier revision left to the commit keep their tables from getting indexes.
        op.execute("SET CONSTRAINTS ALL IMMEDIATE")
        op.execute("SET CONSTRAINTS ALL DEFERRED")
    indexed = {
        table.name
        for table in metadata.tables.values()
        if any(index.name in added.indexes for index in table.indexes)
    }
    tables = tables_at(revision, {*added.tables, *added.columns, *added.checks, *indexed}).tables
    for name, columns in added.columns.items():
        for column in columns:
            op.add_column(name, tables[name].c[column])
    for name in added.tables:
        tables[name].create(op.get_bind())
    for name, were in added.checks.items():
        for check in _checks(tables[name]):
            if (was := were.get(_plain(tables[name], check))) is not None:
                _replace_check(name, _plain(tables[name], check), was, str(check.sqltext))
    for table in tables.values():
        for index in in_order(table):
            if index.name in added.indexes:
                index.create(op.get_bind())
    for gone in added.dropped:
        op.drop_index(gone.name, gone.table)


def _replace_check(table: str, check: str, was: str, now: str) -> None:
    """Replace a check constraint. SQLite cannot alter one, so the stored text of the table is
    edited; that is safe, because a condition that only became wider holds for every row."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        op.drop_constraint(f"ck_{table}_{check}", table)
        op.create_check_constraint(op.f(f"ck_{table}_{check}"), table, now)
        return
    version = connection.execute(text("PRAGMA schema_version")).scalar()
    connection.execute(text("PRAGMA writable_schema = ON"))
    connection.execute(
        text(
            "UPDATE sqlite_master SET sql = replace(sql, :was, :now)"
            " WHERE type = 'table' AND name = :table"
        ),
        {"was": f"CHECK ({was})", "now": f"CHECK ({now})", "table": table},
    )
    connection.execute(text(f"PRAGMA schema_version = {int(version or 0) + 1}"))
    connection.execute(text("PRAGMA writable_schema = OFF"))
