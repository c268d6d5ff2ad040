"""Issues of a forge that become outcomes, through a label that a listed person set."""

from remit.ids import OutcomeId
from remit.model.connections.forge import ForgeIssue
from remit.model.messaging.turn import barred
from remit.model.work.outcome import LONGEST_TITLE
from remit.services import shapes
from remit.services.changes import texts, watches
from remit.services.command import FOR_REMIT, Context, command, logged
from remit.services.execution import waking
from remit.services.new_rows import new_row
from remit.services.work.outcome_creation import add_to_mandate, open_outcome, write_document
from remit.store.connections import forges as statements
from remit.store.organisation import agents as agent_statements


@logged("issues.take", FOR_REMIT)
def take(
    ctx: Context,
    *,
    repo: str,
    epoch: int,
    number: int,
    url: str,
    title: str,
    body: str,
    author: str,
    labelled_by: str,
) -> shapes.TakenIssueShape:
    """Create an outcome of the root agent for an issue, at most once; only listed people may
    ask."""
    repo_row = watches.held(ctx, repo, epoch)
    before = ctx.tx.one(statements.ISSUE, repo=repo, number=number)
    heard = labelled_by.lower() in watches.people_of(repo_row)
    if before is not None or not heard or repo_row.label is None:
        return {"outcome": None if before is None else before.outcome_id}
    root = ctx.tx.one(agent_statements.WORKING_ROOT)
    if root is None:
        return {"outcome": None}
    called = texts.line(title, LONGEST_TITLE) or f"Issue {number}"
    outcome = open_outcome(ctx, title=called, owner=root)
    write_document(
        ctx,
        outcome,
        f"Issue {number} of repo:{repo_row.name} ({url}). {labelled_by}, who is listed, wants it "
        f"worked on. {texts.line(author, 100)} wrote it, from outside this company:\n\n"
        f"{barred(texts.plain(body))}\n"
        "Remit says there what becomes of this outcome.\n",
    )
    agent = ctx.tx.existing(agent_statements.AGENT, agent=root)
    add_to_mandate(ctx, agent, outcome)
    issue = ForgeIssue(
        **new_row(ctx),
        repo_id=repo_row.id,
        number=number,
        url=url,
        labelled_by=labelled_by,
        outcome_id=OutcomeId(outcome.id),
    )
    ctx.tx.add(issue)
    waking.news(ctx, outcome, "an issue of a forge became an outcome")
    details = {"title": called, "owner": root, "parents": [root], "issue": url}
    ctx.record("outcome.create", f"outcome:{outcome.id}", details)
    about: dict[str, object] = {"number": number, "outcome": outcome.id, "by": labelled_by}
    ctx.record("issue.take", f"repo:{repo_row.name}", about)
    return {"outcome": outcome.id}


@command("issues.told", FOR_REMIT)
def told(ctx: Context, *, repo: str, epoch: int, issue: str, outside: str) -> shapes.ToldIssueShape:
    """Record that the forge was told what became of an issue."""
    repo_row = watches.held(ctx, repo, epoch)
    ctx.tx.run(statements.ISSUE_TOLD, issue=issue, outside=outside)
    ctx.record("issue.tell", f"repo:{repo_row.name}", {"issue": issue, "as": outside})
    return {"issue": issue}
