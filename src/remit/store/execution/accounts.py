"""Statements about accounts of providers and set-ups of workers: closing, probing, opening."""

from sqlalchemy import and_, exists, literal, literal_column, not_, null, or_, select
from sqlalchemy import bindparam as bind

from remit.clock import Micros
from remit.model.execution.account import LONGEST_BELIEVED, UNASKED, Account
from remit.store.engine.statement import Rows, Statement, new, scalar
from remit.store.tables import accounts, agent_leases, agents, jobs, runs

_ACCOUNTS = Rows(Account)
_one = accounts.c.id == bind("account")
_held = accounts.c.state != literal_column("'open'")
_setup = accounts.c.kind == literal("setup")
#: Probes farther away than this count as due, because the clock was set back.
_BEYOND: Micros = LONGEST_BELIEVED + 1
_asked_late = accounts.c.ask_at > bind("now") + _BEYOND
_due = or_(accounts.c.probe_at <= bind("now"), accounts.c.probe_at > bind("now") + _BEYOND)
#: A probe is under way: the run of an agent, or a running background job that names the account.
_is_probed = or_(
    exists().where(runs.c.id == accounts.c.probe_run_id, runs.c.status == literal("running")),
    exists().where(
        jobs.c.held_by == accounts.c.id,
        # Repeats the condition of the partial index, so that the planner uses it.
        jobs.c.status.in_([literal_column("'queued'"), literal_column("'running'")]),
        jobs.c.status == literal_column("'running'"),
    ),
)

#: One account or set-up.
ACCOUNT = _ACCOUNTS.one(_one).keep()
#: All accounts and set-ups of a company, by name.
ACCOUNTS = _ACCOUNTS.find(
    company_id="company", order=[accounts.c.name, accounts.c.id], limit=bind("limit")
)
#: The closed accounts and set-ups of a company, longest closed first.
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
    "ask_at",
)
#: Stores the state of an account.
CHANGE = _ACCOUNTS.update(_one, **new(*CHANGING))
#: Somebody has waited for long.
_is_overdue = or_(
    *(
        exists().where(
            waiting.c.held_by == accounts.c.id, waiting.c.due_at <= bind("now") - UNASKED
        )
        for waiting in (agent_leases, jobs)
    )
)
#: Its provider is not asked first, or no worker asks it though somebody waits.
_not_asked = or_(
    accounts.c.ask_at.is_(None),
    and_(accounts.c.ask_at <= bind("now") - UNASKED, _is_overdue),
)
#: Makes a run the probe of a closed account; at most one is under way.
PROBE = _ACCOUNTS.update(_one, _held, _due, _not_asked, not_(_is_probed), probe_run_id=bind("run"))
#: Counts a run that was started while the account opens gradually.
START = _ACCOUNTS.update(_one, started=accounts.c.started + 1)
#: Records an answer of the provider on an open account.
ANSWERED = _ACCOUNTS.update(_one, not_(_held), answered_at=bind("now"))
_to_probe = and_(_held, not_(_setup), _due, _not_asked, not_(_is_probed))
#: Whether an account is due for a probe by a run.
IS_TO_BE_PROBED = Statement(select(literal(1)).where(_one, _to_probe), scalar)
#: The accounts that are due for a probe by a run.
TO_PROBE = _ACCOUNTS.find(_to_probe, order=[accounts.c.probe_at], limit=bind("limit"))
_same = accounts.alias("same")
#: Closed set-ups of other workers whose counterpart on this worker is not closed.
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
#: Closed set-ups of a worker that are due for another check.
TO_CHECK = _ACCOUNTS.find(
    _held, _setup, _due, worker="worker", order=[accounts.c.probe_at], limit=bind("limit")
)
_to_ask = and_(_held, not_(_setup), or_(accounts.c.ask_at <= bind("now"), _asked_late))
#: Closed accounts whose provider is to be asked now.
TO_ASK = _ACCOUNTS.find(_to_ask, order=[accounts.c.ask_at], limit=bind("limit"))
#: Makes a worker the one that asks; if it does not report, the next one asks again later.
ASK = _ACCOUNTS.update(_one, _to_ask, ask_at=bind("again"), probe_at=bind("again"))
#: The time of the next probe of an account or check of a set-up.
NEXT_PROBE = Statement(
    select(accounts.c.probe_at)
    .where(_held, accounts.c.probe_at > bind("now"))
    .order_by(accounts.c.probe_at)
    .limit(1),
    scalar,
)
#: Makes closed accounts of a credential due at once, because the credential changed.
TRY_CREDENTIAL = _ACCOUNTS.update(
    _held,
    *_ACCOUNTS.same(company_id="company", credential="credential"),
    probe_at=bind("now"),
    ask_at=null(),
)
#: Configurations of agents with an adapter, to check the adapter with.
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
