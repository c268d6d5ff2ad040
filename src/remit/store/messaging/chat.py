"""Statements about linked accounts, receivers, what came in from chats and what is shown there."""

from __future__ import annotations

from sqlalchemy import and_, delete, exists, func, literal_column, null, or_, select, update
from sqlalchemy import bindparam as bind

from remit.model.messaging.chat import (
    ButtonReference,
    Intake,
    LinkCode,
    LinkedAccount,
    Post,
    Receiver,
)
from remit.store.engine.statement import Rows, Statement, change, new, scalar
from remit.store.queues import LONGEST_PAUSE, LeasedQueue, StatusQueue
from remit.store.tables import (
    agent_bindings,
    button_references,
    channel_deliveries,
    channel_intake,
    channel_posts,
    channel_receivers,
    deliveries,
    link_codes,
    linked_accounts,
    messages,
    tokens,
)

# Linked accounts

_ACCOUNTS = Rows(LinkedAccount)
_unrevoked = linked_accounts.c.revoked_at.is_(None)
#: It ends with what its user was signed in with; that of somebody else, who invited them, may be
#: revoked.
_linked = and_(
    _unrevoked,
    or_(
        linked_accounts.c.made_with.is_(None),
        exists().where(
            tokens.c.id == linked_accounts.c.made_with,
            or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > bind("now")),
            or_(tokens.c.revoked_at.is_(None), tokens.c.user_id != linked_accounts.c.user_id),
        ),
    ),
)

#: The user of an account outside.
ACCOUNT_OF = _ACCOUNTS.one(_linked, kind="kind", realm="realm", account="account")
#: One linked account that is good.
ACCOUNT = _ACCOUNTS.one(_linked, id="id")
#: The linked accounts of a user.
ACCOUNTS_OF_USER = _ACCOUNTS.find(_linked, user_id="user")
#: The end of one.
REVOKE_ACCOUNT = _ACCOUNTS.revoke(linked_accounts.c.id == bind("id_"))
#: The end of the one that an account outside has, also if it was not good any more.
REVOKE_ACCOUNT_OF = _ACCOUNTS.revoke(
    linked_accounts.c.kind == bind("of_kind"),
    linked_accounts.c.realm == bind("of_realm"),
    linked_accounts.c.account == bind("of_account"),
)
#: It was used.
USE_ACCOUNT = _ACCOUNTS.update(
    linked_accounts.c.id == bind("id_"), used_at=bind("now"), label=bind("new_label")
)
_CODES = Rows(LinkCode, "digest")
#: The purpose of a code.
CODE = _CODES.one(digest="digest")
#: It links one account.
USE_CODE = _CODES.update(
    link_codes.c.digest == bind("code"), link_codes.c.used_at.is_(None), used_at=bind("now")
)
#: A new code takes the place of those before.
FORGET_CODES = change(
    delete(link_codes).where(
        or_(
            and_(link_codes.c.user_id == bind("user"), link_codes.c.kind == bind("kind")),
            link_codes.c.expires_at < bind("now"),
        )
    )
)

# Receivers

#: Nobody listens, and somebody should; also if that is further away than any pause lasts, because
#: the clock was set back. Whether who listens is still there is not the clock's to say.
_unheard = and_(
    channel_receivers.c.lease_until.is_(None),
    or_(
        channel_receivers.c.next_at <= bind("now"),
        channel_receivers.c.next_at - literal_column(str(LONGEST_PAUSE)) > bind("now"),
    ),
)
RECEIVERS = LeasedQueue(
    Receiver,
    "binding",
    key="binding_id",
    waiting=_unheard,
    held=channel_receivers.c.lease_until.is_not(None),
)
_bound = (
    select(agent_bindings.c.id)
    .where(
        agent_bindings.c.id == channel_receivers.c.binding_id, agent_bindings.c.removed_at.is_(None)
    )
    .exists()
)
#: For whom nobody listens, and somebody should.
UNHEARD = RECEIVERS.find(_bound, _unheard, limit=bind("limit"))
#: When the next of them is due.
NEXT_RECEIVER = RECEIVERS.next_free(_bound)
#: The holder ends; why, and when to begin anew.
RELEASE_RECEIVER = RECEIVERS.update(
    RECEIVERS.by_holder,
    lease_until=null(),
    worker=null(),
    next_at=bind("due"),
    **new("failures", "problem"),
)
#: The outside answered.
HEARD = RECEIVERS.update(
    RECEIVERS.by_holder, heard_at=bind("now"), problem=null(), failures=literal_column("0")
)
#: Nobody listens any more; what is said from then on counts for nothing.
RESTART_RECEIVER = RECEIVERS.change(
    epoch=channel_receivers.c.epoch + 1,
    lease_until=null(),
    worker=null(),
    next_at=bind("now"),
    problem=null(),
)
#: Nobody listens, because there is no process that could.
FREE_RECEIVERS = RECEIVERS.update(
    channel_receivers.c.lease_until.is_not(None),
    epoch=channel_receivers.c.epoch + 1,
    lease_until=null(),
    worker=null(),
    next_at=bind("now"),
)
#: The receivers of a company's bindings.
RECEIVERS_OF = RECEIVERS.find(_bound, company_id="company")

# Intake: messages that came in

INTAKE = StatusQueue(Intake, "intake", made=channel_intake.c.created_at)
#: Whether it came before.
CAME = INTAKE.any(binding_id="binding", outside_id="outside_id")
#: How much of one lane has not been dealt with.
COUNT_LANE = INTAKE.count(INTAKE.unfinished, binding_id="binding", lane="lane")
_first = (
    select(func.min(channel_intake.c.id))
    .where(INTAKE.unfinished)
    .group_by(channel_intake.c.binding_id, channel_intake.c.lane)
)
#: Messages that can be dealt with now: of each lane the first, known people before others.
READY_INTAKE = INTAKE.find(
    INTAKE.queued,
    INTAKE.is_due,
    channel_intake.c.id.in_(_first),
    order=[func.substr(channel_intake.c.lane, 1, 1), channel_intake.c.next_at, channel_intake.c.id],
    limit=bind("limit"),
)
#: It is dealt with; what it said is kept elsewhere.
EMPTY_INTAKE = INTAKE.change(document=literal_column("'{}'"))
#: Deletes messages that were dealt with long ago; they do not come again.
FORGET_INTAKE = change(
    delete(channel_intake).where(
        channel_intake.c.ended_at.is_not(None), channel_intake.c.ended_at < bind("before")
    )
)
#: How much from one place an agent has not read, of people who are not known here.
UNREAD_FROM = Statement(
    select(func.count())
    .select_from(deliveries.join(messages, messages.c.id == deliveries.c.message_id))
    .where(
        deliveries.c.agent_id == bind("agent"),
        deliveries.c.status.in_([literal_column("'queued'"), literal_column("'leased'")]),
        messages.c.channel == bind("channel"),
        messages.c.sender_kind == literal_column("'system'"),
    ),
    scalar,
)
#: The places that live runs work for, each with the agent.
WORKED_FOR = Statement(
    select(deliveries.c.agent_id, messages.c.channel)
    .join(messages, messages.c.id == deliveries.c.message_id)
    .where(
        deliveries.c.status == literal_column("'leased'"),
        deliveries.c.agent_id.is_not(None),
        messages.c.channel.is_not(None),
    )
    .distinct()
    .limit(bind("limit")),
    lambda agent, channel: (agent, channel),
)

# Posts: what Remit shows

POSTS = StatusQueue(Post, "post", made=channel_posts.c.created_at)
#: Posts that can be shown now: in each conversation in order.
READY_POSTS = POSTS.find(
    POSTS.queued,
    POSTS.is_due,
    POSTS.in_turn("binding_id", "conversation"),
    order=[channel_posts.c.next_at, channel_posts.c.id],
    limit=bind("limit"),
)
#: Something else is to be shown in its place; whoever shows it now finds out at the end.
REVISE_POST = POSTS.change(
    document=bind("new_document"),
    withdrawn=bind("new_withdrawn"),
    version=channel_posts.c.version + 1,
)
#: Queues a shown post again, due at once.
REOPEN_POST = POSTS.change(
    ~POSTS.unfinished,
    status="queued",
    attempt=0,
    next_at=channel_posts.c.created_at,
    ended_at=null(),
    ended_why=null(),
)
#: The outside has it, under this id.
SHOWN = POSTS.update(POSTS.by_holder, outside_id=bind("outside"))
#: The posts about something.
POSTS_ABOUT = POSTS.find(company_id="company", subject="subject")
#: How much waits to be shown in a conversation.
SHOWING_HERE = POSTS.count(POSTS.unfinished, binding_id="binding", conversation="conversation")
#: The post with an id of the chat system.
POST_BY_OUTSIDE = POSTS.one(binding_id="binding", outside_id="outside")
#: Posts that a removed binding had not shown.
UNSHOWN = POSTS.find(POSTS.unfinished, binding_id="binding")
_BUTTONS = Rows(ButtonReference, "digest")
#: The act of a reference.
REFERENCE = _BUTTONS.one(digest="digest")
#: It stands for nothing any more; for one of several who come at once.
USE_REFERENCE = change(
    update(button_references)
    .where(button_references.c.digest == bind("reference"), button_references.c.used_at.is_(None))
    .values(used_at=bind("now"), used_by=bind("by"))
)
#: None of the buttons of a post stands for anything any more.
USE_REFERENCES_OF = change(
    update(button_references)
    .where(button_references.c.post_id == bind("post"), button_references.c.used_at.is_(None))
    .values(used_at=bind("now"), used_by=bind("by"))
)
#: Posts with live buttons that somebody sees.
DECIDABLE = Statement(
    select(channel_posts.c.subject)
    .join(button_references, button_references.c.post_id == channel_posts.c.id)
    .where(
        channel_posts.c.company_id == bind("company"),
        channel_posts.c.subject != literal_column("''"),
        button_references.c.used_at.is_(None),
        button_references.c.expires_at > bind("now"),
    )
    .distinct()
    .limit(bind("limit")),
    scalar,
)
#: References that nobody can use.
FORGET_REFERENCES = change(
    delete(button_references).where(button_references.c.expires_at < bind("now"))
)
_its_bindings = select(agent_bindings.c.id).where(agent_bindings.c.agent_id == bind("agent"))
_its_posts = select(channel_posts.c.id).where(channel_posts.c.binding_id.in_(_its_bindings))
#: When an agent is purged: what came in, what was shown, and the buttons of it. Accounts that were
#: linked through it stay linked.
FORGET_CHATS = (
    _ACCOUNTS.update(linked_accounts.c.binding_id.in_(_its_bindings), binding_id=null()),
    change(delete(button_references).where(button_references.c.post_id.in_(_its_posts))),
    change(delete(channel_posts).where(channel_posts.c.binding_id.in_(_its_bindings))),
    change(delete(channel_intake).where(channel_intake.c.binding_id.in_(_its_bindings))),
    change(delete(channel_receivers).where(channel_receivers.c.binding_id.in_(_its_bindings))),
)
#: An agent's message, by its id in the chat system.
MESSAGE_BY_OUTSIDE = Statement(
    select(channel_deliveries.c.message_id).where(
        channel_deliveries.c.agent_id == bind("agent"),
        channel_deliveries.c.outside_id == bind("outside"),
        channel_deliveries.c.address == bind("address"),
    ),
    scalar,
)
