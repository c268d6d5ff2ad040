"""Shapes of linked accounts, receivers, and items of the chat queues."""

from __future__ import annotations

from typing import TypedDict

from remit.model.messaging.chat import LinkedAccount
from remit.services.connections.shapes import ConnectionShape, ParcelShape
from remit.services.knowledge.shapes import StoredShape
from remit.services.shape_basics import Moment, NamedShape


class LinkCodeShape(TypedDict):
    kind: str
    #: Shown this once.
    code: str | None
    expires_at: Moment


class LinkedAccountShape(TypedDict):
    id: str
    kind: str
    account: str
    label: str
    created_at: Moment
    used_at: Moment


class ReceiverShape(TypedDict):
    binding_id: str
    #: listening, waiting or failing
    state: str
    problem: str | None
    heard_at: Moment | None
    worker: str | None


class ReceivingShape(ConnectionShape):
    """A claimed receiver."""

    epoch: int
    #: The secret that the chat system is told to show with its posts.
    proof: str


class PostedShape(ConnectionShape):
    """A binding whose chat system posts; the digest is empty while nobody has listened yet."""

    proof_digest: str


class IncomingSenderShape(NamedShape):
    """Fields of a channel's `Sender`."""

    sure: bool


class IncomingFileShape(TypedDict):
    """Fields of a channel's `IncomingFile`."""

    reference: str
    name: str
    media_type: str
    size: int


class IncomingShape(TypedDict):
    """Fields of a channel's `Incoming`, as they are stored."""

    id: str
    conversation: str
    sender: IncomingSenderShape
    text: str
    subject: str
    reply_to: str | None
    files: list[IncomingFileShape]
    tapped: str | None
    direct: bool
    addressed: bool
    heard: bool


class LeftOutFileShape(TypedDict):
    """A file of a message that was not stored."""

    name: str
    why: str


class StoredFileShape(StoredShape):
    """A file of a message that was stored."""

    id: str
    name: str


class ClaimedIntakeShape(ConnectionShape):
    """A claimed inbound message."""

    id: str
    epoch: int
    document: IncomingShape
    account: LinkedAccount | None


class ClaimedPostShape(ConnectionShape):
    """A claimed post, to show, change or withdraw."""

    epoch: int
    version: int
    #: Whether its binding is gone.
    gone: bool
    outside: str | None
    withdrawn: bool
    parcel: ParcelShape
    #: Rows of labels, each with its reference.
    buttons: list[list[list[str]]]


class HandledShape(TypedDict):
    """Result of handling an inbound message."""

    handled: str


class ConfirmationShape(TypedDict):
    id: str
    company_id: str
    account: str
    #: Effect of the confirmation: approve, reject, revise, accept, return, command or link.
    act: str
    subject: str
    title: str
    created_at: Moment
    expires_at: Moment
    ended_at: Moment | None
    ended_why: str | None


class ConfirmedShape(ConfirmationShape):
    #: The result in words.
    done: str
