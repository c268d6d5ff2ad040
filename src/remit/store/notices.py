"""Statements about notices: what needs a person, on its way to them outside."""

from __future__ import annotations

from sqlalchemy import and_, delete, func, insert, literal_column, null, select, update
from sqlalchemy import bindparam as bind

from remit.model.wish import Hook, Notice
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import memberships, notice_hooks, notices

_hook = columns(notice_hooks, Hook)
_notice = columns(notices, Notice)
_mine = and_(notice_hooks.c.company_id == bind("company"), notice_hooks.c.user_id == bind("user"))

INSERT_HOOK = change(insert(notice_hooks))
DELETE_HOOK = change(delete(notice_hooks).where(_mine))
HOOK = Statement(select(*_hook).where(_mine), into(Hook))
#: Those who still have a part in the company.
HOOKS = Statement(
    select(*_hook)
    .join(
        memberships,
        and_(
            memberships.c.company_id == notice_hooks.c.company_id,
            memberships.c.user_id == notice_hooks.c.user_id,
        ),
    )
    .where(notice_hooks.c.company_id == bind("company")),
    into(Hook),
)
COMPANIES_WITH_HOOKS = Statement(select(notice_hooks.c.company_id).distinct(), scalar)
COMPANIES_OF = Statement(
    select(memberships.c.company_id).where(memberships.c.user_id == bind("user")), scalar
)

#: Constants are written out so that the partial index is seen to match.
_unfinished = notices.c.status.in_([literal_column("'queued'"), literal_column("'leased'")])
_queued = notices.c.status == literal_column("'queued'")
_leased = notices.c.status == literal_column("'leased'")
_one = notices.c.id == bind("notice")
_held = and_(_one, _leased, notices.c.epoch == bind("epoch"))

INSERT_NOTICE = change(insert(notices))
NOTICE = Statement(select(*_notice).where(_one), into(Notice))
#: Whether somebody was told of something in a way, or is being told.
KNOWN = Statement(
    select(notices.c.id).where(
        notices.c.user_id == bind("user"),
        notices.c.way == bind("way"),
        notices.c.kind == bind("kind"),
        notices.c.subject_id == bind("subject"),
    ),
    scalar,
)
READY = Statement(
    select(*_notice)
    .where(_unfinished, _queued, notices.c.next_at <= bind("now"))
    .order_by(notices.c.next_at, notices.c.id)
    .limit(bind("limit")),
    into(Notice),
)
NEXT_DUE = Statement(
    select(func.min(notices.c.next_at)).where(
        _unfinished, _queued, notices.c.next_at > bind("now")
    ),
    scalar,
)
LEASED = Statement(select(*_notice).where(_unfinished, _leased), into(Notice))
CLAIM = change(
    update(notices)
    .where(_one, _queued, notices.c.next_at <= bind("now"))
    .values(
        status="leased",
        worker=bind("new_worker"),
        epoch=notices.c.epoch + 1,
        attempt=notices.c.attempt + 1,
        lease_until=bind("until"),
    )
)
RETRY = change(
    update(notices)
    .where(_held)
    .values(
        status="queued",
        worker=null(),
        lease_until=null(),
        next_at=bind("new_next"),
        ended_why=bind("why"),
    )
)
_end = {
    "status": bind("new_status"),
    "lease_until": null(),
    "ended_at": bind("now"),
    "ended_why": bind("why"),
}
END_HELD = change(update(notices).where(_held).values(_end))
END = change(update(notices).where(_one, _unfinished).values(_end))
#: What a person was told of last, or should have been, newest first.
LATEST = Statement(
    select(*_notice)
    .where(notices.c.user_id == bind("user"))
    .order_by(notices.c.id.desc())
    .limit(bind("limit")),
    into(Notice),
)
