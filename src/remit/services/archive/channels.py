"""Bindings in an export: agents and channels, without credentials.

The settings are not trusted: an imported binding is held until the importer binds the agent again.
"""

import json
from collections.abc import Iterator

from remit.errors import BadInput
from remit.model.messaging.channel import Binding, channel_kind
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.agent_spec import document
from remit.services.archive import layout
from remit.services.archive.fields import Fields
from remit.services.archive.plan import Plan
from remit.services.archive.records import Entry, Kind, Record, checked
from remit.services.archive.references import known
from remit.services.archive.text import line
from remit.services.command import Context
from remit.services.connections import bindings
from remit.store.messaging import channels as statements


def _read_config(fields: Fields, key: str) -> str:
    try:
        config = json.loads(document(fields.get(key), key))
    except BadInput as error:
        raise fields.wrong(key, f"is refused: {error.sentence.rstrip('.')}") from None
    return json.dumps(bindings.shown(config), sort_keys=True)


BINDING = Record(
    Binding,
    "agent=agent_id",
    Entry("kind", checked(lambda text, _: channel_kind(text)), "adapter_type"),
    Entry(
        "config",
        Kind(lambda text: bindings.shown(json.loads(text)), _read_config),
        "adapter_config",
    ),
    "created_at",
)


def written(ctx: Context) -> Iterator[bytes]:
    for binding in ctx.tx.all(statements.BINDINGS, agent=None, after="", limit=1 << 30):
        yield line(BINDING.write(binding))


def _read_binding(plan: Plan, fields: Fields) -> None:
    arguments = {"id": "", "company_id": plan.company.id, "adapter_token": ""}
    read = BINDING.read(fields, **arguments, removed_at=None, held=True)
    known(read.agent_id, plan.agents, fields.path, "agent")
    if plan.agents[read.agent_id].status is AgentStatus.TERMINATED:
        raise fields.wrong("agent", "is terminated, so it is bound to nothing")
    plan.add(plan.bindings, f"{read.agent_id}/{read.adapter_type}", read, fields.path)


READERS = {layout.BINDINGS: _read_binding}
