"""Acceptance: a person looks at what a company from outside would do here, and lets it begin.

An imported company is halted in the transaction that makes it, and nothing ends that halt but
`accept`. The caller says the digest of the preview, so nothing else than that is accepted.
"""

import hmac
import json
from typing import Annotated, Any

from remit.authority import Action
from remit.errors import Conflict, stale
from remit.ids import CompanyId, HaltId, UserId
from remit.model.organisation.halt import Halt
from remit.model.text import digest_of
from remit.services import lookup
from remit.services.acceptance import reach, shapes
from remit.services.command import Context, command, query
from remit.services.fields import CompanyRef, Help, Text
from remit.services.surfaces import AsRoute
from remit.store.organisation import halts as statements
from remit.store.organisation import people

NOTE = "It was imported and waits to be accepted."
LONGEST_DIGEST = 64


def hold(ctx: Context, company: CompanyId, importer: UserId, left_out: list[str]) -> None:
    """Halt a company that comes from outside, in the transaction that makes it."""
    halt = Halt(
        id=HaltId(ctx.ids.new()),
        company_id=company,
        agent_id=None,
        made_by_user_id=importer,
        made_by_agent_id=None,
        note=NOTE,
        created_at=ctx.now,
        left_out=json.dumps(left_out),
    )
    ctx.tx.add(halt)
    about = {"halt": halt.id, "level": halt.level, "note": NOTE, "already": False}
    ctx.record("halt.stop", f"company:{company}", about)


@query("acceptance.show", AsRoute("GET /companies/{companyId}/acceptance", "show_acceptance"))
def show(ctx: Context, *, company: CompanyRef | None = None) -> shapes.AcceptanceShape:
    """Everything that the company would run, reach and be lent on the instance's machine; for the
    board. An operator on the board accepts it."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_CHANGE, on=f"company:{ctx.company}")
    return _shown(ctx)


@command("acceptance.accept", AsRoute("POST /companies/{companyId}/acceptance", "accept_company"))
def accept(
    ctx: Context,
    *,
    company: CompanyRef | None = None,
    digest: Annotated[str, Text(LONGEST_DIGEST, one_line=True), Help("The digest that was shown.")],
) -> shapes.AcceptedShape:
    """Let a company that was imported begin, as it was shown."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_ACCEPT, on=f"company:{ctx.company}")
    ctx.lock_company()
    shown = _shown(ctx)
    if not shown["awaits"]:
        raise Conflict(
            f"{shown['name']} does not wait to be accepted.", "There is nothing to accept."
        )
    if not hmac.compare_digest(shown["digest"], digest):
        raise stale("The company is not as it was shown to you.")
    ctx.tx.run(statements.ACCEPT)
    about = {"digest": digest, "entries": len(shown["entries"]), "left_out": shown["left_out"]}
    ctx.record("company.accept", f"company:{ctx.company}", about)
    return {
        "company_id": shown["company_id"],
        "name": shown["name"],
        "accepted": True,
        "digest": digest,
    }


def _shown(ctx: Context) -> shapes.AcceptanceShape:
    company = ctx.tx.existing(people.COMPANY)
    halt = ctx.tx.one(statements.HALT_OF_COMPANY)
    awaits = halt is not None and halt.awaits_acceptance
    left_out = json.loads(halt.left_out) if halt is not None and halt.left_out else []
    return {
        "company_id": company.id,
        "name": company.name,
        "awaits": awaits,
        "may_accept": ctx.decide(Action.COMPANY_ACCEPT).allowed,
        **reached(
            reach.of_company(ctx),
            left_out,
            company.id,
            reach.instructions(ctx),
        ),
    }


def reached(entries: list[reach.Entry], left_out: list[str], *more: Any) -> shapes.ReachedShape:
    """Entries as they are shown, with the digest by which they are accepted; it is also that of
    values that they hide, and of `more`, which is not shown."""
    shown = [entry.shown for entry in entries]
    return {
        "entries": shown,
        "keys_here": reach.keys_here(shown),
        "left_out": left_out,
        "digest": digest_of([entries, left_out, *more]),
    }
