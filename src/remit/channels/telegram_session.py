"""The HTTP session of the library for Telegram, which sends to checked addresses alone."""

from typing import Any

from aiogram.client.session.aiohttp import AiohttpSession
from aiohttp import ClientSession, TCPConnector

from remit.channels import guarded_session
from remit.channels.contract import Connection


class GuardedAiohttpSession(AiohttpSession):
    """A session of aiogram for one connection of a channel."""

    def __init__(self, connection: Connection, **settings: Any) -> None:
        super().__init__(**settings)
        # The library's own settings say which authorities it trusts.
        self._connector_init |= guarded_session.connector_settings(connection)

    async def create_session(self) -> ClientSession:
        """Return the session, which is made at the first call."""
        if self._session is None:
            connector = TCPConnector(**self._connector_init)
            self._session = ClientSession(connector=connector, **guarded_session.SETTINGS)
        return self._session
