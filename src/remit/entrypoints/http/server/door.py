"""Check of a run's token before anything else: it is good inside its run only."""

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from remit import threads
from remit.adapters import registry
from remit.app import App
from remit.entrypoints.http.wire.caller import token_in
from remit.errors import RemitError
from remit.ids import token_digest
from remit.runtime.sandbox.places import PREFIX, outside
from remit.services.execution import run_queue
from remit.services.identity import as_system

_PREFIX: Final = PREFIX.encode()


class Door:
    """Wraps whatever reads tokens."""

    def __init__(self, inner: ASGIApp, app: App) -> None:
        self._inner = inner
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for name, value in scope["headers"]:
                if name == b"authorization" and _PREFIX in value:
                    await self._check(token_in(value.decode("latin-1")), scope)
        await self._inner(scope, receive, send)

    async def _check(self, token: str, scope: Scope) -> None:
        place = self._app.places.of(token)
        if place is not None:
            other, own = scope.get("client"), scope.get("server")
            if other is None or own is None:
                raise outside(place.run)
            await self._app.places.check(place, other, own)
        elif self._app.places.strict:
            await self._check_elsewhere(token)

    async def _check_elsewhere(self, token: str) -> None:
        """One of a run that is none of ours: its own worker knows its place, and we do not."""
        found = await self._app.gate(as_system(), run_queue.bound, digest=token_digest(token))
        if found is not None and not await threads.CHECKS.run(_is_remote, found.adapter_type):
            raise outside(found.id)


def _is_remote(adapter: str) -> bool:
    try:
        return registry.get(adapter).remote
    except RemitError:
        return False
