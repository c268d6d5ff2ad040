"""The key that a company signs its commits with: a secret that Remit generates."""

from collections.abc import Mapping

from remit.authority import Action
from remit.model.connections.secret import FILE
from remit.services import lookup, shapes
from remit.services.command import Context, command, query
from remit.services.connections import secrets
from remit.services.people import companies

#: The name of the secret.
NAME = "commit-signing"


@query("signing.may_make")
def may_make(ctx: Context, *, company: str | None) -> shapes.MakeableKeyShape:
    """Check that the caller may make a signing key, before one is generated."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_CHANGE, on=f"company:{ctx.company}")
    ctx.require(Action.SECRET_CHANGE, on=f"secret:{NAME}")
    return {"company_id": ctx.company, "secret": NAME}


@command("signing.make")
def make(
    ctx: Context, *, company: str, new_place: str, new_public: Mapping[str, str]
) -> shapes.MadeSigningKeyShape:
    """Sign commits with the key at `new_place` from now on; `new_public` is its public part."""
    put = secrets.put.body(ctx, company=company, name=NAME, source=FILE, new_place=new_place)
    companies.change.body(ctx, company=company, commit_signing=NAME)
    ctx.record("company.signing_key", f"company:{ctx.company}", dict(new_public))
    return {
        "secret": NAME,
        "public_key": new_public["public_key"],
        "fingerprint": new_public["fingerprint"],
        "place": put["place"],
        "replaced": put["replaced"],
    }
