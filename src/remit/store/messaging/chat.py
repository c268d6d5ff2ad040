"""Statements about linked accounts, receivers, the intake from chats and the posts in them."""

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
from remit.store.organisation.halts import accepted
from remit.store.queues import LONGEST_PAUSE, LeasedQueue, StatusQueue
from remit.store.tables import (
    agent_bindings,
    button_references,
    channel_deliveries,
    channel_intake,
    channel_posts,
    channel_receivers,
    confirmations,
    deliveries,
    link_codes,
    linked_accounts,
    messages,
    tokens,
)

# Linked accounts

_ACCOUNTS = Rows(LinkedAccount)
_unrevoked = linked_accounts.c.revoked_at.is_(None)
#: A link ends with the token that its user was signed in with; the revocation of another user's
#: token, which invited them, does not end it.
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

#: The valid link of an account of a chat system.
ACCOUNT_OF = _ACCOUNTS.one(_linked, kind="kind", realm="realm", account="account")
#: One valid linked account.
ACCOUNT = _ACCOUNTS.one(_linked, id="id")
#: The valid linked accounts of a user.
ACCOUNTS_OF_USER = _ACCOUNTS.find(_linked, user_id="user")
#: Revokes a linked account.
REVOKE_ACCOUNT = _ACCOUNTS.revoke(linked_accounts.c.id == bind("id_"))
#: Revokes the link of an account of a chat system, also an expired one.
REVOKE_ACCOUNT_OF = _ACCOUNTS.revoke(
    linked_accounts.c.kind == bind("of_kind"),
    linked_accounts.c.realm == bind("of_realm"),
    linked_accounts.c.account == bind("of_account"),
)
#: Revokes the accounts that a user linked through the bindings of a company.
REVOKE_ACCOUNTS_IN = _ACCOUNTS.revoke(
    linked_accounts.c.company_id == bind("company"), linked_accounts.c.user_id == bind("user")
)
#: Records the use of a linked account, and its present label.
USE_ACCOUNT = _ACCOUNTS.update(
    linked_accounts.c.id == bind("id_"), used_at=bind("now"), label=bind("new_label")
)
_CODES = Rows(LinkCode, "digest")
#: A link code by its digest.
CODE = _CODES.one(digest="digest")
#: Uses up a link code, which links one account.
USE_CODE = _CODES.update(
    link_codes.c.digest == bind("code"), link_codes.c.used_at.is_(None), used_at=bind("now")
)
#: Deletes expired codes, and the codes of a user that a new one replaces.
FORGET_CODES = change(
    delete(link_codes).where(
        or_(
            and_(link_codes.c.user_id == bind("user"), link_codes.c.kind == bind("kind")),
            link_codes.c.expires_at < bind("now"),
        )
    )
)

# Receivers

#: No worker listens, and the time to start has come; also if it is farther away than the longest
#: pause, because the clock was set back. An expired lease is not taken over by the clock alone.
_unheard = and_(
    channel_receivers.c.lease_until.is_(None),
    accepted(channel_receivers),
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
#: Receivers of bindings that no worker listens for and that are due.
UNHEARD = RECEIVERS.find(_bound, _unheard, limit=bind("limit"))
#: The time at which the next receiver is due.
NEXT_RECEIVER = RECEIVERS.next_free(_bound, accepted(channel_receivers))
#: Ends the lease of a receiver: stores its failure, and the time of the next start.
RELEASE_RECEIVER = RECEIVERS.update(
    RECEIVERS.by_holder,
    lease_until=null(),
    worker=null(),
    next_at=bind("due"),
    **new("failures", "problem"),
)
#: Stores the digest of the secret by which the chat system proves its posts from now on.
PROVE_BY = RECEIVERS.update(RECEIVERS.by_holder, **new("proof_digest"))
#: Records that the chat system answered a receiver, and clears its failures.
HEARD = RECEIVERS.update(
    RECEIVERS.by_holder, heard_at=bind("now"), problem=null(), failures=literal_column("0")
)
#: Drops the lease of a receiver and makes it due; changes of the former holder are ignored, and
#: so is its secret.
RESTART_RECEIVER = RECEIVERS.change(
    proof_digest=null(),
    epoch=channel_receivers.c.epoch + 1,
    lease_until=null(),
    worker=null(),
    next_at=bind("now"),
    problem=null(),
)
#: Frees all leased receivers, at a start when no other process can hold one.
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

INTAKE = StatusQueue(Intake, "intake", created=channel_intake.c.created_at)
#: Whether an incoming message was taken in before.
CAME = INTAKE.any(binding_id="binding", outside_id="outside_id")
#: How many messages of one lane are unprocessed.
COUNT_LANE = INTAKE.count(INTAKE.unfinished, binding_id="binding", lane="lane")
_first = (
    select(func.min(channel_intake.c.id))
    .where(INTAKE.unfinished)
    .group_by(channel_intake.c.binding_id, channel_intake.c.lane)
)
#: Messages that can be processed now: the first of each lane, those of known people first.
READY_INTAKE = INTAKE.find(
    accepted(channel_intake),
    INTAKE.queued,
    INTAKE.is_due,
    channel_intake.c.id.in_(_first),
    order=[func.substr(channel_intake.c.lane, 1, 1), channel_intake.c.next_at, channel_intake.c.id],
    limit=bind("limit"),
)
#: Empties a processed message, whose contents are stored elsewhere.
EMPTY_INTAKE = INTAKE.change(document=literal_column("'{}'"))
#: Deletes messages that were processed before a time, after which no duplicate arrives.
FORGET_INTAKE = change(
    delete(channel_intake).where(
        channel_intake.c.ended_at.is_not(None), channel_intake.c.ended_at < bind("before")
    )
)
#: How many messages of unknown people in one channel an agent has not read.
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
#: The agents and channels whose messages running runs have taken up.
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

# Posts: messages that Remit shows in chats

POSTS = StatusQueue(Post, "post", created=channel_posts.c.created_at)
#: Posts that can be sent now; those of one conversation in order.
READY_POSTS = POSTS.find(
    accepted(channel_posts),
    POSTS.queued,
    POSTS.is_due,
    POSTS.in_turn("binding_id", "conversation"),
    order=[channel_posts.c.next_at, channel_posts.c.id],
    limit=bind("limit"),
)
#: Stores the next version of a post; a worker that is sending the old one notices at the end.
REVISE_POST = POSTS.change(
    document=bind("new_document"),
    withdrawn=bind("new_withdrawn"),
    version=channel_posts.c.version + 1,
)
#: Queues a post again that was sent, dead or cancelled; due at once.
REOPEN_POST = POSTS.change(
    ~POSTS.unfinished,
    status="queued",
    attempt=0,
    next_at=channel_posts.c.created_at,
    ended_at=null(),
    ended_why=null(),
)
#: The earlier parts of a post.
EARLIER_PARTS = POSTS.find(company_id="company", last_id="last")
#: Records the id that the chat system gave to a post.
SHOWN = POSTS.update(POSTS.by_holder, outside_id=bind("outside"))
#: The posts about a subject: of several parts, the last one.
POSTS_ABOUT = POSTS.find(channel_posts.c.last_id.is_(None), company_id="company", subject="subject")
#: How many posts to a conversation are not sent yet.
SHOWING_HERE = POSTS.count(POSTS.unfinished, binding_id="binding", conversation="conversation")
#: The post with an id of the chat system.
POST_BY_OUTSIDE = POSTS.one(binding_id="binding", outside_id="outside")
#: Posts that a removed binding had not shown.
UNSHOWN = POSTS.find(POSTS.unfinished, binding_id="binding")
_BUTTONS = Rows(ButtonReference, "digest")
#: A button reference by its digest.
REFERENCE = _BUTTONS.one(digest="digest")
#: The buttons of a conversation that were not used.
BUTTONS_HERE = _BUTTONS.find(
    button_references.c.used_at.is_(None),
    button_references.c.expires_at > bind("now"),
    channel_posts.c.binding_id == bind("binding"),
    channel_posts.c.conversation == bind("conversation"),
    join=(channel_posts, channel_posts.c.id == button_references.c.post_id),
)
#: Uses up a button reference; of concurrent uses, one succeeds.
USE_REFERENCE = change(
    update(button_references)
    .where(button_references.c.digest == bind("reference"), button_references.c.used_at.is_(None))
    .values(used_at=bind("now"), used_by=bind("by"))
)
#: Uses up all button references of a post.
USE_REFERENCES_OF = change(
    update(button_references)
    .where(button_references.c.post_id == bind("post"), button_references.c.used_at.is_(None))
    .values(used_at=bind("now"), used_by=bind("by"))
)
#: The subjects of posts that have live buttons.
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
#: Deletes expired button references.
FORGET_REFERENCES = change(
    delete(button_references).where(button_references.c.expires_at < bind("now"))
)
_its_bindings = select(agent_bindings.c.id).where(agent_bindings.c.agent_id == bind("agent"))
_its_posts = select(channel_posts.c.id).where(channel_posts.c.binding_id.in_(_its_bindings))
#: Deletes the intake, posts, buttons and receivers of a purged agent's bindings. Accounts that were
#: linked through them stay linked.
FORGET_CHATS = (
    change(delete(confirmations).where(confirmations.c.binding_id.in_(_its_bindings))),
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
