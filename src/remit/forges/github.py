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


class GitHub:
    #: The query parameter for the size of a page.
    per_page: ClassVar[Mapping[str, Any]] = {"per_page": 100}
    verdicts: ClassVar[Mapping[str, Verdict]] = {
        "APPROVED": Verdict.APPROVED,
        "CHANGES_REQUESTED": Verdict.CHANGES,
        "COMMENTED": Verdict.NONE,
    }
    pushes: ClassVar[frozenset[str]] = frozenset({"admin", "write"})
    #: Whether a request names the repository that it comes from besides its owner.
    names_source: ClassVar[bool] = True

    def __init__(self, api: Api, project: str, source: str) -> None:
        """`source` is the project with the branches: the project itself, or a fork of it."""
        owner, name = _owner_and_name(project)
        self.api = api
        self.at = f"/repos/{quote(owner, safe='')}/{quote(name, safe='')}"
        self.name = f"{owner}/{name}"
        self.owner, self.source_name = _owner_and_name(source)
        self.source = f"{self.owner}/{self.source_name}"
        self.forked = self.source.lower() != self.name.lower()

    @staticmethod
    def headers(token: str) -> dict[str, str]:
        return {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "Authorization": f"Bearer {token}",
        }

    async def probe(self) -> str:
        repository = await self.api.get(self.at)
        if not self.forked and at(repository, "permissions", "push") is False:
            raise ForgeFailed("the token may not push to the repository")
        return text(repository, "full_name")

    # ── the request ─────────────────────────────────────────────────────────────────────────

    async def find(self, branch: str) -> Sequence[Request]:
        query: dict[str, Any] = {"head": f"{self.owner}:{branch}", "state": "all", **self.per_page}
        return self._of_branch(many(await self.api.get(f"{self.at}/pulls", **query)), branch)

    def _of_branch(self, pulls: Sequence[Any], branch: str) -> list[Request]:
        ours = [
            pull
            for pull in pulls
            if text(pull, "head", "ref") == branch
            # Another fork may have a branch of the same name.
            and text(pull, "head", "repo", "full_name").lower() in (self.source.lower(), "")
        ]
        return sorted(map(self._request, ours), key=lambda request: -request.number)

    async def open(self, branch: str, target: str, title: str, body: str) -> Request:
        head = f"{self.owner}:{branch}" if self.forked else branch
        document: dict[str, Any] = {"title": title, "head": head, "base": target, "body": body}
        if self.forked and self.names_source:
            document["head_repo"] = self.source_name
        return self._request(await self.api.send("POST", f"{self.at}/pulls", document))

    async def update(self, number: int, target: str, title: str, body: str) -> Request:
        document: dict[str, Any] = {"title": title, "body": body, "base": target}
        return self._request(await self.api.send("PATCH", f"{self.at}/pulls/{number}", document))

    async def close(self, number: int) -> None:
        await self.api.send("PATCH", f"{self.at}/pulls/{number}", {"state": "closed"})

    async def request(self, number: int) -> Request | None:
        pull = await self.api.fresh(f"{self.at}/pulls/{number}")
        return None if pull is None else self._request(pull, number)

    def _request(self, pull: Any, expected: int | None = None) -> Request:
        merged = at(pull, "merged") is True or at(pull, "merged_at") is not None
        state = text(pull, "state")
        if state not in ("open", "closed"):
            raise ForgeFailed("the forge does not say whether the request is open")
        mergeable = at(pull, "mergeable")
        actual = number(pull, "number")
        if expected not in (None, actual):
            raise ForgeFailed("the forge answers with another request")
        return Request(
            number=actual,
            url=link(pull, "html_url"),
            branch=text(pull, "head", "ref"),
            head=commit(pull, "head", "sha"),
            target=text(pull, "base", "ref"),
            state=RequestState.MERGED if merged else RequestState(state),
            body=text(pull, "body", most=LONGEST_BODY * 4),
            mergeable=mergeable if isinstance(mergeable, bool) else None,
            merged_commit=commit(pull, "merge_commit_sha") if merged else None,
            merged_by=text(pull, "merged_by", "login"),
        )

    async def merge(
        self, number: int, head: str, method: MergeMethod, title: str, body: str
    ) -> None:
        document = {
            "sha": head,
            "merge_method": "squash" if method is MergeMethod.SQUASH else "merge",
            "commit_title": title,
            "commit_message": body,
        }
        await self.api.send("PUT", f"{self.at}/pulls/{number}/merge", document)

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

    def _review(self, review: Any) -> Said | None:
        verdict = self.verdicts.get(text(review, "state"))
        body = text(review, "body", most=LONGEST_BODY)
        if verdict is None or (verdict is Verdict.NONE and not body.strip()):
            return None  # not submitted, or only the container of line comments
        return Said(
            id=f"review-{number(review, 'id')}",
            by=person(review, "user"),
            body=body,
            verdict=verdict,
            commit=maybe_commit(review, "commit_id"),
        )

    def _placed(self, note: Any) -> Said:
        line = maybe_number(note, "line") or maybe_number(note, "original_line")
        outdated = at(note, "line") is None
        return Said(
            id=f"placed-{number(note, 'id')}",
            by=person(note, "user"),
            body=text(note, "body", most=LONGEST_BODY),
            commit=maybe_commit(note, "original_commit_id" if outdated else "commit_id"),
            path=text(note, "path", most=1000) or None,
            line=line,
            old=text(note, "side") == "LEFT",
        )

    async def comments(self, number: int, *, issue: bool) -> Sequence[Said]:
        del issue  # a request is one of the issues
        return [
            comment(note)
            for note in await self.api.pages(f"{self.at}/issues/{number}/comments", **self.per_page)
        ]

    async def comment(self, number: int, body: str, *, issue: bool) -> str:
        del issue
        note = await self.api.send("POST", f"{self.at}/issues/{number}/comments", {"body": body})
        return comment(note).id

    async def may_push(self, person: Person) -> bool:
        place = f"{self.at}/collaborators/{quote(person.login, safe='')}/permission"
        return text(await self.api.maybe(place), "permission") in self.pushes

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

    def _run(self, run: Any) -> ForgeCheck:
        state = CheckState.PENDING
        if text(run, "status") == "completed":
            good = text(run, "conclusion") in ("success", "neutral", "skipped")
            state = CheckState.PASSED if good else CheckState.FAILED
        id_ = number(run, "id")
        texts = [text(run, "output", key, most=4000) for key in ("title", "summary", "text")]
        # Only jobs of GitHub Actions have logs, under the same number.
        own = text(run, "app", "slug") == "github-actions"
        return ForgeCheck(
            id=f"run-{id_}",
            name=text(run, "name"),
            state=state,
            url=link(run, "html_url") or link(run, "details_url"),
            summary="\n".join(filter(None, texts)),
            log=f"{self.at}/actions/jobs/{id_}/logs" if own else "",
        )

    async def log(self, check: ForgeCheck) -> str:
        return await self.api.tail(check.log) if check.log else ""

    # ── issues ──────────────────────────────────────────────────────────────────────────────

    async def issues(self, label: str) -> Sequence[Issue]:
        query: dict[str, Any] = {"labels": label, "state": "open", **self.per_page}
        issues = await self.api.pages(f"{self.at}/issues", **query)
        return [issue(entry) for entry in issues if at(entry, "pull_request") is None]

    async def labelled_by(self, number: int, label: str) -> str | None:
        """Return the person who set a label that is present now."""
        by = None
        for event in await self.api.pages(f"{self.at}/issues/{number}/events", **self.per_page):
            if text(event, "label", "name").lower() == label.lower():
                if text(event, "event") == "labeled":
                    by = text(event, "actor", "login")
                elif text(event, "event") == "unlabeled":
                    by = None
        return by or None


def _owner_and_name(project: str) -> tuple[str, str]:
    owner, _, name = project.rpartition("/")
    return owner.rpartition("/")[2], name


def commit(value: Any, *path: str) -> str:
    try:
        return commit_id(text(value, *path))
    except ValueError:
        raise ForgeFailed(f"the forge names no commit as {path[-1]}") from None


def maybe_commit(value: Any, *path: str) -> str | None:
    return commit(value, *path) if at(value, *path) else None


def person(value: Any, *path: str) -> Person:
    """Return the account of a person; removed accounts become `nobody`."""
    account = at(value, *path)
    login = text(account, "login") or text(account, "username")
    return Person(login or "nobody", amount(account, "id"))


def comment(note: Any) -> Said:
    return Said(
        id=f"comment-{number(note, 'id')}",
        by=person(note, "user"),
        body=text(note, "body", most=LONGEST_BODY),
    )


def issue(entry: Any) -> Issue:
    return Issue(
        number=number(entry, "number"),
        url=link(entry, "html_url"),
        title=text(entry, "title", most=1000),
        body=text(entry, "body", most=LONGEST_BODY),
        by=person(entry, "user"),
        updated=text(entry, "updated_at"),
    )


def status_check(status: Any) -> ForgeCheck:
    """Parse a commit status of another program, in the format of GitHub and Gitea."""
    state = text(status, "state") or text(status, "status")
    known = {"success": CheckState.PASSED, "warning": CheckState.PASSED}
    known |= {"pending": CheckState.PENDING}
    return ForgeCheck(
        id=f"status-{number(status, 'id')}",
        name=text(status, "context"),
        state=known.get(state, CheckState.FAILED),
        url=link(status, "target_url"),
        summary=text(status, "description", most=1000),
    )
