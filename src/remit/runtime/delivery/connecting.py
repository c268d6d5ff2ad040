"""Connections for channels: the settings and secret of a binding, and its server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from remit.adapters.contract import Check
from remit.channels import registry
from remit.channels.contract import Channel, Connection
from remit.errors import RemitError
from remit.runtime.secrets.values import SecretOf
from remit.services.chat.commands import COMMANDS
from remit.services.connections.shapes import ConnectionShape

PROBE_SECONDS = 20.0


@dataclass(frozen=True)
class Connector:
    """Factory of connections for bindings; shared by the loops that talk to channels."""

    secret: SecretOf
    #: Whether channels may call addresses in private networks.
    private: bool = False
    #: Servers in place of the public ones, by kind of channel.
    servers: Mapping[str, str] = field(default_factory=dict)

    def channel(self, claimed: ConnectionShape) -> Channel:
        return registry.get(claimed["adapter_type"])

    async def connection(self, claimed: ConnectionShape) -> Connection:
        """Return the connection for a claimed row; raises `RemitError`."""
        kind = claimed["adapter_type"]
        return Connection(
            binding=claimed["binding"],
            config=registry.installed.read(kind, claimed["adapter_config"]),
            key=await self._key(claimed),
            private=self.private,
            server=self.servers.get(kind),
            commands=[(name, command.help) for name, command in COMMANDS.items()],
            proof=str(claimed.get("proof", "")),
            proof_digest=str(claimed.get("proof_digest", "")),
        )

    async def probe(self, claimed: ConnectionShape) -> Check:
        """Check the binding's credentials with the server of the channel."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                return await self.channel(claimed).probe(await self.connection(claimed))
        except RemitError as error:
            return Check(False, error.sentence, error.step)
        except TimeoutError:
            return Check(False, "It does not answer.", "Try again, or look at its settings.")
        except Exception as error:
            # An exception of a plugin; its text may contain secrets, so only the type is shown.
            return Check(False, f"The channel failed ({type(error).__name__}).", "")

    async def _key(self, claimed: ConnectionShape) -> bytes:
        """Return the value of the binding's secret, or the digest of its token without one."""
        name = registry.secret_of(claimed["adapter_config"])
        if name is None:
            return str(claimed["adapter_token"]).encode()
        return (await self.secret(claimed["company_id"], name)).encode()
