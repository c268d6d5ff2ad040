"""Changes that agents proposed: look-up, lists, views, who may see which, and mail to authors."""

import json
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any

from remit.authority import Action
from remit.ids import END_OF_IDS
from remit.model.connections.change import LONGEST_TITLE, Change, ChangeComment, ChangeStatus
from remit.model.connections.file_roles import MARKS, marks
from remit.model.connections.repo import Repo
from remit.model.messaging.turn import barred
from remit.model.organisation.decision import Decision
from remit.model.organisation.grant import Level
from remit.model.work.file import File, FileKind
from remit.model.work.outcome import OutcomeStatus
from remit.services import lookup, shapes, views
from remit.services.changes import checks
from remit.services.command import Context, query
from remit.services.connections import repos
from remit.services.context import Matter
from remit.services.execution import waking
from remit.services.fields import ChangeRef, CompanyRef, Help, OnlyAgent, Text
from remit.services.governance import approval_engine
from remit.services.knowledge import documents
from remit.services.rights import grants
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.store.connections import changes as statements
from remit.store.connections import repos as repo_statements
from remit.store.organisation import people
from remit.store.paging import each
from remit.store.work import files as file_statements
from remit.store.work import outcomes as outcome_statements

MOST_COMMENTS = 200


@query(
    "changes.listing",
    AsRoute("GET /companies/{companyId}/changes", "list_changes", page="id"),
    AsCommand("change list", "List what agents proposed to repositories, the newest first."),
)
def listing(
    ctx: Context,
    *,
    company: CompanyRef | None = None,
    agent: OnlyAgent | None = None,
    repo: Annotated[str, Text(64, one_line=True), Help("Only in this repository.")] | None = None,
    status: Annotated[str, ChangeStatus, Help("Only those.")] | None = None,
    before: str = END_OF_IDS,
    limit: int = 100,
) -> list[shapes.ChangeShape]:
    """Changes that were proposed, newest first; for an agent those that it may see."""
    lookup.company_of_caller(ctx, company)
    author = lookup.agent(ctx, agent).id if agent is not None else None
    within = repos.named(ctx, repo).id if repo is not None else None
    filters: Any = {
        "agent": author,
        "repo": within,
        "status": status,
        "before": before or END_OF_IDS,
    }
    every = each(ctx.tx, statements.CHANGES, page=limit, **filters)
    seen = (change for change in every if sees(ctx, change))
    return [view(ctx, change) for change in islice(seen, limit)]


@query("changes.show", AsRoute("GET /changes/{id}", "show_change"))
def show(ctx: Context, *, change: ChangeRef) -> shapes.ChangeDetailShape:
    """A change with what was said about it and what was decided."""
    return detail(ctx, required(ctx, change, Action.CHANGE_READ))


@query(
    "changes.status",
    AsTool(
        "repo_status",
        "Your changes: checks, comments, decision.",
        answer="changes",
        offer="changes",
    ),
)
def status(ctx: Context, *, change: ChangeRef | None = None) -> list[shapes.ChangeDetailShape]:
    """One change, or the calling agent's open ones and its last three that were closed."""
    if change is not None:
        return [detail(ctx, required(ctx, change, Action.CHANGE_READ))]
    lookup.company_of_caller(ctx, None)
    ctx.require(Action.COMPANY_READ, on="changes")
    recent = newest(ctx, 20, ctx.actor.agent_id or "")
    ended = [row for row in recent if row.status is not ChangeStatus.OPEN][:3]
    return [detail(ctx, row) for row in recent if row.status is ChangeStatus.OPEN or row in ended]


def newest(ctx: Context, limit: int, agent: str, repo: str | None = None) -> list[Change]:
    """The last changes of an agent."""
    filters: Any = {"agent": agent, "repo": repo, "status": None, "before": END_OF_IDS}
    return ctx.tx.all(statements.CHANGES, **filters, limit=limit)


def required(ctx: Context, text: str, action: Action) -> Change:
    """Return the change that a text names, if the caller may take this action on it."""
    change = lookup.find(ctx, CHANGE, text)
    ctx.accept(action, f"change:{change.id}", decide(ctx, action, change))
    return change


def decide(ctx: Context, action: Action, change: Change) -> Decision:
    resource = repos.resource(repo_of(ctx, change).name)
    matter: Matter = {"over": change.agent_id, "listed": False}
    if action is Action.CHANGE_MERGE:
        matter |= {"into": change.target, "touched": change.touched}
    return ctx.decide(action, resource, **matter)


def sees(ctx: Context, change: Change) -> bool:
    return decide(ctx, Action.CHANGE_READ, change).allowed


CHANGE = lookup.Noun(
    "change",
    statements.CHANGE,
    statements.CHANGES_BY_PREFIX,
    lambda ctx: lambda change: sees(ctx, change),
    marks=("change:",),
)


def repo_of(ctx: Context, change: Change) -> Repo:
    """Return the repository of a change, even if it was removed."""
    return ctx.tx.existing(repo_statements.REPO_EVER, repo=change.repo_id)


def bundle_of(ctx: Context, change: Change) -> File:
    """Return the file with the change's git bundle."""
    return ctx.tx.existing(file_statements.FILE, company=change.company_id, file=change.bundle_id)


def source(ctx: Context, change: Change) -> shapes.ChangeSourceShape:
    """Return the repository and the bundle that have the commits of a change."""
    bundle = bundle_of(ctx, change)
    return {"repo": repo_of(ctx, change), "bundle": {"id": bundle.id, "sha256": bundle.sha256}}


def existing(ctx: Context, change: str) -> Change:
    return ctx.tx.existing(statements.CHANGE, change=change)


# ── as it is shown ──────────────────────────────────────────────────────────────────────────────


def view(ctx: Context, value: Change) -> shapes.ChangeShape:
    repo = repo_of(ctx, value)
    return _view(value, repo=repo.name, awaits_look=value.awaits_look(repo.push))


def detail(ctx: Context, value: Change) -> shapes.ChangeDetailShape:
    comments = ctx.tx.all(statements.COMMENTS, change=value.id, after="", limit=MOST_COMMENTS)
    return {
        **view(ctx, value),
        "paths": list(value.touched),
        "marks": marked(value),
        "checks": [checks.view(check) for check in checks.of_change(ctx, value)],
        "comments": [view_comment(comment) for comment in comments],
        "waiting": [
            errand.kind.value for errand in ctx.tx.all(statements.UNFINISHED_OF, change=value.id)
        ],
        "problems": [
            *(errand.ended_why or "" for errand in ctx.tx.all(statements.DEAD_OF, change=value.id)),
            # An errand that is retried has a reason.
            *(
                f"{errand.kind.value} is tried again: {errand.ended_why}"
                for errand in ctx.tx.all(statements.UNFINISHED_OF, change=value.id)
                if errand.ended_why
            ),
        ],
    }


def marked(value: Change) -> dict[str, list[str]]:
    """Return the paths of a change that instruct agents, configure programs or are run by a forge,
    by these words."""
    by_mark: dict[str, list[str]] = {}
    for path in value.touched:
        for mark in marks(path):
            by_mark.setdefault(mark, []).append(path)
    return {mark: by_mark[mark] for mark in MARKS if mark in by_mark}


def _view_request(value: Change) -> shapes.RequestShape | None:
    if value.request_number is None:
        return None
    seen = json.loads(value.request_seen or "{}")
    return {
        "number": value.request_number,
        "url": value.request_url or "",
        "state": seen.get("state", "open"),
        #: Head and base that the forge would merge, where they differ from the proposed ones.
        "head": seen.get("head"),
        "mergeable": seen.get("mergeable"),
        "checks": [
            {"name": check["name"], "state": check["state"], "url": check["url"]}
            for check in seen.get("checks", ())
        ],
        "reviews": [
            {"by": by, "verdict": verdict} for by, verdict in seen.get("reviews", {}).items()
        ],
    }


_decision = views.view_of(
    Change,
    shapes.ChangeDecisionShape,
    note=lambda it: it.decision_note or "",
    head=lambda it: it.decided_head or "",
    base=lambda it: it.decided_base or "",
    agent_id="decided_by_agent",
    user_id="decided_by_user",
    at="decided_at",
    is_current="is_decided",
)

_view = views.view_of(
    Change,
    shapes.ChangeShape,
    supplied={"repo", "awaits_look"},
    base="base_commit",
    head="head_commit",
    published=lambda it: it.published_commit == it.head_commit,
    decision=lambda it: None if it.decision is None else _decision(it),
    request=_view_request,
)


def _view_outside(value: ChangeComment) -> str | None:
    """Author of a comment at the forge; an unheard author is marked, as those words order
    nothing."""
    if value.outside_author is None:
        return None
    return value.outside_author if value.heard else f"{value.outside_author} (from outside)"


view_comment = views.view_of(
    ChangeComment,
    shapes.ChangeCommentShape,
    head="head_commit",
    side=lambda it: it.side and it.side.value,
    body=lambda it: barred(it.body) if it.heard is False else it.body,
    outside=_view_outside,
    at="created_at",
)


# ── their authors ───────────────────────────────────────────────────────────────────────────────


def identity(ctx: Context, agent: str) -> shapes.CommitterShape:
    """Identity of an agent's commits: the agent, for a person."""
    company = ctx.tx.existing(people.COMPANY)
    chain = ctx.boss_chain(agent)
    top = lookup.agent_row(ctx, chain[-1]) if chain else None
    person = ctx.tx.one(people.USER, user=top.boss_user_id) if top and top.boss_user_id else None
    return {
        "agent": lookup.known_agent(ctx, agent).name,
        "company": company.name,
        "person": person.name if person is not None else None,
        "committer": company.commit_committer,
        "co_authors": company.commit_co_authors,
        "signing": company.commit_signing,
    }


def evidence(ctx: Context, change: Change, title: str, text: str) -> File:
    """A file of the author's that says what became of its change."""
    file = documents.create(ctx, FileKind.FILE, title[:LONGEST_TITLE], text, home=change.agent_id)
    grants.give_by_rule(ctx, change.agent_id, file.id, Level.READ)
    return file


def tell(
    ctx: Context, change: Change, subject: str, text: str, attachments: Sequence[str] = ()
) -> None:
    """Mail the author of a change from Remit, and wake the owner of the outcome that it is for."""
    repo = repo_of(ctx, change).name
    about = f"About change {change.id} ({repo}, branch {change.branch})."
    letter = f"{about}\n\n{text}\n"
    approval_engine.tell(ctx, f"agent:{change.agent_id}", subject, letter, attachments)
    if change.outcome_id is not None:
        outcome = ctx.tx.one(outcome_statements.OUTCOME, outcome=change.outcome_id)
        if outcome is not None and outcome.status is OutcomeStatus.OPEN:
            waking.news(ctx, outcome, "something happened to a change for it")
