"""Access to the whole machine that an agent passed on, as older versions allowed: it is ended."""

from typing import TypedDict

from remit.model.organisation.decision import Decision, Effect
from remit.services.command import FOR_REMIT, Context, command, query
from remit.services.rights import grants
from remit.store.organisation import grants as statements


class EndedAccessShape(TypedDict):
    company_id: str
    #: The grants that ended.
    ended: list[str]


_BY_PEOPLE_ALONE = Decision(
    Effect.ALLOW, "people_decide", "Only people give access to the whole machine.", "rule:machine"
)
_MACHINE = {"kind": grants.WHOLE_MACHINE.kind.value, "resource": grants.WHOLE_MACHINE.id}


@query("machine_access.passed_on", FOR_REMIT)
def passed_on(ctx: Context) -> list[str]:
    """Return the companies in which an agent gave another one access to the whole machine."""
    return sorted({grant.company_id for grant in ctx.tx.all(statements.PASSED_ON, **_MACHINE)})


@command("machine_access.end", FOR_REMIT)
def end(ctx: Context, *, company: str) -> EndedAccessShape:
    """End in one company what agents gave of access to the whole machine."""
    ctx.enter(company)
    ctx.allow_by_rule(_BY_PEOPLE_ALONE)
    ended: list[str] = [
        grant.id
        for grant in ctx.tx.all(statements.PASSED_ON, **_MACHINE)
        if grant.company_id == company and grants.take_back(ctx, grant)
    ]
    return {"company_id": company, "ended": ended}
