"""GitLab, by its REST API (v4)."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from remit.forges.api import Api, ForgeFailed, amount, at, link, many, maybe_number, number, text
from remit.forges.github import LONGEST_BODY, commit, maybe_commit, person
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
)

_STATES = {"opened": RequestState.OPEN, "locked": RequestState.OPEN}
_STATES |= {"merged": RequestState.MERGED, "closed": RequestState.CLOSED}
_CHECKS = {"success": CheckState.PASSED, "skipped": CheckState.PASSED}
_CHECKS |= {"failed": CheckState.FAILED, "canceled": CheckState.FAILED}
#: The lowest role that may push.
_DEVELOPER = 30
_PAGE: dict[str, Any] = {"per_page": 100}


class GitLab:
    def __init__(self, api: Api, project: str) -> None:
        self.api = api
        self.at = f"/projects/{quote(project, safe='')}"

    @staticmethod
    def headers(token: str) -> dict[str, str]:
        return {"PRIVATE-TOKEN": token}

    async def probe(self) -> str:
        return text(await self.api.get(self.at), "path_with_namespace")

    # ── the request ─────────────────────────────────────────────────────────────────────────

    async def find(self, branch: str) -> Sequence[Request]:
        asked: dict[str, Any] = {"source_branch": branch, "state": "all", **_PAGE}
        found = many(await self.api.get(f"{self.at}/merge_requests", **asked))
        ours = [
            one
            for one in found
            if text(one, "source_branch") == branch
            and at(one, "source_project_id") == at(one, "target_project_id")
        ]
        return sorted(map(_request, ours), key=lambda one: -one.number)

    async def open(self, branch: str, target: str, title: str, body: str) -> Request:
        asked: dict[str, Any] = {"source_branch": branch, "target_branch": target}
        asked |= {"title": title, "description": body}
        return _request(await self.api.send("POST", f"{self.at}/merge_requests", asked))

    async def update(self, number: int, target: str, title: str, body: str) -> Request:
        asked: dict[str, Any] = {"title": title, "description": body, "target_branch": target}
        return _request(await self.api.send("PUT", self._place(number), asked))

    async def close(self, number: int) -> None:
        await self.api.send("PUT", self._place(number), {"state_event": "close"})

    async def request(self, number: int) -> Request | None:
        found = await self.api.fresh(self._place(number))
        if found is not None and at(found, "iid") != number:
            raise ForgeFailed("the forge answers with another request")
        return None if found is None else _request(found)

    async def merge(
        self, number: int, head: str, method: MergeMethod, title: str, body: str
    ) -> None:
        message = f"{title}\n\n{body}".strip()
        squash = method is MergeMethod.SQUASH
        asked: dict[str, Any] = {
            "sha": head,
            "squash": squash,
            "should_remove_source_branch": False,
        }
        asked["squash_commit_message" if squash else "merge_commit_message"] = message
        await self.api.send("PUT", f"{self._place(number)}/merge", asked)

    def _place(self, number: int) -> str:
        return f"{self.at}/merge_requests/{number}"

    # ── comments ────────────────────────────────────────────────────────────────────────────

    async def said(self, number: int) -> Sequence[Said]:
        verdicts = {"approved": Verdict.APPROVED, "requested_changes": Verdict.CHANGES}
        found = []
        for one in await self.api.pages(f"{self._place(number)}/reviewers", **_PAGE):
            if (verdict := verdicts.get(text(one, "state"))) is not None:
                by = person(one, "user")
                # Verdicts have no id, so their time distinguishes them.
                at_ = text(one, "updated_at") or text(one, "created_at")
                found.append(Said(f"review-{by.id}-{verdict.name}-{at_}", by, "", verdict))
        return [*found, *await self._notes(self._place(number), known=True)]

    async def comments(self, number: int, *, issue: bool) -> Sequence[Said]:
        return await self._notes(f"{self.at}/issues/{number}" if issue else self._place(number))

    async def _notes(self, place: str, *, known: bool = False) -> Sequence[Said]:
        threads = await self.api.pages(f"{place}/discussions", known=known, **_PAGE)
        notes = [note for one in threads for note in many(at(one, "notes") or [])]
        # GitLab's own notes about labels and pushes are left out.
        return [_note(one) for one in notes if at(one, "system") is not True]

    async def comment(self, number: int, body: str, *, issue: bool) -> str:
        place = f"{self.at}/issues/{number}" if issue else self._place(number)
        return _note(await self.api.send("POST", f"{place}/notes", {"body": body})).id

    async def may_push(self, person: Person) -> bool:
        try:
            found = await self.api.get(f"{self.at}/members/all/{person.id}")
        except ForgeFailed as failed:
            if failed.status == 404:
                return False
            raise
        return amount(found, "access_level") >= _DEVELOPER

    # ── checks ──────────────────────────────────────────────────────────────────────────────

    async def checks(self, head: str) -> Sequence[ForgeCheck] | None:
        place = f"{self.at}/repository/commits/{head}/statuses"
        found = await self.api.fresh(place, **_PAGE)
        return None if found is None else [self._check(one) for one in many(found)]

    def _check(self, one: Any) -> ForgeCheck:
        state = _CHECKS.get(text(one, "status"), CheckState.PENDING)
        if state is CheckState.FAILED and at(one, "allow_failure") is True:
            state = CheckState.PASSED
        id_ = number(one, "id")
        return ForgeCheck(
            id=f"job-{id_}",
            name=text(one, "name"),
            state=state,
            url=link(one, "target_url"),
            summary=text(one, "description", most=1000),
            log=f"{self.at}/jobs/{id_}/trace",
        )

    async def log(self, check: ForgeCheck) -> str:
        try:
            return await self.api.tail(check.log)
        except ForgeFailed as failed:
            if failed.status == 404:
                return ""  # a check of another program, which is no job
            raise

    # ── issues ──────────────────────────────────────────────────────────────────────────────

    async def issues(self, label: str) -> Sequence[Issue]:
        asked: dict[str, Any] = {"labels": label, "state": "opened", **_PAGE}
        found = await self.api.pages(f"{self.at}/issues", **asked)
        return [
            Issue(
                number=number(one, "iid"),
                url=link(one, "web_url"),
                title=text(one, "title", most=1000),
                body=text(one, "description", most=LONGEST_BODY),
                by=person(one, "author"),
                updated=text(one, "updated_at"),
            )
            for one in found
        ]

    async def labelled_by(self, number: int, label: str) -> str | None:
        by = None
        place = f"{self.at}/issues/{number}/resource_label_events"
        for one in await self.api.pages(place, **_PAGE):
            if text(one, "label", "name").lower() == label.lower():
                by = text(one, "user", "username") if text(one, "action") == "add" else None
        return by or None


def _request(one: Any) -> Request:
    state = _STATES.get(text(one, "state"))
    if state is None:
        raise ForgeFailed("the forge does not say whether the request is open")
    status = text(one, "detailed_merge_status")
    conflicts = at(one, "has_conflicts") is True or status == "conflict"
    merged = None
    if state is RequestState.MERGED:
        merged = maybe_commit(one, "merge_commit_sha") or maybe_commit(one, "squash_commit_sha")
        merged = merged or commit(one, "sha")
    return Request(
        number=number(one, "iid"),
        url=link(one, "web_url"),
        branch=text(one, "source_branch"),
        head=commit(one, "sha"),
        target=text(one, "target_branch"),
        state=state,
        body=text(one, "description", most=LONGEST_BODY * 4),
        # An unchecked request may be mergeable; only conflicts are reported to the author.
        mergeable=False if conflicts else True if status == "mergeable" else None,
        merged_commit=merged,
        merged_by=text(one, "merge_user", "username") or text(one, "merged_by", "username"),
    )


def _note(one: Any) -> Said:
    new, old = maybe_number(one, "position", "new_line"), maybe_number(one, "position", "old_line")
    side = "new_path" if new is not None else "old_path"
    return Said(
        id=f"comment-{number(one, 'id')}",
        by=person(one, "author"),
        body=text(one, "body", most=LONGEST_BODY),
        commit=maybe_commit(one, "position", "head_sha"),
        path=text(one, "position", side, most=1000) or None,
        line=new if new is not None else old,
        old=new is None and old is not None,
    )
