"""Probe of a binding's connection to the outside, for the HTTP interface and the pages."""

from typing import Any, cast

from remit.app import App
from remit.services.connections import bindings, channels
from remit.services.connections.shapes import ConnectionShape
from remit.services.identity import Caller, as_system


async def asked(app: App, who: Caller, company: str | None, binding: str) -> dict[str, Any]:
    allowed = await app.gate(who, bindings.try_out, company=company, binding=binding)
    if allowed["held"]:
        return {"usable": False, "sentence": bindings.HELD, "next_step": bindings.HELD_STEP}
    about = {"kind": allowed["kind"], "binding": allowed["id"]}
    claimed = await app.gate(as_system(), channels.posted, **about)
    check = await app.connector.probe(cast(ConnectionShape, claimed))
    return {"usable": check.usable, "sentence": check.sentence, "next_step": check.next_step}
