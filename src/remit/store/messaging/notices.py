"""Statements about notices: messages to people outside about things that need them."""

from sqlalchemy import ColumnElement, Table, and_, delete, null, select, union
from sqlalchemy import bindparam as bind

from remit.model.messaging.notice import Hook, Notice, StoredRules
from remit.store.engine.statement import Rows, Statement, change, scalar
from remit.store.organisation.halts import accepted
from remit.store.queues import StatusQueue
from remit.store.tables import linked_accounts, memberships, notice_hooks, notice_rules, notices


def _still_there(table: Table) -> tuple[Table, ColumnElement[bool]]:
    """A join that leaves out rows whose user is no member of the company any more."""
    of = memberships.c
    return memberships, and_(of.company_id == table.c.company_id, of.user_id == table.c.user_id)


_HOOKS = Rows(Hook, "user_id")
_mine = and_(notice_hooks.c.company_id == bind("company"), notice_hooks.c.user_id == bind("user"))

#: Deletes the webhook of a person in a company.
DELETE_HOOK = change(delete(notice_hooks).where(_mine))
#: The webhook of a person in a company.
HOOK = _HOOKS.one(_mine)
#: Webhooks of the company's present members.
HOOKS = _HOOKS.find(join=_still_there(notice_hooks), company_id="company")
#: Companies in which any person has a webhook, rules or a linked account.
COMPANIES_TO_LOOK_AT = Statement(
    union(
        select(notice_hooks.c.company_id),
        select(notice_rules.c.company_id),
        select(linked_accounts.c.company_id).where(linked_accounts.c.revoked_at.is_(None)),
    ),
    scalar,
)
#: Companies of which a person is a member.
COMPANIES_OF = Statement(
    select(memberships.c.company_id).where(memberships.c.user_id == bind("user")), scalar
)

#: Users that are linked through a binding of the company and are still its members.
LINKED_USERS = Statement(
    select(linked_accounts.c.user_id)
    .join(*_still_there(linked_accounts))
    .where(linked_accounts.c.company_id == bind("company"), linked_accounts.c.revoked_at.is_(None))
    .distinct(),
    scalar,
)
_RULES = Rows(StoredRules, "user_id")
_rules_of = and_(
    notice_rules.c.company_id == bind("company"), notice_rules.c.user_id == bind("user")
)
#: A person's rules in a company.
RULES = _RULES.one(_rules_of)
#: Rules of the company's present members.
ALL_RULES = _RULES.find(join=_still_there(notice_rules), company_id="company")
#: Deletes a person's rules in a company.
DELETE_RULES = _RULES.delete(_rules_of)
#: Records the time of a person's last digest.
DIGESTED = _RULES.update(_rules_of, digested_at=bind("at"))

QUEUE = StatusQueue(Notice, "notice", created=notices.c.created_at)
#: Whether a notice of a subject exists for a person by one way, sent or not.
KNOWN = Statement(
    select(notices.c.id).where(
        notices.c.user_id == bind("user"),
        notices.c.way == bind("way"),
        notices.c.kind == bind("kind"),
        notices.c.subject_id == bind("subject"),
    ),
    scalar,
)
#: Queues a notice again whose subject was asked for anew since.
RENEW = QUEUE.update(
    ~QUEUE.unfinished,
    notices.c.user_id == bind("user"),
    notices.c.way == bind("by_way"),
    notices.c.kind == bind("of_kind"),
    notices.c.subject_id == bind("subject"),
    notices.c.created_at < bind("since"),
    status="queued",
    attempt=0,
    created_at=bind("now"),
    next_at=bind("due"),
    ended_at=null(),
    ended_why=null(),
    digest_id=null(),
    post_id=null(),
    told=null(),
    settled=0,
)
#: Notices that can go out now.
READY = QUEUE.find(
    accepted(notices),
    QUEUE.unfinished,
    QUEUE.queued,
    QUEUE.is_due,
    order=[notices.c.next_at, notices.c.id],
    limit=bind("limit"),
)
#: The last notices to a person, sent or not, newest first.
LATEST = QUEUE.find(user_id="user", order=[notices.c.id.desc()], limit=bind("limit"))
#: Makes a person's untried notices due now, because the person's rules changed.
RETIME = QUEUE.update(
    QUEUE.unfinished,
    QUEUE.queued,
    notices.c.company_id == bind("company"),
    notices.c.user_id == bind("user"),
    notices.c.attempt == 0,
    next_at=bind("now"),
)
#: Postpones a queued notice.
POSTPONE = QUEUE.change(QUEUE.queued, next_at=bind("due"))
#: The notices in a digest.
IN_DIGEST = QUEUE.find(digest_id="digest")
#: Records the post that shows a notice in a chat, and its text.
SHOWN = QUEUE.change(post_id=bind("shown"), told=bind("what"))
#: Stores how many of a notice's subjects its post marks as settled.
SETTLE = QUEUE.change(settled=bind("number"))
#: A person's notices in a company that were posted in chats, newest first.
CHANGEABLE = QUEUE.find(
    notices.c.post_id.is_not(None),
    company_id="company",
    user_id="user",
    limit=bind("limit"),
    order=[notices.c.id.desc()],
)
