"""Events: the record of a company as a hash chain, so that a change to the past shows."""

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
    """Hash every field but `hash` itself and, through `prev_hash`, all earlier events."""
    document = canonical({name: getattr(event, name) for name in _HASHED})
    return hashlib.sha256(document.encode()).hexdigest()


#: Created once: `json.dumps` creates one for each call.
_ENCODER = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def canonical(document: object) -> str:
    """Serialise a value to the same text whatever the order of its keys."""
    return _ENCODER.encode(document)
