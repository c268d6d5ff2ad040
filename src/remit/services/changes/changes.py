"""Changes: proposed by an agent, looked at, talked about; what became of one comes to its author.

The bytes of a proposal are a bundle in the knowledge base, which Remit made and checked before the
verb is called: what it says about the proposal (`new_facts`) comes from our side.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from remit.authority import Action
from remit.errors import BadInput, Conflict
from remit.ids import ChangeCommentId, ChangeId, CompanyId
from remit.model.connections.change import (
    LONGEST_COMMENT,
    LONGEST_PATH,
    LONGEST_TITLE,
    Change,
    ChangeComment,
    ChangeErrand,
    ChangeStatus,
    Errand,
    Side,
    branch_name,
    remote_branch,
)
from remit.model.connections.repo import Repo, repo_name, repo_ref
from remit.model.messaging.mail import DeliveryStatus
from remit.model.messaging.turn import barred
from remit.model.organisation.decision import Decision, Effect, allow
from remit.model.organisation.grant import Level
from remit.model.work.file import File, FileKind
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.services import lookup, shapes, views
from remit.services.changes import checks
from remit.services.command import Arguments, Context, command, logged, query
from remit.services.connections import repos
from remit.services.context import Matter
from remit.services.execution import waking
from remit.services.fields import (
    ChangeRef,
    CompanyRef,
    Help,
    OnlyAgent,
    Range,
    Text,
)
from remit.services.governance import approval_engine
from remit.services.knowledge import documents
from remit.services.rights import grants
from remit.services.subjects import OUTCOME
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.services.work import waits
from remit.store.connections import changes as statements
from remit.store.connections import forges as forge_statements
from remit.store.connections import repos as repo_statements
from remit.store.engine.statement import row
from remit.store.organisation import people
from remit.store.record import events as event_log
from remit.store.work import files as file_statements
from remit.store.work import outcomes as outcome_statements

MOST_COMMENTS = 200
_ASKS_LATER = allow("asks", "It is the proposal that somebody is asked about.")
#: Sorts after every id.
_NEWEST = "g"
Line = Annotated[int, Range(1, 10_000_000), Help("The line of it.")]


# ── proposing ───────────────────────────────────────────────────────────────────────────────────


@logged("changes.prepare")
def prepare(
    ctx: Context, *, name: str, branch: str, target: str | None = None, outcome: str | None = None
) -> shapes.PreparedShape:
    """Whether the calling run may propose to a repository at all, before anything is looked at.
    Answers what our side needs for it."""
    lookup.company_of_caller(ctx, None)
    resource = repos.resource(repo_name(name))
    decision = ctx.decide(Action.CHANGE_PROPOSE, resource)
    if decision.effect is Effect.ASK:
        ctx.allow_by_rule(_ASKS_LATER)
    else:
        ctx.accept(Action.CHANGE_PROPOSE, str(resource), decision)
    if ctx.actor.workspace is None or ctx.actor.agent_id is None:
        raise BadInput("Only a run has a workspace.", "Push it with git, where you are.")
    found = repos.named(ctx, name)
    if target is not None:
        repo_ref(target)
    _outcome(ctx, outcome)
    agent = lookup.agent_row(ctx, ctx.actor.agent_id)
    assert agent is not None
    before = ctx.tx.one(
        statements.OF_BRANCH, repo=found.id, branch=remote_branch(agent.name, branch_name(branch))
    )
    if before is not None:
        refuse_merging(ctx, before)
    ctx.record("change.prepare", str(resource), {"branch": branch})
    return {
        "repo": found,
        "workspace": ctx.actor.workspace,
        "remote_branch": remote_branch(agent.name, branch_name(branch)),
        "before": None if before is None else before.head_commit,
        "target": target or (before.target if before is not None else found.ref),
        "identity": identity(ctx, agent.id),
    }


@query("changes.for_clone")
def for_clone(ctx: Context, *, name: str, ref: str | None = None) -> shapes.CloneShape:
    """Input of a run's copy besides the repository: who commits in it, and what its agent proposed
    under the name that it asks for."""
    lookup.company_of_caller(ctx, None)
    ctx.require(Action.COMPANY_READ, on="changes")
    me = lookup.agent_row(ctx, ctx.actor.agent_id or "")
    if me is None:
        raise BadInput("Only a run has a workspace.", "Clone it with git, where you are.")
    found = None
    if ref is not None:
        place = remote_branch(me.name, ref.removeprefix("refs/heads/"))
        repo = repos.named(ctx, name)
        found = ctx.tx.one(statements.OF_BRANCH, repo=repo.id, branch=place)
    if found is None or found.agent_id != me.id:
        return {"identity": identity(ctx, me.id), "change": None}
    bundle = bundle_of(ctx, found)
    return {
        "identity": identity(ctx, me.id),
        "change": {
            "ref": found.ref,
            "branch": found.branch,
            "head": found.head_commit,
            "bundle_id": bundle.id,
            "sha256": bundle.sha256,
        },
    }


@command("changes.propose")
def propose(
    ctx: Context,
    *,
    name: str,
    branch: str,
    title: Annotated[str, Text(LONGEST_TITLE, one_line=True)],
    description: str = "",
    target: str,
    base: str,
    head: str,
    outcome: str | None = None,
    new_id: str,
    new_stored: documents.Stored,
    new_facts: Mapping[str, Any],
) -> shapes.ProposedShape:
    """Take a proposal in: a new change, or another head of the one that is open for its branch."""
    lookup.company_of_caller(ctx, None)
    paths = tuple(new_facts["paths"])
    resource = repos.resource(repo_name(name))
    ctx.require(Action.CHANGE_PROPOSE, resource, into=repo_ref(target), touched=paths)
    author = ctx.actor.agent_id
    assert author is not None, "people push to the repository itself"
    repo = repos.named(ctx, name)
    agent = lookup.agent_row(ctx, author)
    assert agent is not None
    place = remote_branch(agent.name, branch_name(branch))
    before = ctx.tx.one(statements.OF_BRANCH, repo=repo.id, branch=place)
    if before is not None and before.agent_id != author:
        raise Conflict(f"{place} is a change of somebody else.", "Choose another branch.")
    if before is not None:
        refuse_merging(ctx, before)
        _refuse_another_target(before, target)
        _refuse_other_words(ctx, before, (head, base), (title, description))
    about = _outcome(ctx, outcome)
    if before is not None and (before.head_commit, before.base_commit) == (head, base):
        bundle = before.bundle_id
    else:
        bundle = documents.create(
            *(ctx, FileKind.FILE, f"{name}: {title}"[:LONGEST_TITLE], ""),
            home=author,
            file_id=new_id,
            stored=new_stored,
            unlisted=True,
            letter=True,
        ).id
    proposed: Arguments = {
        "run_id": ctx.actor.run_id,
        "outcome_id": about.id if about is not None else None,
        "target": target,
        "title": title,
        "description": description,
        "base_commit": base,
        "head_commit": head,
        "paths": json.dumps(paths),
        "bundle_id": bundle,
    }
    if before is None:
        _refuse_beside(ctx, repo, author, place)
        made = Change(
            id=ChangeId(ctx.ids.new()),
            company_id=CompanyId(ctx.company or ""),
            repo_id=repo.id,
            agent_id=author,
            branch=branch_name(branch),
            remote_branch=place,
            revision=1,
            status=ChangeStatus.OPEN,
            version=1,
            created_at=ctx.now,
            updated_at=ctx.now,
            **proposed,
        )
        ctx.tx.run(statements.INSERT_CHANGE, **row(made))
    else:
        if about is None:
            proposed["outcome_id"] = before.outcome_id
        named = {f"new_{key}": value for key, value in proposed.items()}
        if not ctx.tx.run(
            statements.REVISE,
            change=before.id,
            seen_version=before.version,
            now=ctx.now,
            **named,
        ):
            raise Conflict("The change was changed meanwhile.", "Propose it again.")
        made = _existing(ctx, before.id)
    ctx.record(
        "change.propose",
        f"change:{made.id}",
        {
            "repo": repo.name,
            "branch": made.remote_branch,
            "target": target,
            "base": base,
            "head": head,
            "revision": made.revision,
            "outcome": made.outcome_id,
            "files": len(paths),
            "bundle": bundle,
            "words": _digest(title, description),
        },
    )
    put_errand(ctx, made, Errand.PUBLISH)
    checks.begin(ctx, made, repo)
    if about is not None:
        waking.moved(ctx, about)
    return {"change": made.id, "commit": head, "base": base, "branch": place}


def _outcome(ctx: Context, named: str | None) -> Outcome | None:
    """Outcome of a proposal: an open one of the author's, or the only one that its run is for."""
    author = ctx.actor.agent_id or ""
    if named is not None:
        return waits.own(lookup.find(ctx, OUTCOME, named), author)[0]
    concerned = waits.concerned(ctx, author)
    return concerned[0] if len(concerned) == 1 else None


def identity(ctx: Context, agent: str) -> shapes.CommitterShape:
    """Identity of an agent's commits: the agent, for a person."""
    found = lookup.agent_row(ctx, agent)
    company = ctx.tx.one(people.COMPANY, company=ctx.company)
    assert found is not None
    assert company is not None
    chain = ctx.boss_chain(agent)
    top = lookup.agent_row(ctx, chain[-1]) if chain else None
    person = ctx.tx.one(people.USER, user=top.boss_user_id) if top and top.boss_user_id else None
    return {
        "agent": found.name,
        "company": company.name,
        "person": person.name if person is not None else None,
        "committer": company.commit_committer,
        "co_authors": company.commit_co_authors,
        "signing": company.commit_signing,
    }


def refuse_merging(ctx: Context, change: Change) -> None:
    """While a change is being taken in it stays what it was when that was decided."""
    waiting = ctx.tx.all(statements.UNFINISHED_OF, change=change.id)
    if any(one.kind is Errand.MERGE for one in waiting):
        raise Conflict(
            "It is being merged already.",
            "Wait: its author has mail when it is in or could not be taken in.",
        )


def _refuse_another_target(change: Change, target: str) -> None:
    """Refuse a changed target: deciders name commits, and were shown the branch."""
    if change.target != target:
        raise Conflict(
            f"{change.remote_branch} is proposed for {change.target} already.",
            f"Propose it for {change.target}, take it back first, or choose another branch.",
        )


def _refuse_other_words(
    ctx: Context, change: Change, commits: tuple[str, str], words: tuple[str, str]
) -> None:
    """A title and a description become the message of a merge, and whoever decides names commits:
    two commits have one title and one description, also when others were proposed in between."""
    head, base = commits
    said = ctx.tx.all(
        event_log.DONE_ABOUT,
        resource=f"change:{change.id}",
        action="change.propose",
        about=f'%"head":"{head}"%',
    )
    known = [json.loads(one.details) for one in said]
    before = {one.get("words") for one in known if one["base"] == base} - {None}
    if (change.head_commit, change.base_commit) == commits:
        before.add(_digest(change.title, change.description))
    if before - {_digest(*words)}:
        raise Conflict(
            "These commits are proposed already, with another title or description.",
            "Leave it so, or commit something (`git commit --amend`) and propose that.",
            code="other_words",
        )


def _digest(title: str, description: str) -> str:
    return hashlib.sha256(json.dumps([title, description]).encode()).hexdigest()


def _refuse_beside(ctx: Context, repo: Repo, author: str, place: str) -> None:
    """git keeps a branch as a file: none can lie below another."""
    for one in _newest(ctx, 1000, author, repo.id):
        short, long = sorted((place, one.remote_branch), key=len)
        if long.startswith(f"{short}/"):
            raise Conflict(f"git cannot have {long} beside {short}.", "Choose another branch.")


def put_errand(ctx: Context, change: Change, kind: Errand, **details: Any) -> None:
    """Have something done at the remote about a change. To publish takes what is proposed when it
    is done, so one that nobody has begun is enough."""
    waiting = ctx.tx.all(statements.UNFINISHED_OF, change=change.id)
    if kind is Errand.PUBLISH and any(
        one.kind is kind and one.status is DeliveryStatus.QUEUED for one in waiting
    ):
        return
    errand = ChangeErrand(
        id=ctx.ids.new(),
        company_id=change.company_id,
        repo_id=change.repo_id,
        change_id=change.id,
        kind=kind,
        details=json.dumps(details),
        status=DeliveryStatus.QUEUED,
        next_at=ctx.now,
        created_at=ctx.now,
    )
    ctx.tx.run(statements.INSERT_ERRAND, **row(errand))


# ── looking ─────────────────────────────────────────────────────────────────────────────────────


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
    before: str = _NEWEST,
    limit: int = 100,
) -> list[shapes.ChangeShape]:
    """Changes that were proposed, newest first; for an agent those that it may see."""
    lookup.company_of_caller(ctx, company)
    author = lookup.agent(ctx, agent).id if agent is not None else None
    within = repos.named(ctx, repo).id if repo is not None else None
    found: list[Change] = []
    while len(found) < limit:
        page = _newest(ctx, limit, author, within, status, before)
        found += [one for one in page if sees(ctx, one)]
        if len(page) < limit:
            break
        before = page[-1].id
    return [view(ctx, one) for one in found[:limit]]


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
    """One change, or the open ones of the calling agent and the last that ended."""
    if change is not None:
        return [detail(ctx, required(ctx, change, Action.CHANGE_READ))]
    lookup.company_of_caller(ctx, None)
    ctx.require(Action.COMPANY_READ, on="changes")
    found = _newest(ctx, 20, ctx.actor.agent_id or "")
    ended = [one for one in found if one.status is not ChangeStatus.OPEN][:3]
    return [detail(ctx, one) for one in found if one.status is ChangeStatus.OPEN or one in ended]


def _newest(
    ctx: Context,
    limit: int,
    agent: str | None = None,
    repo: str | None = None,
    status: str | None = None,
    before: str = _NEWEST,
) -> list[Change]:
    """The last changes, of whom and in what state they are wanted."""
    return ctx.tx.all(
        statements.CHANGES,
        company=ctx.company,
        any_agent=agent is None,
        agent=agent or "",
        any_repo=repo is None,
        repo=repo or "",
        any_status=status is None,
        status=status or "",
        before=before or _NEWEST,
        limit=limit,
    )


def required(ctx: Context, text: str, action: Action) -> Change:
    """The change that a text names, if the caller may do this to it."""
    found = lookup.find(ctx, CHANGE, text)
    ctx.accept(action, f"change:{found.id}", decide(ctx, action, found))
    return found


def decide(ctx: Context, action: Action, change: Change) -> Decision:
    resource = repos.resource(repo_of(ctx, change).name)
    matter: Matter = {"over": change.agent_id, "listed": False}
    if action is Action.CHANGE_MERGE:
        matter |= {"into": change.target, "touched": change.touched}
    return ctx.decide(action, resource, **matter)


def sees(ctx: Context, change: Change) -> bool:
    return decide(ctx, Action.CHANGE_READ, change).allowed


def _reader(ctx: Context) -> Callable[[Change], bool]:
    return lambda change: sees(ctx, change)


CHANGE = lookup.Noun(
    "change", statements.CHANGE, statements.CHANGES_BY_PREFIX, _reader, marks=("change:",)
)


def repo_of(ctx: Context, change: Change) -> Repo:
    """Its repository, also when that was removed."""
    return ctx.tx.existing(repo_statements.REPO_EVER, repo=change.repo_id)


def bundle_of(ctx: Context, change: Change) -> File:
    """The objects that it brings."""
    return ctx.tx.existing(file_statements.FILE, company=change.company_id, file=change.bundle_id)


def comments_of(ctx: Context, change: Change, after: str = "") -> list[ChangeComment]:
    return ctx.tx.all(statements.COMMENTS, change=change.id, after=after, limit=MOST_COMMENTS)


# ── talking ─────────────────────────────────────────────────────────────────────────────────────


@command(
    "changes.comment",
    AsTool("repo_comment", "Say something about a change, or about a line of it.", offer="changes"),
    AsRoute("POST /changes/{id}/comments", "comment_change", 201),
    AsCommand("change comment", said="Its author has it as mail."),
)
def comment(
    ctx: Context,
    *,
    change: ChangeRef,
    body: Annotated[str, Text(LONGEST_COMMENT)],
    path: Annotated[str, Text(LONGEST_PATH, one_line=True), Help("The file that it is about.")]
    | None = None,
    line: Line | None = None,
    side: Annotated[str, Side, Help("Of the line: as it is now, or as it was.")] | None = None,
    head: Annotated[str, Text(64, one_line=True), Help("The commit that it is about.")]
    | None = None,
) -> shapes.ChangeCommentShape:
    """Say something about a change; its author reads it as mail."""
    found = required(ctx, change, Action.CHANGE_COMMENT)
    if line is not None and path is None:
        raise BadInput("Which file is the line in?", "Name its path, too.")
    if ctx.actor.agent_id == found.agent_id:
        # What its author says about a change with a request is said there, too.
        ctx.tx.run(forge_statements.RING, repo=found.repo_id, due=ctx.now)
    made = ChangeComment(
        id=ChangeCommentId(ctx.ids.new()),
        company_id=found.company_id,
        change_id=found.id,
        head_commit=head or found.head_commit,
        path=path,
        line=line,
        side=Side(side or Side.NEW) if line is not None else None,
        body=body,
        agent_id=ctx.actor.agent_id,
        user_id=ctx.actor.user_id,
        created_at=ctx.now,
    )
    ctx.tx.run(statements.INSERT_COMMENT, **row(made))
    ctx.record("change.comment", f"change:{found.id}", {"comment": made.id, "path": path})
    if found.agent_id != ctx.actor.agent_id:
        tell_author(
            ctx, found, f"Comment on {found.title}", f"{ctx.actor.name} says{at(made)}:\n\n{body}"
        )
    return view_comment(made)


def tell_author(
    ctx: Context, change: Change, subject: str, text: str, attachments: Sequence[str] = ()
) -> None:
    """Mail from Remit to the author; what the change is for is due."""
    about = f"About change {change.id} ({repo_of(ctx, change).name}, branch {change.branch})."
    letter = f"{about}\n\n{text}\n"
    approval_engine.tell(ctx, f"agent:{change.agent_id}", subject, letter, attachments)
    if change.outcome_id is not None:
        outcome = ctx.tx.one(
            outcome_statements.OUTCOME, company=ctx.company, outcome=change.outcome_id
        )
        if outcome is not None and outcome.status is OutcomeStatus.OPEN:
            waking.news(ctx, outcome, "something happened to a change for it")


def at(comment: ChangeComment) -> str:
    if comment.path is None:
        return ""
    return f" about {comment.path}" + (f", line {comment.line}" if comment.line else "")


# ── ending ──────────────────────────────────────────────────────────────────────────────────────


def merged(ctx: Context, change: Change, commit: str, by: str) -> Change:
    """It came into its branch by this commit: its author has that as evidence."""
    ended = _end(ctx, change, ChangeStatus.MERGED, f"merged by {by}", commit)
    text = (
        f"# {change.title}\n\n"
        f"Merged into {change.target} of {repo_of(ctx, change).name} by {by}.\n\n"
        f"- commit: {commit}\n- proposed: {change.head_commit}\n- from: {change.base_commit}\n"
        f"- change: {change.id}\n"
        + "".join(
            f"- check {one.name}: {one.state}, kb_file:{one.evidence_id}\n"
            for one in checks.of_change(ctx, change)
            if one.evidence_id is not None
        )
    )
    evidence = documents.create(
        ctx,
        FileKind.FILE,
        f"Merged: {change.title}"[:LONGEST_TITLE],
        text,
        home=change.agent_id,
    )
    grants.give_by_rule(ctx, change.agent_id, evidence.id, Level.READ)
    ctx.record(
        "change.merged",
        f"change:{change.id}",
        {"commit": commit, "head": change.head_commit, "by": by, "evidence": evidence.id},
    )
    tell_author(
        ctx,
        ended,
        f"Merged: {change.title}",
        f"It is in {change.target} since commit {commit}, by {by}. kb_file:{evidence.id} says so: "
        "name it as evidence when you hand in what it was for.",
        [evidence.id],
    )
    return ended


def closed(ctx: Context, change: Change, by: str, why: str = "", *, how: str = "closed") -> Change:
    """It is not taken in; what was pushed stays at the remote, a request at a forge is closed."""
    ended = _end(ctx, change, ChangeStatus.CLOSED, f"{how} by {by}")
    ctx.record("change.closed", f"change:{change.id}", {"by": by, "why": why})
    ctx.tx.run(forge_statements.RING, repo=change.repo_id, due=ctx.now)
    if change.agent_id != ctx.actor.agent_id:
        text = f"{by} {how} it without taking it in. {why}"
        tell_author(ctx, ended, f"{how.capitalize()}: {change.title}", text)
    return ended


def cancel_errands(ctx: Context, waiting: Sequence[ChangeErrand], why: str) -> None:
    for errand in waiting:
        ctx.tx.run(
            statements.ERRANDS.close,
            errand=errand.id,
            new_status=DeliveryStatus.CANCELLED.value,
            now=ctx.now,
            why=why,
        )


def _end(
    ctx: Context, change: Change, status: ChangeStatus, why: str, commit: str | None = None
) -> Change:
    if not ctx.tx.run(
        statements.END,
        change=change.id,
        new_status=status.value,
        new_merged_commit=commit,
        new_ended_why=why,
        now=ctx.now,
    ):
        raise Conflict("The change has ended already.", "Look at it again.")
    checks.leave(ctx, change, f"the change is {status.value}")
    return _existing(ctx, change.id)


def end_all_in(ctx: Context, repo: Repo) -> None:
    """The repository is removed: nothing of it can be taken in any more."""
    waiting = ctx.tx.all(statements.UNFINISHED_IN, repo=repo.id)
    cancel_errands(ctx, waiting, "the repository was removed")
    for change in ctx.tx.all(statements.OPEN_IN_REPO, repo=repo.id, limit=10_000):
        closed(ctx, change, ctx.actor.name, "The repository was removed.")


def _existing(ctx: Context, change: str) -> Change:
    return ctx.tx.existing(statements.CHANGE, change=change)


# ── as it is shown ──────────────────────────────────────────────────────────────────────────────


def view(ctx: Context, value: Change) -> shapes.ChangeShape:
    return _view(value, repo=repo_of(ctx, value).name)


def detail(ctx: Context, value: Change) -> shapes.ChangeDetailShape:
    return {
        **view(ctx, value),
        "paths": list(value.touched),
        "checks": [checks.view(one) for one in checks.of_change(ctx, value)],
        "comments": [view_comment(one) for one in comments_of(ctx, value)],
        "waiting": [
            one.kind.value for one in ctx.tx.all(statements.UNFINISHED_OF, change=value.id)
        ],
        "problems": [
            *(one.ended_why or "" for one in ctx.tx.all(statements.DEAD_OF, change=value.id)),
            # What is tried again says why it has to be.
            *(
                f"{one.kind.value} is tried again: {one.ended_why}"
                for one in ctx.tx.all(statements.UNFINISHED_OF, change=value.id)
                if one.ended_why
            ),
        ],
    }


def _view_request(value: Change) -> shapes.RequestShape | None:
    if value.request_number is None:
        return None
    seen = json.loads(value.request_seen or "{}")
    checks: list[shapes.ForgeCheckShape] = [
        {"name": one["name"], "state": one["state"], "url": one["url"]}
        for one in seen.get("checks", ())
    ]
    return {
        "number": value.request_number,
        "url": value.request_url or "",
        "state": seen.get("state", "open"),
        #: What would be taken in there, when that is something else.
        "head": seen.get("head"),
        "mergeable": seen.get("mergeable"),
        "checks": checks,
        "reviews": [{"by": by, "verdict": said} for by, said in seen.get("reviews", {}).items()],
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
    given={"repo"},
    base="base_commit",
    head="head_commit",
    published=lambda it: it.published_commit == it.head_commit,
    decision=lambda it: None if it.decision is None else _decision(it),
    request=_view_request,
)


def _view_outside(value: ChangeComment) -> str | None:
    """Author of a comment at the forge; words of those who are not heard are nobody's orders."""
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
