"""GitHub and GitHub Enterprise, by their REST API (version 2022-11-28)."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from remit.forges.api import Api, ForgeFailed, amount, at, link, many, maybe_number, number, text
from remit.model.connections.change import MergeMethod
from remit.model.connections.forge import (
    CheckState,
    ForgeCheck,
    Issue,
    Person,
    Request,
    RequestState,
    Said,
    Verdict,
    commit_id,
)

LONGEST_BODY = 20_000
_HUNDRED = 100


class GitHub:
    #: The query parameter for the size of a page.
    per_page: ClassVar[Mapping[str, Any]] = {"per_page": _HUNDRED}
    verdicts: ClassVar[Mapping[str, Verdict]] = {
        "APPROVED": Verdict.APPROVED,
        "CHANGES_REQUESTED": Verdict.CHANGES,
        "COMMENTED": Verdict.NONE,
    }
    pushes: ClassVar[frozenset[str]] = frozenset({"admin", "write"})

    def __init__(self, api: Api, project: str) -> None:
        owner, _, name = project.rpartition("/")
        self.owner = owner.rpartition("/")[2]
        self.api = api
        self.at = f"/repos/{quote(self.owner, safe='')}/{quote(name, safe='')}"
        self.name = f"{self.owner}/{name}"

    @staticmethod
    def headers(token: str) -> dict[str, str]:
        return {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "Authorization": f"Bearer {token}",
        }

    async def probe(self) -> str:
        found = await self.api.get(self.at)
        if at(found, "permissions", "push") is False:
            raise ForgeFailed("the token may not push to the repository")
        return text(found, "full_name")

    # ── the request ─────────────────────────────────────────────────────────────────────────

    async def find(self, branch: str) -> Sequence[Request]:
        asked: dict[str, Any] = {"head": f"{self.owner}:{branch}", "state": "all", **self.per_page}
        return self._of_branch(many(await self.api.get(f"{self.at}/pulls", **asked)), branch)

    def _of_branch(self, found: Sequence[Any], branch: str) -> list[Request]:
        ours = [
            one
            for one in found
            if text(one, "head", "ref") == branch
            # A fork may have a branch of the same name.
            and text(one, "head", "repo", "full_name").lower() in (self.name.lower(), "")
        ]
        return sorted(map(self._request, ours), key=lambda one: -one.number)

    async def open(self, branch: str, target: str, title: str, body: str) -> Request:
        asked: dict[str, Any] = {"title": title, "head": branch, "base": target, "body": body}
        return self._request(await self.api.send("POST", f"{self.at}/pulls", asked))

    async def update(self, number: int, target: str, title: str, body: str) -> Request:
        asked: dict[str, Any] = {"title": title, "body": body, "base": target}
        return self._request(await self.api.send("PATCH", f"{self.at}/pulls/{number}", asked))

    async def close(self, number: int) -> None:
        await self.api.send("PATCH", f"{self.at}/pulls/{number}", {"state": "closed"})

    async def request(self, number: int) -> Request | None:
        found = await self.api.fresh(f"{self.at}/pulls/{number}")
        return None if found is None else self._request(found, number)

    def _request(self, one: Any, asked: int | None = None) -> Request:
        merged = at(one, "merged") is True or at(one, "merged_at") is not None
        state = text(one, "state")
        if state not in ("open", "closed"):
            raise ForgeFailed("the forge does not say whether the request is open")
        mergeable = at(one, "mergeable")
        found = number(one, "number")
        if asked not in (None, found):
            raise ForgeFailed("the forge answers with another request")
        return Request(
            number=found,
            url=link(one, "html_url"),
            branch=text(one, "head", "ref"),
            head=commit(one, "head", "sha"),
            target=text(one, "base", "ref"),
            state=RequestState.MERGED if merged else RequestState(state),
            body=text(one, "body", most=LONGEST_BODY * 4),
            mergeable=mergeable if isinstance(mergeable, bool) else None,
            merged_commit=commit(one, "merge_commit_sha") if merged else None,
            merged_by=text(one, "merged_by", "login"),
        )

    async def merge(
        self, number: int, head: str, method: MergeMethod, title: str, body: str
    ) -> None:
        asked = {
            "sha": head,
            "merge_method": "squash" if method is MergeMethod.SQUASH else "merge",
            "commit_title": title,
            "commit_message": body,
        }
        await self.api.send("PUT", f"{self.at}/pulls/{number}/merge", asked)

    # ── comments ────────────────────────────────────────────────────────────────────────────

    async def said(self, number: int) -> Sequence[Said]:
        place = f"{self.at}/pulls/{number}"
        return [
            *filter(None, map(self._review, await self._new(f"{place}/reviews"))),
            *map(self._placed, await self._new(f"{place}/comments")),
            *map(comment, await self._new(f"{self.at}/issues/{number}/comments")),
        ]

    async def _new(self, place: str) -> Sequence[Any]:
        return await self.api.pages(place, known=True, **self.per_page)

    def _review(self, one: Any) -> Said | None:
        verdict = self.verdicts.get(text(one, "state"))
        body = text(one, "body", most=LONGEST_BODY)
        if verdict is None or (verdict is Verdict.NONE and not body.strip()):
            return None  # not submitted, or only the container of line comments
        return Said(
            id=f"review-{number(one, 'id')}",
            by=person(one, "user"),
            body=body,
            verdict=verdict,
            commit=maybe_commit(one, "commit_id"),
        )

    def _placed(self, one: Any) -> Said:
        line = maybe_number(one, "line") or maybe_number(one, "original_line")
        outdated = at(one, "line") is None
        return Said(
            id=f"placed-{number(one, 'id')}",
            by=person(one, "user"),
            body=text(one, "body", most=LONGEST_BODY),
            commit=maybe_commit(one, "original_commit_id" if outdated else "commit_id"),
            path=text(one, "path", most=1000) or None,
            line=line,
            old=text(one, "side") == "LEFT",
        )

    async def comments(self, number: int, *, issue: bool) -> Sequence[Said]:
        del issue  # a request is one of the issues
        return [
            comment(one)
            for one in await self.api.pages(f"{self.at}/issues/{number}/comments", **self.per_page)
        ]

    async def comment(self, number: int, body: str, *, issue: bool) -> str:
        del issue
        made = await self.api.send("POST", f"{self.at}/issues/{number}/comments", {"body": body})
        return comment(made).id

    async def may_push(self, person: Person) -> bool:
        place = f"{self.at}/collaborators/{quote(person.login, safe='')}/permission"
        try:
            return text(await self.api.get(place), "permission") in self.pushes
        except ForgeFailed as failed:
            if failed.status == 404:
                return False
            raise

    # ── checks ──────────────────────────────────────────────────────────────────────────────

    async def checks(self, head: str) -> Sequence[ForgeCheck] | None:
        place = f"{self.at}/commits/{head}"
        runs = await self.api.fresh(f"{place}/check-runs", **self.per_page)
        states = await self.api.fresh(f"{place}/status", **self.per_page)
        if runs is None and states is None:
            return None
        # If one of the two lists changed, the unchanged one is fetched in full as well.
        if runs is None:
            runs = await self.api.get(f"{place}/check-runs", **self.per_page)
        if states is None:
            states = await self.api.get(f"{place}/status", **self.per_page)
        return [
            *map(self._run, many(at(runs, "check_runs"))),
            *map(status_check, many(at(states, "statuses"))),
        ]

    def _run(self, one: Any) -> ForgeCheck:
        state = CheckState.PENDING
        if text(one, "status") == "completed":
            good = text(one, "conclusion") in ("success", "neutral", "skipped")
            state = CheckState.PASSED if good else CheckState.FAILED
        id_ = number(one, "id")
        said = [text(one, "output", key, most=4000) for key in ("title", "summary", "text")]
        # Only jobs of GitHub Actions have logs, under the same number.
        own = text(one, "app", "slug") == "github-actions"
        return ForgeCheck(
            id=f"run-{id_}",
            name=text(one, "name"),
            state=state,
            url=link(one, "html_url") or link(one, "details_url"),
            summary="\n".join(filter(None, said)),
            log=f"{self.at}/actions/jobs/{id_}/logs" if own else "",
        )

    async def log(self, check: ForgeCheck) -> str:
        return await self.api.tail(check.log) if check.log else ""

    # ── issues ──────────────────────────────────────────────────────────────────────────────

    async def issues(self, label: str) -> Sequence[Issue]:
        asked: dict[str, Any] = {"labels": label, "state": "open", **self.per_page}
        found = await self.api.pages(f"{self.at}/issues", **asked)
        return [issue(one) for one in found if at(one, "pull_request") is None]

    async def labelled_by(self, number: int, label: str) -> str | None:
        """Return the person who set a label that is present now."""
        by = None
        for one in await self.api.pages(f"{self.at}/issues/{number}/events", **self.per_page):
            if text(one, "label", "name").lower() == label.lower():
                if text(one, "event") == "labeled":
                    by = text(one, "actor", "login")
                elif text(one, "event") == "unlabeled":
                    by = None
        return by or None


def commit(one: Any, *path: str) -> str:
    try:
        return commit_id(text(one, *path))
    except ValueError:
        raise ForgeFailed(f"the forge names no commit as {path[-1]}") from None


def maybe_commit(one: Any, *path: str) -> str | None:
    return commit(one, *path) if at(one, *path) else None


def person(one: Any, *path: str) -> Person:
    """Return the account of a person; removed accounts become `nobody`."""
    found = at(one, *path)
    login = text(found, "login") or text(found, "username")
    return Person(login or "nobody", amount(found, "id"))


def comment(one: Any) -> Said:
    return Said(
        id=f"comment-{number(one, 'id')}",
        by=person(one, "user"),
        body=text(one, "body", most=LONGEST_BODY),
    )


def issue(one: Any) -> Issue:
    return Issue(
        number=number(one, "number"),
        url=link(one, "html_url"),
        title=text(one, "title", most=1000),
        body=text(one, "body", most=LONGEST_BODY),
        by=person(one, "user"),
        updated=text(one, "updated_at"),
    )


def status_check(one: Any) -> ForgeCheck:
    """Parse a commit status of another program, in the format of GitHub and Gitea."""
    said = text(one, "state") or text(one, "status")
    known = {"success": CheckState.PASSED, "warning": CheckState.PASSED}
    known |= {"pending": CheckState.PENDING}
    return ForgeCheck(
        id=f"status-{number(one, 'id')}",
        name=text(one, "context"),
        state=known.get(said, CheckState.FAILED),
        url=link(one, "target_url"),
        summary=text(one, "description", most=1000),
    )
