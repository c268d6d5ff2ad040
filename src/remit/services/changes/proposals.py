"""Proposals: a branch of a run becomes a change, or the next head of an open one.

The bytes of a proposal are a bundle in the knowledge base, which Remit made and checked before the
verb is called: what the verb is told of it (`new_facts`) was found out by Remit, not by the agent.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from remit.authority import Action
from remit.authority.repository import UNNAMED, changing
from remit.errors import BadInput, Conflict
from remit.model.connections.change import (
    LONGEST_TITLE,
    Change,
    ChangeStatus,
    branch_name,
    remote_branch,
)
from remit.model.connections.repo import Repo, repo_name, repo_ref
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.decision import Effect, allow
from remit.model.organisation.grant import Level
from remit.model.work.file import FileKind
from remit.model.work.outcome import Outcome
from remit.services import lookup, shapes
from remit.services.changes import changes, checks, differences, errands, pushing
from remit.services.command import FOR_REMIT, Arguments, Context, command, logged, query
from remit.services.connections import repos
from remit.services.execution import waking
from remit.services.fields import Text
from remit.services.knowledge import documents
from remit.services.new_rows import first_version
from remit.services.subjects import OUTCOME
from remit.services.work import waits
from remit.store.connections import changes as statements
from remit.store.organisation import agents as agent_statements
from remit.store.record import events as event_log

_ASKS_LATER = allow("asks", "It is the proposal that somebody is asked about.")


@logged("changes.prepare")
def prepare(
    ctx: Context, *, name: str, branch: str, target: str | None = None, outcome: str | None = None
) -> shapes.PreparedShape:
    """Check that the calling run may propose to a repository, before its workspace is read. Returns
    what Remit needs to make the bundle."""
    lookup.company_of_caller(ctx, None)
    resource = repos.resource(repo_name(name))
    decision = ctx.decide(Action.CHANGE_PROPOSE, resource)
    if decision.effect is Effect.ASK:
        ctx.allow_by_rule(_ASKS_LATER)
    else:
        ctx.accept(Action.CHANGE_PROPOSE, str(resource), decision)
    if ctx.actor.workspace is None or ctx.actor.agent_id is None:
        raise BadInput("Only a run has a workspace.", "Push it with git, where you are.")
    repo = repos.named(ctx, name)
    if target is not None:
        repo_ref(target)
    _outcome(ctx, outcome)
    agent = lookup.agent_row(ctx, ctx.actor.agent_id)
    assert agent is not None
    place = remote_branch(agent.name, branch_name(branch))
    before = ctx.tx.one(statements.OF_BRANCH, repo=repo.id, branch=place)
    if before is not None:
        errands.refuse_merging(ctx, before)
    ctx.record("change.prepare", str(resource), {"branch": branch})
    return {
        "repo": repo,
        "workspace": ctx.actor.workspace,
        "remote_branch": place,
        "before": None if before is None else before.head_commit,
        "target": target or (before.target if before is not None else repo.ref),
        "identity": changes.identity(ctx, agent.id),
    }


@query("changes.for_clone")
def for_clone(ctx: Context, *, name: str, ref: str | None = None) -> shapes.CloneShape:
    """Input of a run's clone besides the repository: its committer, and its agent's own open change
    with the branch name that was asked for."""
    lookup.company_of_caller(ctx, None)
    ctx.require(Action.COMPANY_READ, on="changes")
    me = lookup.agent_row(ctx, ctx.actor.agent_id or "")
    if me is None:
        raise BadInput("Only a run has a workspace.", "Clone it with git, where you are.")
    change = None
    if ref is not None:
        place = remote_branch(me.name, ref.removeprefix("refs/heads/"))
        repo = repos.named(ctx, name)
        change = ctx.tx.one(statements.OF_BRANCH, repo=repo.id, branch=place)
    if change is None or change.agent_id != me.id:
        return {"identity": changes.identity(ctx, me.id), "change": None}
    bundle = changes.bundle_of(ctx, change)
    own: shapes.ProposedBranchShape = {
        "ref": change.ref,
        "branch": change.branch,
        "head": change.head_commit,
        "bundle_id": bundle.id,
        "sha256": bundle.sha256,
    }
    return {"identity": changes.identity(ctx, me.id), "change": own}


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
    """Record a proposal: a new change, or the next head of the open one of its branch."""
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
        errands.refuse_merging(ctx, before)
        if before.target != target:
            # A decision names commits, and was made for the target that was shown.
            raise Conflict(
                f"{place} is proposed for {before.target} already.",
                f"Propose it for {before.target}, take it back first, or choose another branch.",
            )
        _refuse_other_words(ctx, before, (head, base), (title, description))
    about = _outcome(ctx, outcome)
    if before is not None and _is_unchanged(
        ctx, before, base, (title, description), about, new_facts
    ):
        ctx.record("change.keep", f"change:{before.id}", {"head": before.head_commit})
        return {
            "change": before.id,
            "commit": before.head_commit,
            "base": base,
            "branch": place,
            "awaits_look": before.awaits_look(repo.push),
        }
    files_title = f"{name}: {title}"[:LONGEST_TITLE]
    if before is not None and (before.head_commit, before.base_commit) == (head, base):
        bundle, difference = before.bundle_id, differences.recorded(ctx, before)
    else:
        difference = differences.keep(ctx, author, files_title, new_facts.get("difference"))
        bundle = documents.create(
            *(ctx, FileKind.FILE, files_title, ""),
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
        change = Change(
            **first_version(ctx),
            repo_id=repo.id,
            agent_id=author,
            branch=branch_name(branch),
            remote_branch=place,
            revision=1,
            status=ChangeStatus.OPEN,
            **proposed,
        )
        ctx.tx.add(change)
    else:
        if about is None:
            proposed["outcome_id"] = before.outcome_id
        named = {f"new_{key}": value for key, value in proposed.items()}
        if not ctx.tx.run(
            statements.REVISE, change=before.id, seen_version=before.version, **named
        ):
            raise Conflict("The change was changed meanwhile.", "Propose it again.")
        change = changes.existing(ctx, before.id)
    ctx.record(
        "change.propose",
        f"change:{change.id}",
        {
            "repo": repo.name,
            "branch": change.remote_branch,
            "target": target,
            "base": base,
            "head": head,
            "revision": change.revision,
            "outcome": change.outcome_id,
            "files": len(paths),
            "bundle": bundle,
            "difference": difference,
            "words": _digest(title, description),
        },
    )
    pushing.queue(ctx, change, repo)
    checks.begin(ctx, change, repo)
    if about is not None:
        waking.moved(ctx, about)
    return {
        "change": change.id,
        "commit": head,
        "base": base,
        "branch": place,
        "awaits_look": change.awaits_look(repo.push),
    }


class RefusedNow(NamedTuple):
    """The last proposal of an agent to a repository, if its like would be refused now."""

    agent: str
    repo: str
    sentence: str


@query("proposals.refused_now", FOR_REMIT)
def refused_now(ctx: Context, *, limit: int = 1000) -> list[RefusedNow]:
    """Agents whose last proposals touched files that no capability of theirs names."""
    last: dict[tuple[str, str], Change] = {}
    for change in ctx.tx.all(statements.NEWEST, limit=limit):
        last.setdefault((change.agent_id, change.repo_id), change)
    refused = []
    for change in last.values():
        agent = ctx.tx.existing(agent_statements.AGENT_ANYWHERE, agent=change.agent_id)
        repo = changes.repo_of(ctx, change)
        if agent.status is AgentStatus.TERMINATED or repo.removed_at is not None:
            continue
        held = ctx.held(agent.id, repos.resource(repo.name))
        verdict = changing(held, Level.PROPOSE, change.target, change.touched, ctx.now)
        if verdict.reason in UNNAMED:
            refused.append(RefusedNow(agent.name, repo.name, verdict.sentence))
    return sorted(refused)


def _is_unchanged(
    ctx: Context,
    open_change: Change,
    base: str,
    words: tuple[str, str],
    about: Outcome | None,
    facts: Mapping[str, Any],
) -> bool:
    """Return whether a proposal has the files and words of the open one. Its commits may have other
    dates and messages; that is no news, and starts nobody. A head that could not be published is
    proposed anew."""
    return (
        facts.get("same_files_as") == open_change.head_commit
        and base == open_change.base_commit
        and words == (open_change.title, open_change.description)
        and (about is None or about.id == open_change.outcome_id)
        and not ctx.tx.all(statements.DEAD_OF, change=open_change.id)
    )


def _outcome(ctx: Context, named: str | None) -> Outcome | None:
    """Outcome of a proposal: an open one of the author's, or the only one that its run is for."""
    author = ctx.actor.agent_id or ""
    if named is not None:
        return waits.own(lookup.find(ctx, OUTCOME, named), author)[0]
    concerned = waits.concerned(ctx, author)
    return concerned[0] if len(concerned) == 1 else None


def _refuse_other_words(
    ctx: Context, change: Change, commits: tuple[str, str], words: tuple[str, str]
) -> None:
    """Refuse another title or description for the same two commits. Both become the message of a
    merge while a decision names commits alone, so they are fixed for each pair of commits, even if
    other commits were proposed in between."""
    head, base = commits
    events = ctx.tx.all(
        event_log.DONE_ABOUT,
        resource=f"change:{change.id}",
        action="change.propose",
        about=f'%"head":"{head}"%',
    )
    known = [json.loads(event.details) for event in events]
    before = {details.get("words") for details in known if details["base"] == base} - {None}
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
    """Refuse a branch below or above another: git stores a branch as a file, not as a folder."""
    for change in changes.newest(ctx, 1000, author, repo.id):
        short, long = sorted((place, change.remote_branch), key=len)
        if long.startswith(f"{short}/"):
            raise Conflict(f"git cannot have {long} beside {short}.", "Choose another branch.")
