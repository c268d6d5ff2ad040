"""Gitea and Forgejo, by their API (v1): overrides where it differs from GitHub's."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from remit.forges.api import amount, at, many, number, text
from remit.forges.github import LONGEST_BODY, GitHub, comment, maybe_commit, person, status_check
from remit.forges.github import issue as issue_of
from remit.model.connections.change import MergeMethod
from remit.model.connections.forge import ForgeCheck, Issue, Request, Said, Verdict


class Gitea(GitHub):
    per_page: ClassVar[Mapping[str, Any]] = {"limit": 50}
    verdicts: ClassVar[Mapping[str, Verdict]] = {
        "APPROVED": Verdict.APPROVED,
        "REQUEST_CHANGES": Verdict.CHANGES,
        "COMMENT": Verdict.NONE,
    }
    pushes: ClassVar[frozenset[str]] = frozenset({"owner", "admin", "write"})
    names_source: ClassVar[bool] = False

    @staticmethod
    def headers(token: str) -> dict[str, str]:
        return {"Authorization": f"token {token}"}

    async def find(self, branch: str) -> Sequence[Request]:
        query: dict[str, Any] = {"state": "all", "sort": "recentupdate", **self.per_page}
        return self._of_branch(await self.api.pages(f"{self.at}/pulls", **query), branch)

    async def merge(
        self, number: int, head: str, method: MergeMethod, title: str, body: str
    ) -> None:
        ways = {MergeMethod.FAST_FORWARD: "fast-forward-only", MergeMethod.SQUASH: "squash"}
        document: dict[str, Any] = {"Do": ways.get(method, "merge"), "head_commit_id": head}
        if method is not MergeMethod.FAST_FORWARD:
            document |= {"MergeTitleField": title, "MergeMessageField": body}
        await self.api.send("POST", f"{self.at}/pulls/{number}/merge", document)

    async def said(self, number: int) -> Sequence[Said]:
        place = f"{self.at}/pulls/{number}/reviews"
        reviews = await self._new(place)
        comments = [*filter(None, map(self._review, reviews))]
        for review in reviews:
            if text(review, "state") in self.verdicts and amount(review, "comments_count"):
                of_review = await self.api.get(f"{place}/{_id(review)}/comments")
                comments += map(self._of_line, many(of_review))
        talk = await self._new(f"{self.at}/issues/{number}/comments")
        return [*comments, *map(comment, talk)]

    def _of_line(self, note: Any) -> Said:
        # The line in the new version of the file, or else in the old one.
        line, old = _line(note, "position"), _line(note, "original_position")
        return Said(
            id=f"placed-{_id(note)}",
            by=person(note, "user"),
            body=text(note, "body", most=LONGEST_BODY),
            commit=maybe_commit(note, "commit_id"),
            path=text(note, "path", most=1000) or None,
            line=line or old,
            old=line is None and old is not None,
        )

    async def checks(self, head: str) -> Sequence[ForgeCheck] | None:
        answer = await self.api.fresh(f"{self.at}/commits/{head}/status")
        if answer is None:
            return None
        return [status_check(status) for status in many(at(answer, "statuses") or [])]

    async def issues(self, label: str) -> Sequence[Issue]:
        query: dict[str, Any] = {
            "labels": label,
            "state": "open",
            "type": "issues",
            **self.per_page,
        }
        return [issue_of(entry) for entry in await self.api.pages(f"{self.at}/issues", **query)]

    async def labelled_by(self, number: int, label: str) -> str | None:
        by = None
        for event in await self.api.pages(f"{self.at}/issues/{number}/timeline", **self.per_page):
            if (
                text(event, "type") == "label"
                and text(event, "label", "name").lower() == label.lower()
            ):
                # The event of a removed label has an empty body.
                by = text(event, "user", "login") if text(event, "body") else None
        return by or None


def _id(entry: Any) -> int:
    return number(entry, "id")


def _line(note: Any, name: str) -> int | None:
    """Return a line number; None for zero."""
    line = at(note, name)
    return None if not line else number(note, name)
