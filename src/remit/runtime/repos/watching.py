"""Watcher of forges: by a lease, one process visits the forge of each repository.

    close the requests of ended changes → post the authors' comments → observe each open request
    → take issues with the label → comment the results of issues

Each step is recorded before the next, and checks first whether it was done before, so that an
interrupted visit can be repeated.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from remit.clock import SECOND, Micros
from remit.errors import Conflict, RemitError
from remit.forges.api import Api, ForgeFailed
from remit.forges.contract import Forge
from remit.model.connections.change import Change
from remit.model.connections.forge import (
    CheckState,
    ForgeCheck,
    Person,
    Request,
    RequestState,
    Said,
)
from remit.runtime.claims import Polling
from remit.runtime.deadlines import uninterrupted
from remit.runtime.repos.cache import Repos
from remit.runtime.repos.forges import Forges, without_orders
from remit.runtime.repos.merging import has
from remit.services import shapes
from remit.services.changes import requests, watches
from remit.services.command import Gate
from remit.services.queues import Held
from remit.services.redaction import program_text

log = logging.getLogger(__name__)

#: Most logs of failed checks that are fetched in one visit of a request.
_MOST_LOGS = 5
_MOST_NEW_ISSUES = 20
#: A refusal that will not change by itself: the comment is given up.
_REFUSED = frozenset({400, 403, 404, 410, 422})


class ForgeWatcher(Polling):
    """The watches of this process."""

    verbs, noun, title = watches, "repo", "forges"
    lease = watches.LEASE
    watched = False
    at_once = 4

    def __init__(self, gate: Gate, repos: Repos, forges: Forges, **more: Any) -> None:
        super().__init__(gate, **more)
        self.repos = repos
        self.forges = forges

    async def _work(self, held: Held, claimed: shapes.ClaimedWatchShape) -> None:
        was = json.loads(claimed["cursor"])
        look = Look(self, held, claimed, was)
        more: dict[str, Any] = {"cursor": was}
        try:
            await look.whole()
            more = {"cursor": look.cursor(), "busy": look.busy, "retry_after": look.pause}
            more["problem"] = "; ".join(look.problems)[:300] or None
        except asyncio.CancelledError:
            await uninterrupted(self._ended(held, cursor=was, busy=True))
            raise
        except Conflict as error:
            if error.reason == "lost":
                return  # another process has the lease, or the watch was removed
            more["problem"] = error.sentence
        except ForgeFailed as failed:
            more |= {"problem": failed.sentence, "retry_after": look.pause}
        except RemitError as error:
            more["problem"] = error.sentence
        except Exception as error:
            # Its text may contain data of the forge, so only the type is shown.
            log.warning("looking at a forge failed (%s)", type(error).__name__)
            more["problem"] = f"the look failed ({type(error).__name__})"
        await uninterrupted(self._ended(held, **more))


class Look:
    """One visit of a repository's forge."""

    def __init__(
        self,
        watcher: ForgeWatcher,
        held: Held,
        claimed: shapes.ClaimedWatchShape,
        was: dict[str, Any],
    ) -> None:
        self._watcher = watcher
        self._do = watcher._do  # a part of it
        self._held: dict[str, Any] = {"repo": held[0], "epoch": held[1]}
        self._claimed = claimed
        self._was = was
        self._repo = claimed["repo"]
        self._listed = watches.people_of(self._repo)
        self._pushers: dict[str, bool] = {}
        self._refused: dict[str, str] = {}
        self._api: Api | None = None
        self.problems: list[str] = []
        #: Whether comments are left over for the next visit.
        self._left = False
        self.busy = bool(claimed["requests"] or self._repo.label)

    @property
    def pause(self) -> Micros:
        return round((self._api.pause if self._api else 0) * SECOND)

    def cursor(self) -> dict[str, Any]:
        # After a failure or with comments left over, the cached entity tags are dropped, so that
        # the next visit gets everything again.
        known = None if self.problems or self._left else self._api
        kept = known.kept if known is not None else {}
        return {"tags": kept, "refused": self._refused}

    async def whole(self) -> None:
        tags = self._was.get("tags")
        forge, self._api = await self._watcher.forges.opened(self._repo, tags)
        for over in self._claimed["to_close"]:
            await self._close(forge, over)
        told = await self._tell(forge)
        for request in self._claimed["requests"]:
            change = request["change"]
            try:
                await self._request(forge, change, {*request["known"], *told})
            except ForgeFailed as failed:
                if failed.retry_after is not None:
                    raise
                self.problems.append(f"request {change.request_number}: {failed.sentence}")
        if self._repo.label is not None:
            await self._take_issues(forge, self._repo.label)
        for issue in self._claimed["issues_to_tell"]:
            await self._tell_issue(forge, issue)

    async def _close(self, forge: Forge, ended: shapes.RequestToCloseShape) -> None:
        request = await forge.request(ended["number"])
        if request is not None and request.state is RequestState.OPEN:
            await forge.close(ended["number"])
        await self._do(requests.closed, **self._held, change=ended["change"])

    # ── comments of authors ─────────────────────────────────────────────────────────────────

    async def _tell(self, forge: Forge) -> set[str]:
        changes = [request["change"] for request in self._claimed["requests"]]
        numbers = {str(change.id): change.request_number for change in changes}
        told: set[str] = set()
        for comment in self._claimed["to_tell"]:
            number = numbers.get(comment["change"])
            if number is None:
                continue
            about = (
                f"About{comment['place'].removeprefix(' about')}:\n\n" if comment["place"] else ""
            )
            body = program_text.without(f"{about}{without_orders(comment['body'])}")
            outside = await self._said_once(forge, number, comment["comment"], body, issue=False)
            await self._do(requests.told, **self._held, comment=comment["comment"], outside=outside)
            told.add(outside)
        return told

    async def _said_once(
        self, forge: Forge, number: int, ours: str, body: str, *, issue: bool
    ) -> str:
        """Post a comment unless it is there already, recognised by a hidden mark in its text, which
        nobody else knows before."""
        mark = f"<!-- remit:{ours} -->"
        for comment in await forge.comments(number, issue=issue):
            if mark in comment.body:
                return comment.id
        try:
            return await forge.comment(number, f"{body}\n\n{mark}", issue=issue)
        except ForgeFailed as failed:
            if failed.status not in _REFUSED or failed.retry_after is not None:
                raise
            self.problems.append(f"a comment was refused: {failed.sentence}")
            return f"refused-{ours}"

    # ── the state of a request ──────────────────────────────────────────────────────────────

    async def _request(self, forge: Forge, change: Change, known: set[str]) -> None:
        assert change.request_number is not None
        request = await forge.request(change.request_number)
        if request is not None and request.branch != change.remote_branch:
            raise ForgeFailed("the forge answers with a request for another branch")
        comments = [
            comment
            for comment in await forge.said(change.request_number)
            if comment.id not in known
        ]
        self._left = self._left or len(comments) > requests.MOST_SAID
        checks = None
        if change.published_commit is not None:
            # Checks of the commit that was pushed, whichever head the forge reports.
            checks = await forge.checks(change.published_commit)
        if request is not None and request.state is RequestState.MERGED:
            commit = request.merged_commit or ""
            if not await has(self._watcher.repos, self._repo, change.target, commit):
                self.problems.append(
                    f"request {request.number}: the forge says that it is merged, and "
                    f"{change.target} does not have it"
                )
                request = None
        if request is None and not comments and checks is None:
            return
        await self._do(
            requests.observe,
            **self._held,
            change=change.id,
            request=None if request is None else _plain(request),
            said=[await self._heard(forge, comment) for comment in comments[: requests.MOST_SAID]],
            checks=None if checks is None else await self._with_logs(forge, checks, change),
        )

    async def _heard(self, forge: Forge, comment: Said) -> dict[str, Any]:
        heard = await self._is_heard(forge, comment.by)
        return {
            **asdict(comment),
            "by": comment.by.login,
            "verdict": comment.verdict.value,
            "heard": heard,
        }

    async def _is_heard(self, forge: Forge, person: Person) -> bool:
        login = person.login.lower()
        if login in self._listed:
            return True
        if login not in self._pushers:
            self._pushers[login] = await forge.may_push(person)
        return self._pushers[login]

    async def _with_logs(
        self, forge: Forge, checks: Sequence[ForgeCheck], change: Change
    ) -> list[dict[str, Any]]:
        """Return the checks, with the tails of logs of those that failed since the last visit."""
        seen = json.loads(change.request_seen or "{}")
        before = {check["id"]: check["state"] for check in seen.get("checks", ())}
        shown_checks, logs = [], 0
        for check in checks:
            tail = ""
            new = check.state is CheckState.FAILED and before.get(check.id) != CheckState.FAILED
            if new and logs < _MOST_LOGS:
                logs += 1
                try:
                    tail = await forge.log(check)
                except ForgeFailed as failed:
                    tail = f"(Its log is not to be had: {failed.sentence}.)\n{check.summary}"
            shown = asdict(check)
            del shown["log"]
            about = {"commit": change.published_commit, "state": check.state.value, "tail": tail}
            shown_checks.append({**shown, **about})
        return shown_checks

    # ── issues ──────────────────────────────────────────────────────────────────────────────

    async def _take_issues(self, forge: Forge, label: str) -> None:
        known, refused = set(self._claimed["issues"]), self._was.get("refused", {})
        for issue in await forge.issues(label):
            if issue.number in known:
                continue
            if refused.get(str(issue.number)) == issue.updated != "":
                self._refused[str(issue.number)] = issue.updated
                continue
            if len(self._refused) >= _MOST_NEW_ISSUES:
                break
            by = await forge.labelled_by(issue.number, label)
            if by is None or by.lower() not in self._listed:
                # Anyone may open an issue, and some templates set labels.
                self._refused[str(issue.number)] = issue.updated
                continue
            await self._do(
                requests.take_issue,
                **self._held,
                number=issue.number,
                url=issue.url,
                title=issue.title,
                body=issue.body,
                author=issue.by.login,
                labelled_by=by,
            )

    async def _tell_issue(self, forge: Forge, issue: shapes.IssueToTellShape) -> None:
        links = "".join(f"\n- {link}" for link in issue["links"] if link)
        became = "This is done." if issue["done"] else "This was closed without a result."
        outside = await self._said_once(
            forge, issue["number"], issue["issue"], became + links, issue=True
        )
        await self._do(requests.issue_told, **self._held, issue=issue["issue"], outside=outside)


def _plain(request: Request) -> dict[str, Any]:
    shown = asdict(request)
    del shown["body"]
    return {**shown, "state": request.state.value}
