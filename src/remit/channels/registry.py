"""The installed channels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from remit.adapters.plugins import Plugins, plain
from remit.errors import BadInput

if TYPE_CHECKING:
    from pydantic import BaseModel

    from remit.channels.contract import Channel

#: Import path of each built-in channel, by type.
BUILT_IN = {
    "webhook": "remit.channels.webhook:Webhook",
    "telegram": "remit.channels.telegram:Telegram",
    "slack": "remit.channels.slack:Slack",
    "email": "remit.channels.email:Email",
}


class Registry(Plugins["Channel"]):
    """Channels by their type."""

    noun = "channel"
    group = "remit.channels"
    built_in = BUILT_IN
    missing = BadInput  # the type is an argument of the caller

    def adopt(self, candidate: object) -> Channel:
        from remit.channels.contract import adopt

        channel = adopt(candidate)
        channel.configuration_doc()  # a model that cannot be described cannot be used
        return channel

    def read(self, type_: str, config: object) -> BaseModel:
        try:
            return super().read(type_, config)
        except BadInput as wrong:
            step = f"See `remit bind channels {type_}`."
            raise BadInput(wrong.sentence, step, details=wrong.details) from None

    def validate(self, type_: str, config: object) -> str:
        """Validate settings; return them as given, as JSON for storage."""
        self.read(type_, config)
        return json.dumps(plain(config), sort_keys=True)


#: The registry of this process.
installed = Registry()


def get(type_: str) -> Channel:
    return installed.get(type_)


def validate_url(url: str) -> None:
    """Refuse a forbidden address, by the rules for webhooks."""
    try:
        installed.read("webhook", {"url": url})
    except BadInput as wrong:
        raise BadInput(wrong.sentence, "Give an https address.", details=wrong.details) from None


def secret_of(config: Mapping[str, Any]) -> str | None:
    """Return the name of the secret in a binding's settings, or None."""
    name = config.get("secretRef")
    return name if isinstance(name, str) else None
