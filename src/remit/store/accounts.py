"""Statements about accounts and set-ups."""

from __future__ import annotations

from sqlalchemy import and_, exists, insert, literal, literal_column, not_, or_, select, update
from sqlalchemy import bindparam as bind

from remit.clock import Micros
from remit.model.account import LONGEST_BELIEVED, Account
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import accounts, agents, jobs, runs

_all = columns(accounts, Account)
_held = accounts.c.state != literal_column("'open'")
_setup = accounts.c.kind == literal("setup")
#: A time farther away than any that is believed: the clock was set back since.
_BEYOND: Micros = LONGEST_BELIEVED + 1
_due = or_(accounts.c.probe_at <= bind("now"), accounts.c.probe_at > bind("now") + _BEYOND)
#: By the run of an agent, or by a background job that is under way and waits for it all the same.
_is_probed = or_(
    exists().where(runs.c.id == accounts.c.probe_run_id, runs.c.status == literal("running")),
    exists().where(
        jobs.c.held_by == accounts.c.id,
        # Written so that the partial index is seen to match.
        jobs.c.status.in_([literal_column("'queued'"), literal_column("'running'")]),
        jobs.c.status == literal_column("'running'"),
    ),
)

INSERT_ACCOUNT = change(insert(accounts))
ACCOUNT = Statement(select(*_all).where(accounts.c.id == bind("account")), into(Account))
ACCOUNTS = Statement(
    select(*_all)
    .where(accounts.c.company_id == bind("company"))
    .order_by(accounts.c.name, accounts.c.id)
    .limit(bind("limit")),
    into(Account),
)
HELD_IN = Statement(
    select(*_all)
    .where(accounts.c.company_id == bind("company"), _held)
    .order_by(accounts.c.since, accounts.c.id)
    .limit(bind("limit")),
    into(Account),
)
CHANGE = change(
    update(accounts)
    .where(accounts.c.id == bind("account"))
    .values(
        {
            name: bind(f"new_{name}")
            for name in (
                "state",
                "fault",
                "cause",
                "since",
                "until",
                "probe_at",
                "probe_run_id",
                "failures",
                "opened_at",
                "started",
                "answered_at",
                "told_at",
                "told_fault",
            )
        }
    )
)
#: Make a run the one that finds out whether an account works again; at most one is under way.
PROBE = change(
    update(accounts)
    .where(accounts.c.id == bind("account"), _held, _due, not_(_is_probed))
    .values(probe_run_id=bind("run"))
)
#: One more was started while it opens.
START = change(
    update(accounts).where(accounts.c.id == bind("account")).values(started=accounts.c.started + 1)
)
ANSWERED = change(
    update(accounts)
    .where(accounts.c.id == bind("account"), not_(_held))
    .values(answered_at=bind("now"))
)
IS_TO_BE_PROBED = Statement(
    select(literal(1)).where(
        accounts.c.id == bind("account"), _held, not_(_setup), _due, not_(_is_probed)
    ),
    scalar,
)
#: Accounts of which a run is to find out whether they work again.
TO_PROBE = Statement(
    select(*_all)
    .where(_held, not_(_setup), _due, not_(_is_probed))
    .order_by(accounts.c.probe_at)
    .limit(bind("limit")),
    into(Account),
)
_same = accounts.alias("same")
#: Set-ups of other workers that do not work, while they may work on this one.
BROKEN_ELSEWHERE = Statement(
    select(*_all)
    .where(
        _held,
        _setup,
        accounts.c.worker != bind("worker"),
        ~exists().where(
            _same.c.company_id == accounts.c.company_id,
            _same.c.kind == literal("setup"),
            _same.c.adapter_type == accounts.c.adapter_type,
            _same.c.endpoint == accounts.c.endpoint,
            _same.c.worker == bind("worker"),
            _same.c.state != literal("open"),
        ),
    )
    .limit(bind("limit")),
    into(Account),
)
#: Set-ups of a worker that it is to look at again.
TO_CHECK = Statement(
    select(*_all)
    .where(_held, _setup, accounts.c.worker == bind("worker"), _due)
    .order_by(accounts.c.probe_at)
    .limit(bind("limit")),
    into(Account),
)
#: When an account is tried next, or a set-up looked at.
NEXT_PROBE = Statement(
    select(accounts.c.probe_at)
    .where(_held, accounts.c.probe_at > bind("now"))
    .order_by(accounts.c.probe_at)
    .limit(1),
    scalar,
)
#: Somebody changed what an account depends on: it is tried at once.
TRY_CREDENTIAL = change(
    update(accounts)
    .where(
        accounts.c.company_id == bind("company"),
        accounts.c.credential == bind("credential"),
        _held,
    )
    .values(probe_at=bind("now"))
)
#: Somebody who uses an adapter, whose configuration serves to look whether it works.
WITH_ADAPTER = Statement(
    select(agents.c.adapter_config)
    .where(
        and_(
            agents.c.company_id == bind("company"),
            agents.c.adapter_type == bind("adapter"),
            agents.c.status != literal("terminated"),
        )
    )
    .order_by(agents.c.id)
    .limit(bind("limit")),
    scalar,
)
