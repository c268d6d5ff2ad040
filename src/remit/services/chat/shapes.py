"""Shapes of linked accounts and receivers."""

from __future__ import annotations

from typing import TypedDict

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
