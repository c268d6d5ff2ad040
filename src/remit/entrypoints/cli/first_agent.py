"""Whether the first agent can really work, and the one thing that is missing if not."""

from __future__ import annotations

from typing import Any, NamedTuple

from remit.adapters.ability import WITH_MODEL, WITHOUT_MODEL
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.client import Client
from remit.errors import RemitError


class FirstAgent(NamedTuple):
    name: str
    can_work: bool
    #: One, for a person.
    sentence: str


def look(client: Client) -> FirstAgent:
    """Asked of the instance, because it is there that programs and keys have to be."""
    try:
        return _look(client)
    except RemitError as error:
        return FirstAgent("ceo", False, f"Whether agents can work is not known: {error.sentence}")


def _look(client: Client) -> FirstAgent:
    company = next(client.each(path("companies"), 1))
    here = ("companies", company["id"])
    agents = client.each(path(*here, "agents"), 100)
    root = next((one for one in agents if one["reportsTo"] is None), None)
    if root is None:
        return FirstAgent("ceo", False, f"{company['name']} has no agent yet.")

    def test(type_: str) -> dict[str, Any]:
        answer = client.send("POST", path(*here, "adapters", type_, "test-environment"))
        return dict(answer)

    name, type_ = root["name"], root["adapterType"]
    if type_ != WITHOUT_MODEL:
        found = test(type_)
        if found["usable"]:
            return FirstAgent(name, True, f"{name} works with {type_} and is started by its mail.")
        return FirstAgent(name, False, f"{name} cannot work yet: {found['sentence']}")
    tried = {other: test(other) for other in WITH_MODEL}
    for other, found in tried.items():
        if found["usable"]:
            step = f"`remit agent set {name} adapterType={other}`"
            return FirstAgent(name, False, f"{name} has no model yet, but {step} gives it one.")
    installed = [one for one in tried.values() if one["details"].get("program")]
    missing = installed[0]["sentence"] if installed else "neither claude nor codex is installed."
    return FirstAgent(name, False, f"{name} has no model and only reads its mail: {missing}")
