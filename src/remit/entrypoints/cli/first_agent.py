"""The first agent: whether it can work, what is missing if not, and a model that is named at the
start, as in `--model ollama/qwen3`."""

import json
import shlex
from typing import Any, NamedTuple

from remit.adapters.registry import WITH_MODEL, WITHOUT_MODEL
from remit.entrypoints.cli.client import Client
from remit.entrypoints.cli.session import path
from remit.errors import BadInput, Conflict, RemitError, Unsupported

_LLM = "llm"


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


def _root(client: Client) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the first company and its root agent."""
    company = next(client.each(path("companies"), 1))
    agents = client.each(path("companies", company["id"], "agents"), 100)
    return company, next((agent for agent in agents if agent["reportsTo"] is None), None)


def _look(client: Client) -> FirstAgent:
    company, root = _root(client)
    if root is None:
        return FirstAgent("ceo", False, f"{company['name']} has no agent yet.")
    name, type_ = root["name"], root["adapterType"]
    if type_ != WITHOUT_MODEL:
        check = _test(client, company["id"], type_, agentId=root["id"])
        if not check["usable"]:
            return FirstAgent(name, False, f"{name} cannot work yet: {check['sentence']}")
        model = root["adapterConfig"].get("model") if type_ == _LLM else None
        runs = f"{name} works with {model or type_} and is started by its mail."
        runs += _passed_over(client, company["id"], type_)
        return FirstAgent(name, True, runs, company["id"], root["id"], type_)
    tried = {other: _test(client, company["id"], other) for other in WITH_MODEL}
    for other, check in tried.items():
        if check["usable"]:
            step = f"`remit agent set {name} adapterType={other}`"
            return FirstAgent(name, False, f"{name} has no model yet, but {step} gives it one.")
    if local := tried[_LLM]["details"].get("local"):
        return FirstAgent(name, False, _offer(name, str(local), tried[_LLM]))
    installed = (check["sentence"] for check in tried.values() if check["details"].get("program"))
    missing = next(installed, "neither claude nor codex is installed.")
    return FirstAgent(name, False, f"{name} has no model and only reads its mail: {missing}")


def _passed_over(client: Client, company: str, type_: str) -> str:
    """Sentence about the programs that an agent would rather work with, but that are too old."""
    preferred = WITH_MODEL[: WITH_MODEL.index(type_)] if type_ in WITH_MODEL else ()
    checks = (_test(client, company, other) for other in preferred)
    old = [check for check in checks if check["details"].get("oldest")]
    return "".join(f" {check['sentence']} {check['nextStep']}" for check in old)


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


def model_settings(model: str, url: str | None) -> dict[str, Any]:
    """Validated settings for `--model` and `--model-url`; refused if no agent could work with them
    here."""
    # Imported here, because no other command needs these modules.
    from remit.adapters import registry
    from remit.adapters.llm.adapter import PROVIDERS

    provider, _, name = model.partition("/")
    if provider in PROVIDERS and name:
        config = {"provider": provider, "model": name}
    elif url is not None:
        # Names with a slash are common on such servers.
        config = {"provider": "compatible", "model": model}
    else:
        raise BadInput(
            f"--model: {model[:80]!r} does not say who serves the model.",
            f"Write PROVIDER/NAME, such as ollama/qwen3 ({', '.join(PROVIDERS)}), or say where it "
            "answers with --model-url.",
        )
    if url is not None:
        config["baseUrl"] = url
    checked = registry.validate(_LLM, config)
    looked = registry.check(_LLM, checked)
    if not looked.usable:
        raise Unsupported(looked.sentence, looked.next_step)
    return checked


def give_model(client: Client, wanted: dict[str, Any]) -> None:
    """Configure the root agent of the first company to run with this model."""
    company, root = _root(client)
    if root is None or root["adapterType"] == "human":
        raise Conflict(
            f"{company['name']} has no root agent that a model could run.",
            "Give the model to another agent with `remit agent set`.",
        )
    now = root["adapterConfig"] if root["adapterType"] == _LLM else {}
    kept = {key: value for key, value in now.items() if key not in ("provider", "model", "baseUrl")}
    after = {**kept, **wanted}
    if root["adapterType"] != _LLM or after != now:
        body = {"adapterType": _LLM, "adapterConfig": after}
        client.send("PATCH", path("agents", root["id"]), body)
