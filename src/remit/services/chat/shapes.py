"""Shapes of linked accounts, receivers, and items of the chat queues."""

from __future__ import annotations

from typing import TypedDict

from remit.model.messaging.chat import LinkedAccount
from remit.services.connections.shapes import ConnectionShape
from remit.services.shape_basics import Moment


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
    """A binding to listen for."""

    epoch: int


class ClaimedIntakeShape(ConnectionShape):
    """A message that came, to deal with."""

    epoch: int
    #: Fields of a channel's `Incoming`.
    document: dict[str, object]
    account: LinkedAccount | None


class ClaimedPostShape(ConnectionShape):
    """A post to show, change or withdraw."""

    epoch: int
    version: int
    #: Whether its binding is.
    gone: bool
    outside: str | None
    withdrawn: bool
    #: Fields of a channel's `Parcel`.
    parcel: dict[str, object]
    #: Rows of labels, each with its reference.
    buttons: list[list[list[str]]]


class HandledShape(TypedDict):
    """Result of an inbound message."""

    handled: str
