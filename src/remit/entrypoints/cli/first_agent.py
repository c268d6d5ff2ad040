"""Check of the first agent: whether it can work, and the one thing that is missing if not."""

import json
import shlex
from typing import Any, NamedTuple

from remit.adapters.registry import WITH_MODEL, WITHOUT_MODEL
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.client import Client
from remit.errors import RemitError


class FirstAgent(NamedTuple):
    name: str
    can_work: bool
    #: The result, for a person.
    sentence: str
    #: Company, id and adapter of an agent with a model, to try the model.
    company: str = ""
    id: str = ""
    adapter: str = ""


def look(client: Client) -> FirstAgent:
    """Check the first agent through the instance, because programs and keys are needed there."""
    try:
        return _look(client)
    except RemitError as error:
        return FirstAgent("ceo", False, f"Whether agents can work is not known: {error.sentence}")


def try_out(client: Client, first: FirstAgent) -> dict[str, Any] | None:
    """Return the result of one request to its model; None if there is nothing to report."""
    if not first.can_work:
        return None
    try:
        answer = _test(client, first.company, first.adapter, agentId=first.id, tryOut=True)
    except RemitError as error:
        return {"ok": None, "sentence": error.sentence, "nextStep": error.step}
    tried = answer["tried"]
    return None if tried is None else dict(tried)


def _test(client: Client, company: str, type_: str, **more: Any) -> dict[str, Any]:
    target = path("companies", company, "adapters", type_, "test-environment")
    return dict(client.send("POST", target, more))


def _look(client: Client) -> FirstAgent:
    company = next(client.each(path("companies"), 1))
    here = ("companies", company["id"])
    agents = client.each(path(*here, "agents"), 100)
    root = next((agent for agent in agents if agent["reportsTo"] is None), None)
    if root is None:
        return FirstAgent("ceo", False, f"{company['name']} has no agent yet.")
    name, type_ = root["name"], root["adapterType"]
    if type_ != WITHOUT_MODEL:
        check = _test(client, company["id"], type_, agentId=root["id"])
        if not check["usable"]:
            return FirstAgent(name, False, f"{name} cannot work yet: {check['sentence']}")
        model = root["adapterConfig"].get("model") if type_ == "llm" else None
        runs = f"{name} works with {model or type_} and is started by its mail."
        return FirstAgent(name, True, runs, company["id"], root["id"], type_)
    tried = {other: _test(client, company["id"], other) for other in WITH_MODEL}
    for other, check in tried.items():
        if check["usable"]:
            step = f"`remit agent set {name} adapterType={other}`"
            return FirstAgent(name, False, f"{name} has no model yet, but {step} gives it one.")
    if local := tried["llm"]["details"].get("local"):
        return FirstAgent(name, False, _offer(name, str(local), tried["llm"]))
    installed = [
        adapter_check for adapter_check in tried.values() if adapter_check["details"].get("program")
    ]
    missing = installed[0]["sentence"] if installed else "neither claude nor codex is installed."
    return FirstAgent(name, False, f"{name} has no model and only reads its mail: {missing}")


def _offer(name: str, local: str, llm: dict[str, Any]) -> str:
    """Sentence with the command that gives an agent the first model of the Ollama found here."""
    from remit.adapters.llm.adapter import first_model

    settings = json.dumps({"provider": "ollama", "model": first_model(local)})
    setting = shlex.quote(f"adapterConfig={settings}")
    take = f"`remit agent set {name} adapterType=llm {setting}`"
    if llm["details"].get("library") is None:
        return (
            f"{name} has no model yet, but Ollama is here with {local}. "
            f"{llm['nextStep']} Then {take} gives it one."
        )
    return f"{name} has no model yet, but Ollama is here with {local}: {take} gives it one."
