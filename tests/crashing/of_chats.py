"""Chats: receivers, what comes in, what Remit shows, and linked accounts."""

from typing import Any

from remit.channels.contract import Incoming, Sender
from remit.ids import is_id
from remit.services.chat import accounts, confirmations, handling, intake, posts, receivers
from remit.services.connections import bindings, secrets
from remit.services.identity import as_system
from tests.company import Member
from tests.crashing.call import THEN, Call
from tests.crashing.scene import Scene, changed, situation


def _bound(s: Scene, member: Member | None = None) -> str:
    """A binding for which somebody should listen."""
    agent = member or s.agent()
    secret = s.name()
    s.c.call(s.c.board, secrets.put, company=s.c.id, name=secret, source="env", place="CHAT_BOT")
    made = s.c.call(
        s.c.board,
        bindings.add,
        company=s.c.id,
        agent=agent.id,
        kind="telegram",
        config={"secretRef": secret},
    )
    return str(made["id"])


def _heard(s: Scene) -> str:
    binding = _bound(s)
    s.c.call(as_system(), receivers.claim, binding=binding, worker="w")
    return binding


def _said(text: str, **more: Any) -> dict[str, Any]:
    given = {"id": "5.1", "conversation": "5", "sender": Sender("5", "Ann"), "direct": True}
    return intake.document_of(Incoming(**{**given, "text": text, **more}))


def _came(s: Scene, text: str = "Hello?", **more: Any) -> str:
    binding = _heard(s)
    said = [_said(text, **more)]
    s.c.call(as_system(), intake.store, binding=binding, epoch=1, said=said)
    [item] = s.c.sql("SELECT id FROM channel_intake WHERE binding_id = ?", binding)[0]
    return str(item)


def _claimed(s: Scene, text: str = "Hello?", **more: Any) -> str:
    item = _came(s, text, **more)
    s.c.call(as_system(), intake.claim, intake=item, worker="w")
    return item


def _linked(s: Scene, sender: str) -> str:
    """An account of the board's, linked as people do it."""
    code = s.c.call(s.c.board, accounts.code, kind="telegram")["code"]
    item = _claimed(s, code, sender=Sender(sender, "Ann"))
    s.c.call(as_system(), handling.handle_outside, intake_id=item, epoch=1)
    [account] = s.c.sql("SELECT id FROM linked_accounts WHERE account = ?", sender)[0]
    assert is_id(account)
    return str(account)


def _shown(s: Scene) -> str:
    """An answer that waits to be shown."""
    item = _claimed(s, "/status")
    s.c.call(as_system(), handling.handle_outside, intake_id=item, epoch=1)
    [post] = s.c.sql("SELECT id FROM channel_posts ORDER BY id DESC LIMIT 1")[0]
    return str(post)


def _showing(s: Scene) -> str:
    post = _shown(s)
    s.c.call(as_system(), posts.claim, post=post, worker="w")
    return post


@situation("receivers.claim")
def _(s: Scene) -> Call:
    return changed(s.by_remit(binding=_bound(s), worker="w"), keyed=False)


@situation("receivers.renew")
def _(s: Scene) -> Call:
    return changed(s.by_remit(held=[(_heard(s), 1)], lease=60_000_000), keyed=False)


@situation("receivers.heard")
def _(s: Scene) -> Call:
    return changed(s.by_remit(binding=_heard(s), epoch=1), keyed=False)


@situation("receivers.ended")
def _(s: Scene) -> Call:
    return changed(s.by_remit(binding=_heard(s), epoch=1, problem="gone"), keyed=False)


@situation("receivers.take_over")
def _(s: Scene) -> Call:
    binding = _heard(s)
    [[until]] = s.c.sql("SELECT lease_until FROM channel_receivers WHERE binding_id = ?", binding)
    return changed(s.by_remit(binding=binding, epoch=1, until=until), keyed=False)


@situation("receivers.free")
def _(s: Scene) -> Call:
    _heard(s)
    return changed(s.by_remit(), keyed=False)


@situation("intake.store")
def _(s: Scene) -> Call:
    """What came before does not come again."""
    return changed(s.by_remit(binding=_heard(s), epoch=1, said=[_said("Hello?")]), keyed=False)


@situation("intake.claim")
def _(s: Scene) -> Call:
    return changed(s.by_remit(intake=_came(s), worker="w"), keyed=False)


@situation("intake.renew")
def _(s: Scene) -> Call:
    return changed(s.by_remit(held=[(_claimed(s), 1)], lease=60_000_000), keyed=False)


@situation("intake.failed")
def _(s: Scene) -> Call:
    return s.by_remit(intake=_claimed(s), epoch=1, why="it broke")


@situation("intake.take_over")
def _(s: Scene) -> Call:
    return s.by_remit(intake=_claimed(s), epoch=1, alone=True)


@situation("intake.put_back")
def _(s: Scene) -> Call:
    return s.by_remit(intake=_claimed(s), epoch=1)


@situation("intake.tidy")
def _(s: Scene) -> Call:
    item = _claimed(s)
    s.c.call(as_system(), handling.handle_outside, intake_id=item, epoch=1)
    s.c.sql("UPDATE channel_intake SET ended_at = 1 WHERE id = ?", item)
    return changed(s.by_remit(), keyed=False)


@situation("chat.handle_outside")
def _(s: Scene) -> Call:
    return s.by_remit(intake_id=_claimed(s), epoch=1)


@situation("chat.refused")
def _(s: Scene) -> Call:
    return s.by_remit(intake_id=_claimed(s), epoch=1, sentence="You may not.")


@situation("chat.handle")
def _(s: Scene) -> Call:
    """A command by a linked person: what it does, that it was used, and the answer."""
    name = s.name()
    account = _linked(s, name)
    item = _claimed(s, "/stop", sender=Sender(name, "Ann"))
    return changed(s.by_remit(intake_id=item, epoch=1), account=account)


@situation("posts.claim")
def _(s: Scene) -> Call:
    return changed(s.by_remit(post=_shown(s), worker="w"), keyed=False)


@situation("posts.renew")
def _(s: Scene) -> Call:
    return changed(s.by_remit(held=[(_showing(s), 1)], lease=60_000_000), keyed=False)


@situation("posts.delivered")
def _(s: Scene) -> Call:
    return s.by_remit(post=_showing(s), epoch=1, version=1, outside="5.9")


@situation("posts.failed")
def _(s: Scene) -> Call:
    return s.by_remit(post=_showing(s), epoch=1, why="nobody is there")


@situation("posts.take_over")
def _(s: Scene) -> Call:
    return s.by_remit(post=_showing(s), epoch=1, alone=True)


@situation("posts.put_back")
def _(s: Scene) -> Call:
    return s.by_remit(post=_showing(s), epoch=1)


@situation("linked_accounts.code")
def _(s: Scene) -> Call:
    return changed(s.by_board(kind="telegram"), shown_once=("code",))


@situation("linked_accounts.revoke")
def _(s: Scene) -> Call:
    return s.by_board(account=_linked(s, s.name()))


def _by_email(s: Scene, sender: str, text: str) -> str:
    """An e-mail, and whoever handles it has it; its sender's link is there if it is known."""
    secret = s.name()
    s.c.call(s.c.board, secrets.put, company=s.c.id, name=secret, source="env", place="MAILBOX")
    config = {
        "address": f"{s.name()}@agents.example",
        "username": "agents",
        "secretRef": secret,
        "imapHost": "imap.agents.example",
        "smtpHost": "smtp.agents.example",
        "authservId": "mx.agents.example",
    }
    about: Any = {"company": s.c.id, "agent": s.agent().id, "kind": "email", "config": config}
    binding = str(s.c.call(s.c.board, bindings.add, **about)["id"])
    return _mailed(s, binding, sender, text)


def _mailed(s: Scene, binding: str, sender: str, text: str) -> str:
    [[epoch]] = s.c.sql("SELECT epoch FROM channel_receivers WHERE binding_id = ?", binding)
    if not epoch:
        claimed = s.c.call(as_system(), receivers.claim, binding=binding, worker="w")
        assert claimed is not None
        epoch = claimed["epoch"]
    where = {"conversation": sender, "sender": Sender(sender, "Ann"), "id": s.name()}
    said = [_said(text, **where)]
    s.c.call(as_system(), intake.store, binding=binding, epoch=epoch, said=said)
    found = "SELECT id FROM channel_intake WHERE binding_id = ? ORDER BY id DESC LIMIT 1"
    [[item]] = s.c.sql(found, binding)
    s.c.call(as_system(), intake.claim, intake=item, worker="w")
    return str(item)


def _to_confirm(s: Scene) -> tuple[str, str, str]:
    """The link of an address that waits for the board; with its binding and the address."""
    code = s.c.call(s.c.board, accounts.code, kind="email")["code"]
    sender = f"{s.name()}@people.example"
    item = _by_email(s, sender, code)
    s.c.call(as_system(), handling.handle_outside, intake_id=item, epoch=1)
    [[row]] = s.c.sql("SELECT id FROM confirmations ORDER BY id DESC LIMIT 1")
    [[binding]] = s.c.sql("SELECT binding_id FROM confirmations WHERE id = ?", row)
    return str(row), str(binding), sender


@situation("confirmations.confirm")
def _(s: Scene) -> Call:
    """That it is confirmed, and that it is done."""
    row, _, _ = _to_confirm(s)
    return s.by_board(confirmation=row)


@situation("confirmations.dismiss")
def _(s: Scene) -> Call:
    row, _, _ = _to_confirm(s)
    return s.by_board(confirmation=row)


@situation("chat.handle (a decision by e-mail)")
def _(s: Scene) -> Call:
    """That it waits, that its person is told, and that the e-mail was handled."""
    row, binding, sender = _to_confirm(s)
    s.c.call(s.c.board, confirmations.confirm, confirmation=row)
    item = _mailed(s, binding, sender, "/stop")
    [[account]] = s.c.sql("SELECT id FROM linked_accounts WHERE account = ?", sender)
    return changed(s.by_remit(intake_id=item, epoch=1), account=account)


@situation("agents.new_session")
def _(s: Scene) -> Call:
    return s.by_board(agent=s.agent().id)


@situation("chat.handle_outside (a code)")
def _(s: Scene) -> Call:
    """The last one here: a new code takes the place of those before."""
    code = s.c.call(s.c.board, accounts.code, kind="telegram")["code"]
    s.c.sql("UPDATE link_codes SET created_at = ?, expires_at = ?", THEN, 1 << 60)
    return s.by_remit(intake_id=_claimed(s, code, sender=Sender(s.name(), "Ann")), epoch=1)
