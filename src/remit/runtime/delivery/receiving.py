"""Receivers of channels: by a lease, one process listens for each binding and stores messages."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from remit.channels import registry
from remit.channels.contract import Connection, Unreachable
from remit.clock import SECOND, Micros
from remit.errors import Conflict, RemitError
from remit.runtime.deadlines import uninterrupted
from remit.runtime.delivery.connecting import Connector
from remit.runtime.polling import Polling
from remit.services.chat import intake, receivers
from remit.services.chat.shapes import ReceivingShape
from remit.services.command import Gate
from remit.services.connections.shapes import ConnectionShape
from remit.services.queues import Held

log = logging.getLogger(__name__)

#: How often a receiver without messages records that it is well, and how often it checks whether
#: its secret has changed.
HEARD_SECONDS = 10.0
#: How often a conversation is shown that an agent works on its message.
STATE_SECONDS = 4.0
_MOST_STATES = 50


class Receivers(Polling):
    """The receivers of this process."""

    def __init__(
        self,
        gate: Gate,
        connector: Connector,
        *,
        name: str = "local",
        lease: Micros = receivers.LEASE,
    ) -> None:
        super().__init__(
            gate, receivers, "binding", "the loop of receivers", name=name, lease=lease
        )
        self._connector = connector
        #: The binding that listens with each bot account, by kind and digest of the secret.
        self._bots: dict[tuple[str, bytes], str] = {}
        self._every(STATE_SECONDS, self._show_states)

    async def _work(self, held: Held, claimed: ReceivingShape) -> None:
        more: dict[str, Any] = {}
        try:
            await self._receive(held, claimed)
            more["problem"] = "the channel stopped listening"
        except asyncio.CancelledError:
            await uninterrupted(self._ended(held))
            raise
        except Conflict:
            return  # another process listens, or the binding was removed
        except Unreachable as error:
            more["problem"] = error.sentence
            if error.retry_after is not None:
                more["retry_after"] = round(error.retry_after * SECOND)
        except RemitError as error:
            more["problem"] = error.sentence
        except Exception as error:
            # An exception of a plugin; its text may contain secrets, so only the type is shown.
            kind = claimed["adapter_type"]
            log.warning("listening to %s failed (%s)", kind, type(error).__name__)
            more["problem"] = f"the channel failed ({type(error).__name__})"
        await uninterrupted(self._ended(held, **more))

    async def _receive(self, held: Held, claimed: ReceivingShape) -> None:
        while await self._listen(held, claimed):
            log.info("listening to %s begins anew: its secret changed", claimed["adapter_type"])

    async def _listen(self, held: Held, claimed: ReceivingShape) -> bool:
        """Listen until the channel stops; True if it stopped because the secret has changed."""
        binding, epoch = held
        channel = self._connector.channel(claimed)
        connection = await self._connector.connection(claimed)
        clock = asyncio.get_running_loop().time
        heard, looked = float("-inf"), clock()
        with self._alone(claimed, connection):
            async with aclosing(channel.receive(connection)) as coming:
                # A message is stored before the channel resumes and acknowledges it to the server.
                async for messages in coming:
                    kept = [
                        message for message in map(intake.kept, messages) if message is not None
                    ]
                    for begin in range(0, len(kept), intake.MOST_STORED):
                        batch = kept[begin : begin + intake.MOST_STORED]
                        await self._do(intake.store, binding=binding, epoch=epoch, said=batch)
                        heard = clock()
                    if clock() - heard >= HEARD_SECONDS:
                        await self._do(receivers.heard, binding=binding, epoch=epoch)
                        heard = clock()
                    if clock() - looked >= HEARD_SECONDS:
                        looked = clock()
                        if (await self._connector.connection(claimed)).key != connection.key:
                            return True
        return False

    @contextmanager
    def _alone(self, claimed: ConnectionShape, connection: Connection) -> Iterator[None]:
        """Context manager: reserve a bot account for one binding of this process. The account is
        compared by its secret's value, across companies: of two listeners each would get only a
        part of the messages."""
        kind, binding = claimed["adapter_type"], connection.binding
        place = self._connector.channel(claimed).place(connection.config)
        if place is None or place != registry.secret_of(claimed["adapter_config"]):
            yield  # such as mailboxes, which several bindings may share
            return
        bot = (kind, hashlib.sha256(connection.key.strip()).digest())
        if self._bots.setdefault(bot, binding) != binding:
            raise Unreachable("another binding of this instance listens with the same secret")
        try:
            yield
        finally:
            self._bots.pop(bot, None)

    async def _show_states(self) -> None:
        """Show "typing" states in conversations; failures are ignored, nothing depends on them."""
        for claimed, conversation in await self._do(receivers.worked_for, limit=_MOST_STATES):
            try:
                async with asyncio.timeout(STATE_SECONDS):
                    connection = await self._connector.connection(claimed)
                    await self._connector.channel(claimed).show_state(connection, conversation)
            except Exception as error:
                log.debug("a state was not shown (%s)", type(error).__name__)
