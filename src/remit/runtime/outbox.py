"""Hands what agents say to channels to the outside, a few messages at once.

One loop in the process that serves. Each message is claimed with a lease that is longer than any
attempt, so nobody has to renew it; what a process that was killed had claimed is taken over when
its lease is over, or when the next one starts.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from remit.channels import registry
from remit.channels.contract import Parcel, Undelivered
from remit.clock import SECOND, Micros
from remit.errors import Conflict, RemitError
from remit.ids import CompanyId
from remit.runtime.execution import uninterrupted
from remit.services import outbox
from remit.services.command import Gate
from remit.services.identity import as_system

log = logging.getLogger(__name__)

#: More than a channel of ours takes; plugins get no longer.
ATTEMPT_SECONDS = 45.0
AT_ONCE = 8
#: Of one binding, so that a slow receiver keeps no others waiting.
AT_ONCE_EACH = 2
LONGEST_SLEEP = 1.0
#: Much happens that is not about channels; it is looked at together.
SHORTEST_SLEEP = 0.05


class Outbox:
    """Delivers; `tick` does what can be done now, `start` goes on doing so."""

    def __init__(
        self,
        gate: Gate,
        secret: Callable[[str, str], Awaitable[str]],
        *,
        private: bool = False,
        name: str = "local",
        lease: Micros = outbox.LEASE_TIME,
        backoff: tuple[Micros, ...] = outbox.BACKOFF,
    ) -> None:
        """`secret` looks up a company's secret by name."""
        self._gate = gate
        self._secret = secret
        self._private = private
        self._name = name
        self._lease = lease
        self._backoff = backoff
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._senders: Counter[outbox.Sender] = Counter()
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._gate.listeners.append(self._something_happened)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Begin nothing any more; what is under way goes back in line."""
        if self._something_happened in self._gate.listeners:
            self._gate.listeners.remove(self._something_happened)
        tasks = [*([self._task] if self._task else []), *self._under_way.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def recover(self) -> None:
        """Whatever seems to be under way is not: there is no other process."""
        for message, epoch in await self._gate(as_system(), outbox.under_way):
            await self._gate(
                as_system(), outbox.take_over, message=message, epoch=epoch, alone=True
            )

    async def tick(self) -> int:
        """Deliver what can go out now, and wait for it; answers how many attempts were made."""
        begun = await self._dispatch()
        await asyncio.gather(*self._under_way.values())
        return begun

    def _something_happened(self, _: CompanyId) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._changed.set)

    async def _run(self) -> None:
        while True:
            pause = LONGEST_SLEEP
            try:
                self._changed.clear()
                await self._dispatch()
                due = await self._gate(as_system(), outbox.next_due)
                if due is not None:
                    pause = min(max((due - self._gate.clock.now()) / SECOND, 0), LONGEST_SLEEP)
            except RemitError as error:
                log.warning("mail to channels will be tried again: %s", error)
            except Exception:
                # Whatever it was: the rest has to go out, too.
                log.exception("mail to channels will be tried again")
            await asyncio.sleep(SHORTEST_SLEEP)
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _dispatch(self) -> int:
        for message, epoch in await self._gate(as_system(), outbox.expired):
            if message in self._under_way:
                continue  # by us, and only the clock says that it takes long
            try:
                await self._gate(as_system(), outbox.take_over, message=message, epoch=epoch)
            except Conflict:
                continue  # it was heard of after all
        if len(self._under_way) >= AT_ONCE:
            return 0
        begun = 0
        for message, sender in await self._gate(as_system(), outbox.ready):
            full = self._senders[sender] >= AT_ONCE_EACH
            if not full and len(self._under_way) < AT_ONCE:
                begun += await uninterrupted(self._begin(message, sender))
        return begun

    async def _begin(self, message: str, sender: outbox.Sender) -> int:
        claimed = await self._gate(
            as_system(), outbox.claim, message=message, worker=self._name, lease=self._lease
        )
        if claimed is None:
            return 0
        task = asyncio.create_task(self._deliver(message, claimed))
        self._under_way[message] = task
        self._senders[sender] += 1
        task.add_done_callback(lambda _: self._done(message, sender))
        return 1

    def _done(self, message: str, sender: outbox.Sender) -> None:
        self._under_way.pop(message, None)
        self._senders -= Counter({sender: 1})
        self._changed.set()

    async def _deliver(self, message: str, claimed: dict[str, Any]) -> None:
        held = {"message": message, "epoch": claimed["epoch"]}
        try:
            await self._attempt(claimed)
        except asyncio.CancelledError:
            await uninterrupted(self._say(outbox.put_back, held))
            raise
        except Undelivered as error:
            more = {"why": error.sentence, "for_good": error.for_good, "backoff": self._backoff}
            await uninterrupted(self._say(outbox.failed, {**held, **more}))
        else:
            await uninterrupted(self._say(outbox.delivered, held))

    async def _attempt(self, claimed: dict[str, Any]) -> None:
        kind, given = claimed["adapter_type"], claimed["adapter_config"]
        try:
            channel = registry.get(kind)
            parcel = Parcel(
                **claimed["parcel"],
                now=self._gate.clock.now(),
                config=registry.installed.read(kind, given),
                key=await self._key(claimed),
                private=self._private,
            )
            async with asyncio.timeout(ATTEMPT_SECONDS):
                await channel.deliver(parcel)
        except Undelivered:
            raise
        except RemitError as error:
            raise Undelivered(error.sentence) from error
        except TimeoutError:
            raise Undelivered("it took too long") from None
        except Exception as error:
            # A plugin's own; its text may hold what it was given.
            log.warning("the channel %s failed (%s)", kind, type(error).__name__)
            raise Undelivered(f"the channel failed ({type(error).__name__})") from error

    async def _key(self, claimed: dict[str, Any]) -> bytes:
        """A secret of the company, or what is kept of the binding's token."""
        name = registry.secret_of(claimed["adapter_config"])
        if name is None:
            return str(claimed["adapter_token"]).encode()
        return (await self._secret(claimed["company_id"], name)).encode()

    async def _say(self, verb: Any, about: dict[str, Any]) -> None:
        try:
            await self._gate(as_system(), verb, **about)
        except Conflict:
            pass  # the binding is gone, or somebody took over
        except Exception:
            # Its lease ends, and then it is tried again.
            log.exception("what became of message %s could not be kept", about["message"])
