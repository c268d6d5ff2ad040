"""Every channel passes the same suite: ours against the other side's protocol, plugins as well."""

import asyncio

import pytest

from remit.testing import channels

MEMORY = channels.MemoryChannel()


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize("check", channels.checks(MEMORY), ids=lambda one: one.__name__)
def test_the_channel_without_an_outside_keeps_what_a_channel_promises(
    check: channels.Suite,
) -> None:
    asyncio.run(check(MEMORY, channels.MemoryStand()))
