"""A channel to any HTTP server: messages are posted there, and posted back to Remit."""

from __future__ import annotations

import hashlib
import hmac
import json
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from remit.adapters import guarded_http
from remit.adapters.contract import Check, Environment
from remit.adapters.http import Address
from remit.adapters.settings import Config, SecretName
from remit.channels.contract import Channel, Parcel, Undelivered
from remit.clock import SECOND, Micros, to_iso

_LARGEST_ANSWER = 64 * 1024
_GONE, _TOO_MANY, _UNAVAILABLE = 410, 429, 503
_BUSY = (_TOO_MANY, _UNAVAILABLE)
#: Default and longest wait after a busy server, in seconds.
_USUAL_PATIENCE = 30.0
_LONGEST_PATIENCE = 3600


class WebhookConfig(Config):
    url: Address | None = Field(
        default=None,
        description="Where messages are sent with POST, as JSON. https, or http inside a network "
        "that you trust. Redirects are not followed. null: messages come in, and none go out.",
    )
    secret_ref: SecretName | None = Field(
        default=None,
        description="Name of a secret of the company, which its operator registers with `remit "
        "secret set`. Messages are signed with it. null: with the digest of the binding's token.",
    )
    timeout_seconds: int = Field(
        default=10, ge=1, le=30, description="An answer that takes longer counts as none."
    )

    @field_validator("url")
    @classmethod
    def _callable(cls, url: str | None) -> str | None:
        if url is not None and not url.isprintable():
            raise ValueError("must not have characters that cannot be seen")
        address = None if url is None else guarded_http.literal(urlsplit(url).hostname or "")
        # Private addresses are checked at sending, because the operator may allow them.
        why = None if address is None else guarded_http.refusal(address, private=True)
        if why is not None:
            raise ValueError(f"must not be called: the address {why}")
        return url


class Webhook(Channel):
    """Posts what an agent says to an address as signed JSON, and takes messages for the agent at
    POST /api/channels/webhook with the binding's token."""

    type = "webhook"
    Config = WebhookConfig
    names_authors = True
    safety = (
        "The server at `url` reads what the agent sends there.",
        (
            "Everybody with the token can write to the agent. Their messages are shown to it as "
            "from outside, and never as the board's."
        ),
        "With http instead of https, messages can be read on the way.",
    )
    examples = {  # noqa: RUF012  # read only
        "Both ways": {"url": "https://chat.example.org/remit"},
        "Signed with a secret of the company": {
            "url": "https://chat.example.org/remit",
            "secretRef": "chat-signing",
        },
        "Only taking messages in": {},
    }

    def check(
        self, config: WebhookConfig | None = None, environment: Environment | None = None
    ) -> Check:
        del environment  # a call needs nothing of it
        if config is None or config.url is None:
            return Check(True, "It can be used; each binding names its own address.")
        parts = urlsplit(config.url)
        encrypted = parts.scheme == "https"
        sentence = f"Messages would go to {parts.hostname}" + (
            "." if encrypted else ", unencrypted."
        )
        return Check(True, sentence, "", {"host": parts.hostname, "encrypted": encrypted})

    def sends(self, config: WebhookConfig) -> bool:
        return config.url is not None

    async def deliver(self, parcel: Parcel) -> None:
        config: WebhookConfig = parcel.config
        if config.url is None:
            raise Undelivered("the binding has no address to send to", for_good=True)
        await post(
            config.url,
            document(parcel),
            id_=parcel.id,
            key=parcel.key,
            now=parcel.now,
            seconds=config.timeout_seconds,
            private=parcel.private,
        )


async def post(
    url: str,
    content: bytes,
    *,
    id_: str,
    key: bytes,
    now: Micros,
    seconds: int = 10,
    private: bool = False,
) -> None:
    """Send signed JSON to an address outside. Raises `Undelivered`."""
    stamp = str(now // SECOND)
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "Idempotency-Key": id_,
        "Remit-Timestamp": stamp,
        "Remit-Signature": f"v1={signature(key, stamp, content)}",
        "User-Agent": "Remit",
    }
    try:
        answer = await guarded_http.post(
            url,
            content=content,
            headers=headers,
            seconds=seconds,
            largest=_LARGEST_ANSWER,
            private=private,
        )
    except guarded_http.NotAllowed as error:
        raise Undelivered(str(error), for_good=True) from error
    except OSError as error:
        raise Undelivered(f"nobody took it ({error})"[:300]) from error
    if not 200 <= answer.status < 300:
        raise Undelivered(
            f"it was answered with {answer.status}",
            for_good=answer.status == _GONE,
            retry_after=_patience(answer),
        )


def _patience(answer: guarded_http.Answer) -> float | None:
    """Return the seconds that a busy server asks to wait; None if it does not."""
    seconds = answer.headers.get("retry-after", "").strip()
    if answer.status not in _BUSY or not (seconds.isdecimal() or answer.status == _TOO_MANY):
        return None
    return (
        float(min(int(seconds[:9]), _LONGEST_PATIENCE)) if seconds.isdecimal() else _USUAL_PATIENCE
    )


def document(parcel: Parcel) -> bytes:
    """Return the body to send, the same bytes for every attempt at a message."""
    return json.dumps(
        {
            "id": parcel.id,
            "from": parcel.sender,
            "address": parcel.address,
            "conversation": parcel.conversation,
            "subject": parcel.subject,
            "body": parcel.body,
            "thread": parcel.thread,
            "replyTo": parcel.reply_to,
            "replyToOutside": parcel.reply_to_outside,
            "createdAt": to_iso(parcel.created_at),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode("utf-8", "replace")


def signature(key: bytes, stamp: str, content: bytes) -> str:
    """Return the HMAC-SHA256 of the time, a dot, and the body."""
    return hmac.new(key, stamp.encode() + b"." + content, hashlib.sha256).hexdigest()
