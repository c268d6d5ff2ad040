"""Statements about accounts and set-ups."""

from sqlalchemy import and_, exists, literal, literal_column, not_, or_, select
from sqlalchemy import bindparam as bind

from remit.clock import Micros
from remit.model.execution.account import LONGEST_BELIEVED, Account
from remit.store.engine.statement import Rows, Statement, new, scalar
from remit.store.tables import accounts, agents, jobs, runs

_ACCOUNTS = Rows(Account)
_one = accounts.c.id == bind("account")
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

#: One account or set-up.
ACCOUNT = _ACCOUNTS.one(_one).keep()
#: All of a company, by their names.
ACCOUNTS = _ACCOUNTS.find(
    company_id="company", order=[accounts.c.name, accounts.c.id], limit=bind("limit")
)
#: The closed ones of a company, the oldest first.
HELD_IN = _ACCOUNTS.find(
    _held, company_id="company", order=[accounts.c.since, accounts.c.id], limit=bind("limit")
)
#: The columns that change when an account closes, is tried or opens.
CHANGING = (
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
#: Stores the state of an account.
CHANGE = _ACCOUNTS.update(_one, **new(*CHANGING))
#: Make a run the one that finds out whether an account works again; at most one is under way.
PROBE = _ACCOUNTS.update(_one, _held, _due, not_(_is_probed), probe_run_id=bind("run"))
#: One more was started while it opens.
START = _ACCOUNTS.update(_one, started=accounts.c.started + 1)
#: The provider answered somebody.
ANSWERED = _ACCOUNTS.update(_one, not_(_held), answered_at=bind("now"))
_to_probe = and_(_held, not_(_setup), _due, not_(_is_probed))
#: Whether a run is to find out if an account works again.
IS_TO_BE_PROBED = Statement(select(literal(1)).where(_one, _to_probe), scalar)
#: Accounts of which a run is to find out that.
TO_PROBE = _ACCOUNTS.find(_to_probe, order=[accounts.c.probe_at], limit=bind("limit"))
_same = accounts.alias("same")
#: Set-ups of other workers that do not work, while they may work on this one.
BROKEN_ELSEWHERE = _ACCOUNTS.find(
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
    order=(),
    limit=bind("limit"),
)
#: Set-ups of a worker that it is to look at again.
TO_CHECK = _ACCOUNTS.find(
    _held, _setup, _due, worker="worker", order=[accounts.c.probe_at], limit=bind("limit")
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
TRY_CREDENTIAL = _ACCOUNTS.update(
    _held, *_ACCOUNTS.same(company_id="company", credential="credential"), probe_at=bind("now")
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
