"""First check of a run's token: it is valid only inside its run."""

from starlette.types import Scope

from remit import threads
from remit.adapters import registry
from remit.app import App
from remit.errors import RemitError
from remit.ids import token_digest
from remit.runtime.sandbox.places import outside
from remit.services.execution import run_queue
from remit.services.identity import as_system


class Door:
    """Checks the origin of each run token, before any other code accepts it."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def check(self, token: str, scope: Scope) -> None:
        """Refuse a token that comes from outside its run."""
        place = self._app.places.of(token)
        if place is not None:
            other, own = scope.get("client"), scope.get("server")
            if other is None or own is None:
                raise outside(place.run)
            await self._app.places.check(place, other, own)
        elif self._app.places.strict:
            await self._check_elsewhere(token)

    async def _check_elsewhere(self, token: str) -> None:
        """Refuse a token whose run belongs to another worker, unless its adapter is remote."""
        run = await self._app.gate(as_system(), run_queue.bound, digest=token_digest(token))
        if run is not None and not await threads.CHECKS.run(_is_remote, run.adapter_type):
            raise outside(run.id)


def _is_remote(adapter: str) -> bool:
    try:
        return registry.get(adapter).remote
    except RemitError:
        return False
