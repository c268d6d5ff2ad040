"""Inbound chat queue: messages are stored before the channel gets its acknowledgement, then handled
in order of their lanes: one for each room, and one for each linked person in it.

Storing is cheap and handling is not, so a room in which thousands speak fills its own lane and no
other; a linked person does not wait in it either.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from remit.channels import registry
from remit.channels.contract import Incoming, IncomingFile
from remit.clock import DAY, MINUTE, SECOND
from remit.errors import BadInput
from remit.model.messaging.channel import LARGEST_TEXT, LONGEST_OUTSIDE_ID, Binding, is_conversation
from remit.model.messaging.chat import LONGEST_LABEL, Intake, LinkedAccount
from remit.model.messaging.mail import LONGEST_SUBJECT, DeliveryStatus
from remit.model.organisation.decision import BY_REMIT
from remit.model.work.attachment import LONGEST_FILE_NAME, MOST_INCOMING
from remit.services import shapes
from remit.services.chat import accounts, receivers
from remit.services.command import FOR_REMIT, Context, logged
from remit.services.new_rows import new_in_line
from remit.services.queues import DELIVERY_LEASE, Deliveries
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import chat as statements
from remit.store.messaging import confirmations as confirmation_statements
from remit.store.organisation import people

log = logging.getLogger(__name__)

#: Messages beyond this number in one lane are dropped.
MOST_IN_LANE = 10_000
#: Pauses before a message is retried whose handling failed.
BACKOFF = (5 * SECOND, MINUTE)
#: How long a handled message is remembered, against duplicates: a channel may resend that late,
#: e-mail for up to thirty days.
KEEP = 40 * DAY
MOST_STORED = 200
_QUEUE = Deliveries(
    statements.INTAKE,
    delivered="chat.handled",
    failed="chat.unhandled",
    about=lambda intake: {"binding": intake.binding_id, "attempt": intake.attempt},
)


def document_of(incoming: Incoming) -> dict[str, object]:
    """Return the stored form of a message: cleaned, and cut to its limits."""
    if not is_conversation(incoming.conversation):
        raise BadInput("The conversation has no usable name.", "Name it without blanks.")
    if not 0 < len(incoming.id) <= LONGEST_OUTSIDE_ID or not incoming.id.isprintable():
        raise BadInput("The message has no usable id.", "Give each its own.")
    kept = asdict(incoming)
    kept["text"] = _cut(incoming.text, LARGEST_TEXT)
    kept["subject"] = _line(incoming.subject, LONGEST_SUBJECT)
    kept["sender"]["name"] = _line(incoming.sender.name, LONGEST_LABEL) or incoming.sender.id
    # One more than the limit, so that the mail can say that it was left out.
    kept["files"] = [_file(file) for file in incoming.files[: MOST_INCOMING + 1]]
    return kept


def _file(file: IncomingFile) -> dict[str, object]:
    """Clean the name and type of a file: its sender chose them, and an agent reads them."""
    name = _line(file.name, LONGEST_FILE_NAME) or "file"
    return {**asdict(file), "name": name, "media_type": _line(file.media_type, LONGEST_FILE_NAME)}


def kept(incoming: Incoming) -> dict[str, object] | None:
    """Return the stored form of a message that is for the agent; None if it is not, or is
    invalid."""
    try:
        return document_of(incoming) if incoming.addressed else None
    except BadInput as error:
        log.warning("something that came is left out: %s", error.sentence)
        return None


@logged("intake.store", FOR_REMIT)
def store(
    ctx: Context, *, binding: str, epoch: int | None, said: Sequence[Mapping[str, Any]]
) -> int:
    """Store inbound messages, deduplicated; returns how many are new. `epoch` is that of the
    listening process, or None for a webhook of the binding, which has no lease."""
    receiver = ctx.tx.one(statements.RECEIVERS.row, binding=binding)
    if receiver is None or (epoch is not None and receiver.epoch != epoch):
        raise receivers.lost()
    ctx.enter(receiver.company_id)
    ctx.lock_company()
    bound = ctx.tx.one(channel_statements.BINDING, binding=binding)
    if bound is None:  # it was removed while this waited for the lock
        raise receivers.lost()
    epoch = receiver.epoch if epoch is None else epoch
    stored = dropped = 0
    counts: dict[str, int] = {}
    known: dict[str, bool] = {}
    for document in said:
        if ctx.tx.one(statements.CAME, binding=binding, outside_id=document["id"]) is not None:
            continue
        who = f"{document['sender']['id']} {document['sender']['sure']}"
        if who not in known:
            known[who] = account_of(ctx, bound, document) is not None
        if not (known[who] or document["heard"] or accounts.code_in(document["text"])):
            continue  # such as mail of strangers, who are many and get no answer either
        lane = _lane(document, known[who])
        if lane not in counts:
            counts[lane] = ctx.tx.one(statements.COUNT_LANE, binding=binding, lane=lane) or 0
        counts[lane] += 1
        if counts[lane] > MOST_IN_LANE:
            dropped += 1
            continue
        new = Intake(
            **new_in_line(ctx),
            binding_id=receiver.binding_id,
            outside_id=document["id"],
            lane=lane,
            document=json.dumps(document),
        )
        ctx.tx.add(new)
        stored += 1
    if dropped:
        ctx.record("chat.flood", f"binding:{binding}", {"dropped": dropped}, BY_REMIT)
    ctx.tx.run(statements.HEARD, binding=binding, epoch=epoch)
    return stored


def _lane(document: Mapping[str, Any], known: bool) -> str:
    """Lane of a message: sender and place; all unknown senders in a place share one. The first
    letter sorts lanes of linked people before others."""
    sender = f" {document['sender']['id']}" if known else ""
    digest = hashlib.sha256(f"{document['conversation']}{sender}".encode()).hexdigest()
    return ("k" if known else "u") + digest[:32]


# ── for the process that handles them ───────────────────────────────────────────────────────────


ready = _QUEUE.readies("intake", statements.READY_INTAKE, "binding_id")
next_due, expired, under_way = _QUEUE.looks("intake")
held, renew = _QUEUE.holds("intake"), _QUEUE.renews("intake")


def _brief(ctx: Context, intake: Intake) -> shapes.ClaimedIntakeShape:
    binding, document = receivers.source_of(ctx, intake)
    return {
        "id": intake.id,
        "epoch": intake.epoch,
        "document": cast(shapes.IncomingShape, document),
        "account": account_of(ctx, binding, document),
        **receivers.about(binding),
    }


claim = _QUEUE.claims("intake", DELIVERY_LEASE, _brief)


def account_of(ctx: Context, binding: Binding, document: Mapping[str, Any]) -> LinkedAccount | None:
    """Return the linked account of the sender, if its user has a part in this company."""
    kind, sender = binding.adapter_type, document["sender"]
    if not registry.get(kind).vouches or not sender["sure"]:
        return None
    realm = accounts.realm_of(binding)
    account = ctx.tx.one(statements.ACCOUNT_OF, kind=kind, realm=realm, account=sender["id"])
    if account is None:
        return None
    part = ctx.tx.one(people.MEMBERSHIP, company=binding.company_id, user=account.user_id)
    return account if part is not None else None


failed = _QUEUE.fails("intake")
take_over = _QUEUE.takes_over("intake")
put_back = _QUEUE.puts_back("intake", "chat.put_back")


def end(ctx: Context, intake: str, epoch: int, why: str) -> None:
    """Mark a message as handled, in the transaction that handles it; raises if the lease is
    lost."""
    ended = {"new_status": DeliveryStatus.DONE.value, "now": ctx.now, "why": why}
    _QUEUE.fenced(ctx, statements.INTAKE.end, (intake, epoch), **ended)
    ctx.tx.run(statements.EMPTY_INTAKE, intake=intake)


@logged("intake.tidy", FOR_REMIT)
def tidy(ctx: Context) -> None:
    """Delete messages that were handled long ago, expired buttons, and old confirmations."""
    ctx.tx.run(statements.FORGET_INTAKE, before=ctx.now - KEEP)
    ctx.tx.run(statements.FORGET_REFERENCES)
    ctx.tx.run(confirmation_statements.FORGET, before=ctx.now - KEEP)


def _cut(text: str, most: int) -> str:
    """Cut a text to so many bytes, and drop NULs, which no database stores as text."""
    raw = text.replace("\0", "").encode(errors="replace")
    return raw[:most].decode(errors="ignore")


def _line(text: str, most: int) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(plain.split())[:most]
