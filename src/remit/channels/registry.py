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

#: Where each of ours is.
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
    missing = BadInput  # whoever binds names one that is there

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
        """The settings as they are kept: JSON, as they were given, if the channel takes them."""
        self.read(type_, config)
        return json.dumps(plain(config), sort_keys=True)


#: The one of this process.
installed = Registry()


def get(type_: str) -> Channel:
    return installed.get(type_)


def validate_url(url: str) -> None:
    """Refuse an address that must not be called, as a webhook's is refused."""
    try:
        installed.read("webhook", {"url": url})
    except BadInput as wrong:
        raise BadInput(wrong.sentence, "Give an https address.", details=wrong.details) from None


def secret_of(config: Mapping[str, Any]) -> str | None:
    """The secret of the company that a binding names, to sign with."""
    name = config.get("secretRef")
    return name if isinstance(name, str) else None
