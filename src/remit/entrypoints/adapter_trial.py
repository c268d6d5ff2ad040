"""Check of an adapter on the instance's machine, after the caller's permission is checked."""

from collections.abc import Mapping
from typing import Any

from remit import threads
from remit.adapters import registry
from remit.adapters.contract import Check
from remit.adapters.setup.probe import Tried
from remit.app import App
from remit.errors import BadInput, RemitError
from remit.runtime.runs import checks
from remit.services.identity import Caller
from remit.services.screens import overview


async def tried(
    app: App,
    who: Caller,
    company: str,
    adapter: str,
    config: Mapping[str, Any] | None,
    *,
    agent: str | None = None,
    try_out: bool = False,
) -> tuple[Check, Tried | None]:
    """Result of an adapter's check on this machine, with these settings or those of an agent; with
    `try_out`, also the answer of its model to one small request."""
    company_id, settings = await app.gate(who, overview.may_test, company=company, agent=agent)
    if settings is not None:
        if config is not None or settings["adapter_type"] != adapter:
            raise BadInput(
                f"That agent has its own settings, of the adapter {settings['adapter_type']}.",
                "Give that adapter without adapterConfig, or leave agentId out.",
            )
        config = settings["adapter_config"]
    check = await threads.CHECKS.run(checks.check, adapter, config, app.settings.home)
    if not (try_out and check.usable):
        return check, None
    return check, await _asked(app, company_id, adapter, config or {})


async def _asked(app: App, company: str, adapter: str, config: Mapping[str, Any]) -> Tried | None:
    name = getattr(registry.read(adapter, config), "secret_ref", None)
    try:
        secret = None if name is None else await app.vault.value(company, name)
    except RemitError as error:
        return Tried(False, error.sentence, error.step)
    return await registry.try_out(adapter, config, secret)
