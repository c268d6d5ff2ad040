"""Requests at forges, one for each change, with their state there; and issues of forges.

The forge is polled by the process that has the watch of the repository (`watches`). All news about
one change is observed in one transaction, so that an interrupted poll is repeated and tells nobody
anything twice.

People whom the company does not know write at forges. Comments of those who may push there, or are
listed, are mail for the author. Comments of others are stored, shown as from outside, and start
nothing. An issue becomes an outcome through a label that a listed person set.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from remit.errors import Conflict
from remit.ids import OutcomeId
from remit.model.connections.change import (
    LONGEST_COMMENT,
    LONGEST_PATH,
    Change,
    ChangeComment,
    ChangeStatus,
    Side,
)
from remit.model.connections.forge import CheckState, ForgeIssue, RequestState, Verdict
from remit.model.messaging.turn import barred
from remit.model.work.outcome import LONGEST_TITLE
from remit.services import shapes
from remit.services.changes import changes, checking, endings, errands, watches
from remit.services.command import FOR_REMIT, Context, command, logged
from remit.services.execution import waking
from remit.services.new_rows import new_row
from remit.services.redaction import program_text
from remit.services.shape_basics import JsonObject
from remit.services.work.outcome_creation import add_to_mandate, open_outcome, write_document
from remit.store.connections import changes as change_statements
from remit.store.connections import forges as statements
from remit.store.organisation import agents as agent_statements

MOST_SAID = 100
MOST_CHECKS = 200
#: Longest tail of the log of a failed check, for the author.
LONGEST_TAIL = 6000
MOST_TAILS = 5


@command("requests.opened", FOR_REMIT)
def opened(ctx: Context, *, errand: str, epoch: int, number: int, url: str) -> shapes.OfChangeShape:
    """Record the request of a change at the forge."""
    _, change = errands.held(ctx, errand, epoch)
    if change.request_number != number:
        seen = json.dumps({"state": RequestState.OPEN.value})
        new = {"new_request_number": number, "new_request_url": url, "new_request_seen": seen}
        ctx.tx.run(statements.SET_REQUEST, change=change.id, **new)
    ctx.record("change.request", f"change:{change.id}", {"number": number, "url": url})
    watches.ring_for(ctx, change.repo_id)
    return {"change": change.id}


@logged("requests.observe", FOR_REMIT)
def observe(
    ctx: Context,
    *,
    repo: str,
    epoch: int,
    change: str,
    request: Mapping[str, Any] | None,
    said: Sequence[Mapping[str, Any]],
    checks: Sequence[Mapping[str, Any]] | None,
) -> shapes.OfChangeShape:
    """Record the state of a request at the forge, and mail the author of the change the news. None
    leaves a part as it was recorded."""
    watches.held(ctx, repo, epoch)
    change_row = changes.existing(ctx, change)
    if change_row.repo_id != repo or change_row.status is not ChangeStatus.OPEN:
        return {"change": change}
    was = json.loads(change_row.request_seen or "{}")
    now = {**was, **_kept(was, request, checks)}
    told = [
        *_hear(ctx, change_row, said, now),
        *_failed_checks(was, checks),
        *_conflicts(ctx, change_row, request),
    ]
    if told or now != was:
        ctx.tx.run(statements.SET_SEEN, change=change, new_request_seen=json.dumps(now))
        about = {"number": change_row.request_number, "news": [subject for subject, _ in told]}
        ctx.record("change.observe", f"change:{change}", about)
    for subject, text in told:
        changes.tell(ctx, change_row, f"{subject}: {change_row.title}", text)
    if request is not None:
        _ended(ctx, change_row, request)
    if checks is not None:
        checking.tell_passed(ctx, changes.existing(ctx, change))
    return {"change": change}


def _kept(
    was: Mapping[str, Any],
    request: Mapping[str, Any] | None,
    checks: Sequence[Mapping[str, Any]] | None,
) -> dict[str, object]:
    """The part of a request's state that is stored and shown."""
    kept: dict[str, object] = {}
    if request is not None:
        kept = {key: request[key] for key in ("state", "head", "mergeable")}
    if checks is not None:
        tails = {check["id"]: check.get("tail") for check in was.get("checks", ())}
        kept["checks"] = [
            {**check, "tail": _tail(check["tail"], LONGEST_TAIL) or tails.get(check["id"]) or ""}
            for check in checks[:MOST_CHECKS]
        ]
    return kept


# ── comments ────────────────────────────────────────────────────────────────────────────────────


def _hear(
    ctx: Context, change: Change, remarks: Sequence[Mapping[str, Any]], now: JsonObject
) -> list[tuple[str, str]]:
    heard: list[str] = []
    subject = "Comments"
    outside = []
    for remark in remarks[:MOST_SAID]:
        if ctx.tx.one(statements.KNOWN, change=change.id, outside=remark["id"]) is not None:
            continue
        comment = _comment(ctx, change, remark)
        ctx.tx.add(comment)
        if not comment.heard:
            outside.append(comment.outside_author)
            continue
        verdict = Verdict(remark["verdict"])
        if verdict is not Verdict.NONE:
            now["reviews"] = {**now.get("reviews", {}), remark["by"]: verdict.value}
            subject = verdict.value.capitalize()
        heard.append(_words(comment, verdict))
    if outside:
        ctx.record("change.outside", f"change:{change.id}", {"by": sorted(set(map(str, outside)))})
    if not heard:
        return []
    return [(subject, "\n\n".join(heard) + "\n\nAnswer with repo_comment, or propose it again.")]


def _comment(ctx: Context, change: Change, remark: Mapping[str, Any]) -> ChangeComment:
    path = _line(remark["path"] or "", LONGEST_PATH) or None
    line = remark["line"] if path is not None else None
    return ChangeComment(
        **new_row(ctx),
        change_id=change.id,
        head_commit=remark["commit"] or change.head_commit,
        path=path,
        line=line,
        side=None if line is None else Side.OLD if remark["old"] else Side.NEW,
        body=_plain(remark["body"])[:LONGEST_COMMENT] or remark["verdict"],
        agent_id=None,
        user_id=None,
        outside_id=remark["id"],
        outside_author=_line(remark["by"], 100),
        heard=bool(remark["heard"]),
    )


def _words(comment: ChangeComment, verdict: Verdict) -> str:
    does = {Verdict.APPROVED: "approves it", Verdict.CHANGES: "wants it changed"}
    verb = f"{does.get(verdict, 'says')}{comment.place}"
    return f"{comment.outside_author} (at the forge) {verb}:\n\n{barred(comment.body)}"


# ── checks, conflicts, endings ──────────────────────────────────────────────────────────────────


def _failed_checks(
    was: Mapping[str, Any], checks: Sequence[Mapping[str, Any]] | None
) -> list[tuple[str, str]]:
    before = {check["id"]: check["state"] for check in was.get("checks", ())}
    new = [
        check
        for check in (checks or ())[:MOST_CHECKS]
        if check["state"] == CheckState.FAILED and before.get(check["id"]) != CheckState.FAILED
    ]
    if not new:
        return []
    parts = []
    for place, check in enumerate(new):
        output = (check["tail"] or check["summary"]) if place < MOST_TAILS else ""
        tail = _tail(output, LONGEST_TAIL)
        end = f". The end of what it said:\n\n{barred(tail)}" if tail else "."
        parts.append(f"{_line(check['name'], 200)} failed{end}\n{check['url']}".strip())
    return [("Check failed", "\n\n".join(parts) + "\n\nMend it and propose that again.")]


def _conflicts(
    ctx: Context, change: Change, request: Mapping[str, Any] | None
) -> list[tuple[str, str]]:
    if request is None or request["mergeable"] is None or request["head"] != change.head_commit:
        return []
    now = not request["mergeable"]
    if now != change.conflicts:
        ctx.tx.run(change_statements.SET_CONFLICTS, change=change.id, new_conflicts=now)
        ctx.record("change.conflicts", f"change:{change.id}", {"conflicts": now})
    if not now or change.conflicts:
        return []
    text = (
        f"It cannot be taken in as it is: {change.target} has something else at the same places by "
        "now. Bring that into your branch, fix it, and propose it again."
    )
    return [("Conflicts", text)]


def _ended(ctx: Context, change: Change, request: Mapping[str, Any]) -> None:
    if errands.is_merging(ctx, change):
        return  # the worker of the merge reports its result
    if request["state"] == RequestState.MERGED:
        by = _line(request["merged_by"], 100) or "somebody"
        note = "" if request["head"] == change.head_commit else f" as {request['head']}"
        endings.merged(ctx, change, request["merged_commit"], f"{by} at the forge{note}")
    elif request["state"] == RequestState.CLOSED:
        endings.closed(ctx, change, "Somebody at the forge")


# ── written to the forge ────────────────────────────────────────────────────────────────────────


@command("requests.said", FOR_REMIT)
def told(
    ctx: Context, *, repo: str, epoch: int, comment: str, outside: str
) -> shapes.ToldCommentShape:
    """Store the forge's id of an author's comment that was posted there."""
    watches.held(ctx, repo, epoch)
    if not ctx.tx.run(statements.SET_OUTSIDE_ID, comment=comment, outside=outside):
        raise Conflict("It has been told already.")
    ctx.record("change.tell", f"repo:{watches.name_of(ctx, repo)}", {"comment": comment})
    return {"comment": comment, "outside": outside}


@command("requests.closed", FOR_REMIT)
def closed(ctx: Context, *, repo: str, epoch: int, change: str) -> shapes.OfChangeShape:
    """Record that the request of an ended change was closed at the forge."""
    watches.held(ctx, repo, epoch)
    was = changes.existing(ctx, change).request_seen
    seen = {**json.loads(was or "{}"), "state": RequestState.CLOSED.value}
    ctx.tx.run(statements.SET_SEEN, change=change, new_request_seen=json.dumps(seen))
    ctx.record("change.close_request", f"change:{change}", {})
    return {"change": change}


# ── issues ──────────────────────────────────────────────────────────────────────────────────────


@logged("issues.take", FOR_REMIT)
def take_issue(
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
    called = _line(title, LONGEST_TITLE) or f"Issue {number}"
    outcome = open_outcome(ctx, title=called, owner=root)
    write_document(
        ctx,
        outcome,
        f"Issue {number} of repo:{repo_row.name} ({url}). {labelled_by}, who is listed, wants it "
        f"worked on. {_line(author, 100)} wrote it, from outside this company:\n\n"
        f"{barred(_plain(body))}\n"
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
def issue_told(
    ctx: Context, *, repo: str, epoch: int, issue: str, outside: str
) -> shapes.ToldIssueShape:
    """Record that the forge was told what became of an issue."""
    repo_row = watches.held(ctx, repo, epoch)
    ctx.tx.run(statements.ISSUE_TOLD, issue=issue, outside=outside)
    ctx.record("issue.tell", f"repo:{repo_row.name}", {"issue": issue, "as": outside})
    return {"issue": issue}


# ── texts of people at forges, safe to store and to show ────────────────────────────────────────


def _plain(text: str) -> str:
    """Return the text without control characters and other unprintable ones."""
    return "".join(char for char in text if char in "\n\t" or char.isprintable()).strip()


def _line(text: str, longest: int) -> str:
    return " ".join(_plain(text).split())[:longest]


def _tail(text: str, longest: int) -> str:
    """Return the end of a log, without what looks like a secret."""
    return program_text.without(_plain(text))[-longest:]
