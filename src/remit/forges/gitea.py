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

    @staticmethod
    def headers(token: str) -> dict[str, str]:
        return {"Authorization": f"token {token}"}

    async def find(self, branch: str) -> Sequence[Request]:
        asked: dict[str, Any] = {"state": "all", "sort": "recentupdate", **self.per_page}
        return self._of_branch(await self.api.pages(f"{self.at}/pulls", **asked), branch)

    async def merge(
        self, number: int, head: str, method: MergeMethod, title: str, body: str
    ) -> None:
        ways = {MergeMethod.FAST_FORWARD: "fast-forward-only", MergeMethod.SQUASH: "squash"}
        asked: dict[str, Any] = {"Do": ways.get(method, "merge"), "head_commit_id": head}
        if method is not MergeMethod.FAST_FORWARD:
            asked |= {"MergeTitleField": title, "MergeMessageField": body}
        await self.api.send("POST", f"{self.at}/pulls/{number}/merge", asked)

    async def said(self, number: int) -> Sequence[Said]:
        place = f"{self.at}/pulls/{number}/reviews"
        reviews = await self._new(place)
        found = [*filter(None, map(self._review, reviews))]
        for one in reviews:
            if text(one, "state") in self.verdicts and amount(one, "comments_count"):
                of_review = await self.api.get(f"{place}/{_id(one)}/comments")
                found += map(self._of_line, many(of_review))
        talk = await self._new(f"{self.at}/issues/{number}/comments")
        return [*found, *map(comment, talk)]

    def _of_line(self, one: Any) -> Said:
        # The line in the new version of the file, or else in the old one.
        line, old = _line(one, "position"), _line(one, "original_position")
        return Said(
            id=f"placed-{_id(one)}",
            by=person(one, "user"),
            body=text(one, "body", most=LONGEST_BODY),
            commit=maybe_commit(one, "commit_id"),
            path=text(one, "path", most=1000) or None,
            line=line or old,
            old=line is None and old is not None,
        )

    async def checks(self, head: str) -> Sequence[ForgeCheck] | None:
        found = await self.api.fresh(f"{self.at}/commits/{head}/status")
        if found is None:
            return None
        return [status_check(one) for one in many(at(found, "statuses") or [])]

    async def issues(self, label: str) -> Sequence[Issue]:
        asked: dict[str, Any] = {
            "labels": label,
            "state": "open",
            "type": "issues",
            **self.per_page,
        }
        return [issue_of(one) for one in await self.api.pages(f"{self.at}/issues", **asked)]

    async def labelled_by(self, number: int, label: str) -> str | None:
        by = None
        for one in await self.api.pages(f"{self.at}/issues/{number}/timeline", **self.per_page):
            if text(one, "type") == "label" and text(one, "label", "name").lower() == label.lower():
                # The event of a removed label has an empty body.
                by = text(one, "user", "login") if text(one, "body") else None
        return by or None


def _id(one: Any) -> int:
    return number(one, "id")


def _line(one: Any, name: str) -> int | None:
    """Return a line number; None for zero."""
    found = at(one, name)
    return None if not found else number(one, name)
