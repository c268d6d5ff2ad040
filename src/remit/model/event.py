"""Events: what happened, chained so that a change to the past shows."""

import hashlib
import json
from dataclasses import dataclass, fields

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


_HASHED = tuple(field.name for field in fields(Event) if field.name != "hash")


def event_hash(event: Event) -> str:
    """Covers every field but itself, and through `prev_hash` everything before."""
    document = canonical({name: getattr(event, name) for name in _HASHED})
    return hashlib.sha256(document.encode()).hexdigest()


#: Made once: `json.dumps` makes one for each text.
_ENCODER = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def canonical(document: object) -> str:
    """One text for one value, whatever order it was built in."""
    return _ENCODER.encode(document)
