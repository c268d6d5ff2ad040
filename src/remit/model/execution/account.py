"""Accounts and set-ups: several agents depend on one, and one fault closes it for all of them.

An *account* is what a provider's limit applies to: a company's use of one adapter, at one address,
with one credential. A *set-up* is an adapter as it is installed on one worker. Both are open until
a run finds a fault in them; then no agent that depends on them is started, except for probes, until
they work again.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NewType
from urllib.parse import urlsplit

from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros
from remit.ids import CompanyId, RunId
from remit.model.execution.fault import Fault, Holds

AccountId = NewType("AccountId", str)

#: Longest closure that a provider may name; a longer one is cut to this.
LONGEST_BELIEVED: Micros = DAY
#: Pauses before the probes of a failing account; the last of them repeats. One that is closed until
#: a named time is probed then.
PROBES: tuple[Micros, ...] = (
    5 * SECOND,
    15 * SECOND,
    45 * SECOND,
    2 * MINUTE,
    5 * MINUTE,
    15 * MINUTE,
)
#: How often the provider of a closed account is asked whether it answers, at no cost.
ASKED_EVERY: Micros = MINUTE
#: A provider that no worker has asked for so long is probed by a run.
UNASKED: Micros = 15 * MINUTE
#: The faults after which a free question shows that the provider works again.
ASKABLE = frozenset({Fault.OVERLOAD, Fault.NETWORK})
#: Step of the ramp after it opened: at most one run starts in the first step, two in the first two
#: steps together, four in the first three, and so on.
RAMP_STEP: Micros = SECOND
#: Length of the ramp; afterwards starts are unlimited.
RAMP: Micros = 10 * RAMP_STEP
#: The same fault is not reported again if it recurs sooner.
TOLD_AGAIN_AFTER: Micros = HOUR
#: Shorter closures are not reported, unless a person can help or the failure repeats.
WORTH_TELLING: Micros = MINUTE
#: A closure of unknown length is reported after so long, whatever is known of it.
LONG_CLOSED: Micros = 10 * MINUTE
_LONGEST_CAUSE = 500
_LONGEST_NAME = 200


#: CLOSED: until a time that the provider named. FAILING: for an unknown time.
AccountState = StrEnum("AccountState", "OPEN CLOSED FAILING")


@dataclass(frozen=True, slots=True)
class Account:
    """An account or a set-up, by its `kind`."""

    #: Digest of the company and of all that distinguishes accounts.
    id: AccountId
    company_id: CompanyId
    kind: Holds
    name: str
    adapter_type: str
    #: Address of the model, or the program; empty for the adapter's default.
    endpoint: str
    #: Of an account: `secret:NAME`, `own:…` for a key in the configuration, or `worker`.
    credential: str
    #: Of a set-up: its worker.
    worker: str | None
    created_at: Micros
    state: AccountState = AccountState.OPEN
    fault: str | None = None
    cause: str | None = None
    #: Start of the closure, and its end as the provider named it.
    since: Micros | None = None
    until: Micros | None = None
    #: Time of the next probe, and the run that makes it.
    probe_at: Micros | None = None
    probe_run_id: RunId | None = None
    #: Number of failures in a row.
    failures: int = 0
    #: When it opened last, and how many runs started during the ramp.
    opened_at: Micros | None = None
    started: int = 0
    #: Time of the last run that ended well.
    answered_at: Micros | None = None
    #: Last report to the board, and its fault.
    told_at: Micros | None = None
    told_fault: str | None = None
    #: While a free question decides whether it is probed: when its provider is asked next.
    ask_at: Micros | None = None

    @property
    def is_held(self) -> bool:
        return self.state is not AccountState.OPEN

    @property
    def title(self) -> str:
        """Name for sentences; that of a set-up says what is set up, and on which worker."""
        if self.kind is not Holds.SETUP:
            return self.name
        program = f" ({self.endpoint})" if self.endpoint else ""
        return f"{self.adapter_type}{program} on worker {self.worker}"


def account_for(
    company: CompanyId, adapter_type: str, config: Mapping[str, Any], now: Micros
) -> Account:
    """Return the account that an agent with this configuration uses."""
    variables = _texts(config.get("env"))
    address = next(
        (value for name, value in sorted(variables.items()) if name.endswith("_BASE_URL")), ""
    )
    endpoint = _text(config, "baseUrl") or address or _text(config, "url")
    endpoint = endpoint or _text(config, "provider")
    if not endpoint and adapter_type == "process":
        endpoint = _command(config)
    keys = [value for name, value in sorted(variables.items()) if name.endswith(("_KEY", "_TOKEN"))]
    credential = "worker"
    shown = ""
    if secret := _text(config, "secretRef"):
        credential, shown = f"secret:{secret}", f":{secret}"
    elif keys:
        credential = f"own:{_digest(company, *keys)[:8]}"
        shown = f":{credential.replace(':', '-')}"
    where = f"@{_short(endpoint)}" if endpoint else ""
    return _new(
        company,
        Holds.ACCOUNT,
        f"{adapter_type}{shown}{where}",
        adapter_type,
        endpoint,
        credential,
        None,
        now,
    )


def setup_for(
    company: CompanyId, adapter_type: str, config: Mapping[str, Any], worker: str, now: Micros
) -> Account:
    """Return the set-up with which a worker runs an agent with this configuration."""
    program = _command(config)
    name = f"setup:{adapter_type}{':' if program else ''}{program}@{worker}"
    return _new(company, Holds.SETUP, name, adapter_type, program, "", worker, now)


def _new(
    company: CompanyId,
    kind: Holds,
    name: str,
    adapter_type: str,
    endpoint: str,
    credential: str,
    worker: str | None,
    now: Micros,
) -> Account:
    digest = _digest(company, kind.value, adapter_type, endpoint, credential, worker or "")
    return Account(
        id=AccountId(digest[:32]),
        company_id=company,
        kind=kind,
        name="".join(name.split())[:_LONGEST_NAME],
        adapter_type=adapter_type,
        endpoint=endpoint,
        credential=credential,
        worker=worker,
        created_at=now,
    )


def closed(
    account: Account, fault: Fault, until: Micros | None, cause: str, now: Micros, *, probed: bool
) -> Account:
    """Return the account after a run failed because of it; `probed` if the run was a probe."""
    if until is not None:
        until = min(until, now + LONGEST_BELIEVED) if until > now else None
    if account.is_held and not probed:
        # The run began before the closure; a later end that it reports is adopted.
        if until is None or until <= (account.probe_at or 0):
            return account
        return replace(
            account,
            state=AccountState.CLOSED,
            fault=fault.value,
            cause=cause[:_LONGEST_CAUSE],
            until=until,
            probe_at=until,
        )
    lasted = account.opened_at is None or now - account.opened_at > HOUR
    before = 0 if not account.is_held and lasted else account.failures
    return replace(
        account,
        state=AccountState.FAILING if until is None else AccountState.CLOSED,
        fault=fault.value,
        cause=cause[:_LONGEST_CAUSE],
        since=account.since if account.is_held else now,
        until=until,
        probe_at=until if until is not None else now + PROBES[min(before, len(PROBES) - 1)],
        probe_run_id=None,
        failures=before + 1,
    )


#: Fields that an open account clears.
_UNTROUBLED: dict[str, Any] = dict.fromkeys(
    ("fault", "cause", "since", "until", "probe_at", "probe_run_id", "ask_at")
)


def opened(account: Account, now: Micros, *, proved: bool = True) -> Account:
    """Return the account open again; unless `proved`, its failures still count."""
    now_on: dict[str, Any] = {"state": AccountState.OPEN, "opened_at": now, "started": 0}
    if proved:
        now_on |= {"failures": 0, "answered_at": now}
    return replace(account, **_UNTROUBLED, **now_on)


def ramping(account: Account, now: Micros) -> bool:
    """Return whether it opened within the time of the ramp, so that starts are limited."""
    return account.opened_at is not None and 0 <= now - account.opened_at < RAMP


def may_start(account: Account, now: Micros) -> bool:
    """Return whether one more run may start on an open account."""
    if not ramping(account, now):
        return True
    assert account.opened_at is not None
    seconds: int = (now - account.opened_at) // RAMP_STEP
    return account.started < 1 << seconds


def is_worth_telling(account: Account, now: Micros) -> bool:
    """Return whether a closure is reported to the board: once for each fault that lasts."""
    if account.told_at is not None and account.since is not None:
        if account.told_at >= account.since:
            return False
        again = now - account.told_at < TOLD_AGAIN_AFTER
        if again and account.told_fault == account.fault:
            return False
    lasts = account.until is not None and account.until - now >= WORTH_TELLING
    lasted = account.since is not None and now - account.since >= LONG_CLOSED
    a_person_helps = account.fault in (Fault.AUTH, Fault.BILLING, Fault.SETUP)
    return lasts or lasted or a_person_helps or account.failures > 1


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _text(config: Mapping[str, Any], name: str) -> str:
    value = config.get(name)
    return value if isinstance(value, str) else ""


def _command(config: Mapping[str, Any]) -> str:
    """Return the program, with a digest of its arguments if it has any."""
    program, arguments = _text(config, "command"), config.get("args")
    return f"{program}#{_digest(json.dumps(arguments))[:6]}" if program and arguments else program


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): text for name, text in value.items() if isinstance(text, str)}


def _short(endpoint: str) -> str:
    """Return an address without scheme, credentials and query."""
    if "://" not in endpoint:
        return endpoint
    parts = urlsplit(endpoint)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
