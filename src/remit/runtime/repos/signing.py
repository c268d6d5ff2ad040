"""Signatures of commits with an ssh key of the company, in the format that git and forges verify.

The key is a secret like any other, stored by Remit or in a source that the board named. It is used
only in this process, for commits that Remit itself wrote; no program and no run gets it.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from remit.errors import BadInput
from remit.runtime.secrets.values import Vault
from remit.services.command import Answer, Gate
from remit.services.connections import signing
from remit.services.identity import Caller
from remit.services.people import companies

# `cryptography` is imported where it is used: it takes 8 MB, which most instances can do without.
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_NAMESPACE = b"git"
_HASH = b"sha512"


class Signer:
    """Signs with one key: the same commit always gets the same signature."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        from cryptography.hazmat.primitives import serialization

        self._key = key
        form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        #: The public key in the format that forges accept.
        self.public = key.public_key().public_bytes(*form).decode()
        self._public = base64.b64decode(self.public.split()[1])

    @classmethod
    def of(cls, secret: str, value: str) -> Signer:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        try:
            key = serialization.load_ssh_private_key(f"{value.strip()}\n".encode(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise BadInput(
                f"The secret {secret!r} is no ed25519 key of ssh without a passphrase.",
                "Make one with `remit company signing-key --new`.",
            )
        return cls(key)

    @property
    def fingerprint(self) -> str:
        digest = base64.b64encode(hashlib.sha256(self._public).digest())
        return f"SHA256:{digest.decode().rstrip('=')}"

    def signed(self, commit: bytes) -> bytes:
        """Return an unsigned commit with a signature header."""
        head, _, message = commit.partition(b"\n\n")
        # A repository with SHA-256 ids has a header of its own.
        name = b"gpgsig" if len(head.partition(b"\n")[0]) == len("tree ") + 40 else b"gpgsig-sha256"
        shown = self._armoured(commit).replace(b"\n", b"\n ")
        return b"%s\n%s %s\n\n%s" % (head, name, shown, message)

    def _armoured(self, payload: bytes) -> bytes:
        about = _text(_NAMESPACE) + _text(b"") + _text(_HASH)
        message = b"SSHSIG" + about + _text(hashlib.sha512(payload).digest())
        signature = _text(b"ssh-ed25519") + _text(self._key.sign(message))
        whole = b"SSHSIG" + (1).to_bytes(4) + _text(self._public) + about + _text(signature)
        text = base64.b64encode(whole)
        lines = [text[at : at + 70] for at in range(0, len(text), 70)]
        return b"\n".join(
            (b"-----BEGIN SSH SIGNATURE-----", *lines, b"-----END SSH SIGNATURE-----")
        )


def _text(value: bytes) -> bytes:
    return len(value).to_bytes(4) + value


def new_key() -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return stored(Ed25519PrivateKey.generate())


def stored(key: Ed25519PrivateKey) -> str:
    """Return a private key in the format of OpenSSH."""
    from cryptography.hazmat.primitives import serialization

    form = serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH
    return key.private_bytes(*form, serialization.NoEncryption()).decode()


class SigningKeys:
    """The signing keys of companies: generated here, and shown by their public half."""

    def __init__(self, gate: Gate, vault: Vault) -> None:
        self._gate = gate
        self._vault = vault

    async def shown(self, caller: Caller, *, company: str | None) -> Answer:
        view = await self._gate(caller, companies.show, company=company)
        return await self.public(view["id"], view["commit_signing"])

    async def public(self, company: str, secret: str | None) -> Answer:
        """Return the public half of a company's key, for a caller who may see its settings."""
        if secret is None:
            return {"secret": None, "public_key": None, "fingerprint": None}
        signer = Signer.of(secret, await self._vault.value(company, secret))
        return {"secret": secret, "public_key": signer.public, "fingerprint": signer.fingerprint}

    async def make(self, caller: Caller, *, company: str | None) -> Answer:
        """Generate a new key for the company; forges still know the public half of the former one,
        so that older signatures stay valid."""
        allowed = await self._gate(caller, signing.may_make, company=company)
        value = new_key()
        signer = Signer.of(allowed["secret"], value)
        public = {"public_key": signer.public, "fingerprint": signer.fingerprint}
        company = allowed["company_id"]
        answer = await self._vault.kept_for(
            company,
            value,
            lambda kept: self._gate(
                caller, signing.make, company=company, new_place=kept, new_public=public
            ),
        )
        return {name: field for name, field in answer.items() if name != "place"}
