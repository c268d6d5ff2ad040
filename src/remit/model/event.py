"""Events: the record of a company, in which each holds the hash of the one before."""

from dataclasses import dataclass

from remit.clock import Micros
from remit.ids import CompanyId, EventId, RunId
from remit.model.organisation.principal import ActorKind

#: The hash before the first event of a company.
GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class Event:
    company_id: CompanyId
    seq: int
    id: EventId
    at: Micros
    actor_kind: ActorKind
    actor_id: str
    run_id: RunId | None
    #: The action, such as `file.write`; for a denial, the action that was tried.
    action: str
    resource: str
    allowed: bool
    reason: str
    basis: str
    #: JSON text, canonical.
    details: str
    prev_hash: str
    hash: str
