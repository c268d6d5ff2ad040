"""Acts that a post offers, as its channel takes them: as buttons, or as lines that people write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remit.channels import registry
from remit.ids import short
from remit.model.messaging.channel import Binding
from remit.services.command import Context


@dataclass(frozen=True)
class Offer:
    """An act that a post offers."""

    #: `act` and its arguments.
    act: Mapping[str, Any]
    #: The line that does it where no buttons are shown.
    words: str
    #: Label of its button; empty for an act that takes words, such as a reason, so that it is
    #: written everywhere.
    label: str = ""


#: Longest subject line of a post.
LONGEST_TITLE = 120


def place(ctx: Context, noun: str, id_: str) -> str:
    """Where something is decided, besides a chat: its page, or the command."""
    if ctx.outside_url is not None:
        return f"{ctx.outside_url}/{noun}s/{id_}"
    return f"`remit {noun} show {short(id_)}`"


def lines(binding: Binding, rows: Sequence[Sequence[Offer]], there: str) -> str:
    """Return the lines that people write below a post, because its channel shows no buttons for
    these acts; empty if it shows one for each. `there` is where they can be taken besides."""
    taps = registry.get(binding.adapter_type).taps
    written = [offer.words for row in rows for offer in row if not (taps and offer.label)]
    if not written:
        return ""
    asks = "reply with this line" if len(written) == 1 else "reply with one of these lines"
    how = f"\n\nTo send it back, {asks}:" if taps else f"\n\nTo decide, {asks}:"
    return "\n".join([how, *written, f"Or decide it there: {there}"])
