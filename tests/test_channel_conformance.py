"""Every channel passes the same suite: ours against the other side's protocol, plugins as well."""

import asyncio
from typing import Any

import pytest

from remit.channels.contract import Connection, Undelivered
from remit.channels.webhook import Webhook, WebhookConfig
from remit.testing import channels
from remit.testing.channels import Shown
from tests.channel_stage import Receiver, receiving

MEMORY = channels.MemoryChannel()


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize("check", channels.checks(MEMORY), ids=lambda one: one.__name__)
def test_the_channel_without_an_outside_keeps_what_a_channel_promises(
    check: channels.Suite,
) -> None:
    asyncio.run(check(MEMORY, channels.MemoryStand()))


WEBHOOK = Webhook()


class WebhookStand:
    """Plays whoever answers at the address. It only takes what is sent."""

    direct = room = "room-7"

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self.refuses = False
        receiver.headers["retry-after"] = "3"
        config = WebhookConfig(url=receiver.url)
        self.connection = Connection(binding="b", config=config, key=b"k", private=True)

    async def say(self, text: str, **_: Any) -> None:
        raise NotImplementedError(text)

    async def tap(self, message: str, label: str) -> None:
        raise NotImplementedError(message, label)

    def shown(self) -> list[Shown]:
        taken = [] if self.refuses else self.receiver.got
        return [Shown(one.document["id"], one.document["body"]) for one in taken]

    def fail(self, how: str) -> None:
        self.refuses = True
        self.receiver.answers.append(410 if how == "refused" else 429)


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize("check", channels.checks(WEBHOOK), ids=lambda one: one.__name__)
def test_a_webhook_keeps_what_a_channel_promises(check: channels.Suite) -> None:
    with receiving() as receiver:
        asyncio.run(check(WEBHOOK, WebhookStand(receiver)))


@pytest.mark.parametrize(
    ("status", "asked", "waited"),
    [
        (429, "7", 7.0),
        (429, "", 30.0),
        (429, "Wed, 21 Oct 2026 07:28:00 GMT", 30.0),
        (429, "9" * 400, 3600.0),
        (503, "5", 5.0),
        (503, "", None),
        (500, "5", None),
    ],
)
def test_a_webhook_is_waited_for_as_long_as_it_asks(
    status: int, asked: str, waited: float | None
) -> None:
    with receiving() as receiver:
        stand = WebhookStand(receiver)
        receiver.headers["retry-after"] = asked
        receiver.answers.append(status)
        with pytest.raises(Undelivered) as failed:
            asyncio.run(WEBHOOK.deliver(channels.parcel(stand)))
    assert (failed.value.retry_after, failed.value.for_good) == (waited, False)
