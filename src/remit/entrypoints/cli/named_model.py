"""A model that is named when the instance is started: `--model ollama/qwen3`."""

from typing import Any

from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.client import Client
from remit.errors import BadInput, Conflict, Unsupported

ADAPTER = "llm"


def settings(model: str, url: str | None) -> dict[str, Any]:
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
    checked = registry.validate(ADAPTER, config)
    looked = registry.check(ADAPTER, checked)
    if not looked.usable:
        raise Unsupported(looked.sentence, looked.next_step)
    return checked


def give(client: Client, wanted: dict[str, Any]) -> None:
    """Configure the root agent of the first company to run with this model."""
    company = next(client.each(path("companies"), 1))
    agents = client.each(path("companies", company["id"], "agents"), 100)
    root = next((agent for agent in agents if agent["reportsTo"] is None), None)
    if root is None or root["adapterType"] == "human":
        raise Conflict(
            f"{company['name']} has no root agent that a model could run.",
            "Give the model to another agent with `remit agent set`.",
        )
    now = root["adapterConfig"] if root["adapterType"] == ADAPTER else {}
    kept = {key: value for key, value in now.items() if key not in ("provider", "model", "baseUrl")}
    after = {**kept, **wanted}
    if root["adapterType"] != ADAPTER or after != now:
        body = {"adapterType": ADAPTER, "adapterConfig": after}
        client.send("PATCH", path("agents", root["id"]), body)
