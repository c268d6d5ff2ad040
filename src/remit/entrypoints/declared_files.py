"""Declarations of companies: compared with the current state, and applied."""

from typing import Any

from remit.app import App
from remit.entrypoints import setup_warnings
from remit.services.command import Answer
from remit.services.declared import declared_company
from remit.services.identity import Caller


async def apply(
    app: App,
    who: Caller,
    company: str,
    document: dict[str, Any],
    *,
    dry_run: bool,
    accepted: str | None = None,
) -> Answer:
    """Apply a document, or with `dry_run` return the plan; with warnings of what agents lack
    here. `accepted` is the digest of the plan that a person has seen."""
    if dry_run or await app.gate.first_answer(who) is None:
        plan = await app.gate(who, declared_company.preview, company=company, document=document)
        for source in declared_company.sources(document):
            app.vault.check_source(source)
        if dry_run or not (plan["created"] or plan["changed"]):
            warned = await setup_warnings.of_document(app, document, plan["plan"])
            warnings = [*plan["warnings"], *warned]
            return {**plan, "dry_run": dry_run, "warnings": warnings}
    answer = await app.gate(
        who, declared_company.apply, company=company, document=document, accepted=accepted
    )
    for place in answer.pop("replaced", ()):
        await app.vault.discard(place)
    warned = await setup_warnings.of_document(app, document, answer["plan"])
    return {**answer, "warnings": [*answer.get("warnings", ()), *warned]}


async def apply_template(app: App, who: Caller, company: str, document: dict[str, Any]) -> Answer:
    """Apply a document that Remit has with it; choosing it accepts what it says."""
    done = await app.gate.first_answer(who)
    if done is not None:
        return done
    plan = await apply(app, Caller(who.token), company, document, dry_run=True)
    return await apply(app, who, company, document, dry_run=False, accepted=plan["digest"])
