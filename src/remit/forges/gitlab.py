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
    def __init__(self, api: Api, project: str, source: str) -> None:
        """`source` is the project with the branches: the project itself, or a fork of it."""
        self.api = api
        self.at = f"/projects/{quote(project, safe='')}"
        self.source_at = f"/projects/{quote(source, safe='')}"
        self.forked = source.lower() != project.lower()

    @staticmethod
    def headers(token: str) -> dict[str, str]:
        return {"PRIVATE-TOKEN": token}

    async def probe(self) -> str:
        return text(await self.api.get(self.at), "path_with_namespace")

    # ── the request ─────────────────────────────────────────────────────────────────────────

    async def find(self, branch: str) -> Sequence[Request]:
        query: dict[str, Any] = {"source_branch": branch, "state": "all", **_PAGE}
        source = number(await self.api.get(self.source_at), "id") if self.forked else None
        requests = many(await self.api.get(f"{self.at}/merge_requests", **query))
        ours = [
            request
            for request in requests
            if text(request, "source_branch") == branch
            and at(request, "source_project_id") == (source or at(request, "target_project_id"))
        ]
        return sorted(map(_request, ours), key=lambda request: -request.number)

    async def open(self, branch: str, target: str, title: str, body: str) -> Request:
        document: dict[str, Any] = {"source_branch": branch, "target_branch": target}
        document |= {"title": title, "description": body}
        if self.forked:
            # A request is made in the project that it comes from.
            document["target_project_id"] = number(await self.api.get(self.at), "id")
        return _request(await self.api.send("POST", f"{self.source_at}/merge_requests", document))

    async def update(self, number: int, target: str, title: str, body: str) -> Request:
        document: dict[str, Any] = {"title": title, "description": body, "target_branch": target}
        return _request(await self.api.send("PUT", self._place(number), document))

    async def close(self, number: int) -> None:
        await self.api.send("PUT", self._place(number), {"state_event": "close"})

    async def request(self, number: int) -> Request | None:
        answer = await self.api.fresh(self._place(number))
        if answer is not None and at(answer, "iid") != number:
            raise ForgeFailed("the forge answers with another request")
        return None if answer is None else _request(answer)

    async def merge(
        self, number: int, head: str, method: MergeMethod, title: str, body: str
    ) -> None:
        message = f"{title}\n\n{body}".strip()
        squash = method is MergeMethod.SQUASH
        document: dict[str, Any] = {
            "sha": head,
            "squash": squash,
            "should_remove_source_branch": False,
        }
        document["squash_commit_message" if squash else "merge_commit_message"] = message
        await self.api.send("PUT", f"{self._place(number)}/merge", document)

    def _place(self, number: int) -> str:
        return f"{self.at}/merge_requests/{number}"

    # ── comments ────────────────────────────────────────────────────────────────────────────

    async def said(self, number: int) -> Sequence[Said]:
        verdicts = {"approved": Verdict.APPROVED, "requested_changes": Verdict.CHANGES}
        reviews = []
        for reviewer in await self.api.pages(f"{self._place(number)}/reviewers", **_PAGE):
            if (verdict := verdicts.get(text(reviewer, "state"))) is not None:
                by = person(reviewer, "user")
                # Verdicts have no id, so their time distinguishes them.
                at_ = text(reviewer, "updated_at") or text(reviewer, "created_at")
                reviews.append(Said(f"review-{by.id}-{verdict.name}-{at_}", by, "", verdict))
        return [*reviews, *await self._notes(self._place(number), known=True)]

    async def comments(self, number: int, *, issue: bool) -> Sequence[Said]:
        return await self._notes(f"{self.at}/issues/{number}" if issue else self._place(number))

    async def _notes(self, place: str, *, known: bool = False) -> Sequence[Said]:
        threads = await self.api.pages(f"{place}/discussions", known=known, **_PAGE)
        notes = [note for thread in threads for note in many(at(thread, "notes") or [])]
        # GitLab's own notes about labels and pushes are left out.
        return [_note(note) for note in notes if at(note, "system") is not True]

    async def comment(self, number: int, body: str, *, issue: bool) -> str:
        place = f"{self.at}/issues/{number}" if issue else self._place(number)
        return _note(await self.api.send("POST", f"{place}/notes", {"body": body})).id

    async def may_push(self, person: Person) -> bool:
        member = await self.api.maybe(f"{self.at}/members/all/{person.id}")
        return amount(member, "access_level") >= _DEVELOPER

    # ── checks ──────────────────────────────────────────────────────────────────────────────

    async def checks(self, head: str) -> Sequence[ForgeCheck] | None:
        place = f"{self.at}/repository/commits/{head}/statuses"
        statuses = await self.api.fresh(place, **_PAGE)
        return None if statuses is None else [self._check(status) for status in many(statuses)]

    def _check(self, status: Any) -> ForgeCheck:
        state = _CHECKS.get(text(status, "status"), CheckState.PENDING)
        if state is CheckState.FAILED and at(status, "allow_failure") is True:
            state = CheckState.PASSED
        id_ = number(status, "id")
        return ForgeCheck(
            id=f"job-{id_}",
            name=text(status, "name"),
            state=state,
            url=link(status, "target_url"),
            summary=text(status, "description", most=1000),
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
        query: dict[str, Any] = {"labels": label, "state": "opened", **_PAGE}
        issues = await self.api.pages(f"{self.at}/issues", **query)
        return [
            Issue(
                number=number(entry, "iid"),
                url=link(entry, "web_url"),
                title=text(entry, "title", most=1000),
                body=text(entry, "description", most=LONGEST_BODY),
                by=person(entry, "author"),
                updated=text(entry, "updated_at"),
            )
            for entry in issues
        ]

    async def labelled_by(self, number: int, label: str) -> str | None:
        by = None
        place = f"{self.at}/issues/{number}/resource_label_events"
        for event in await self.api.pages(place, **_PAGE):
            if text(event, "label", "name").lower() == label.lower():
                by = text(event, "user", "username") if text(event, "action") == "add" else None
        return by or None


def _request(request: Any) -> Request:
    state = _STATES.get(text(request, "state"))
    if state is None:
        raise ForgeFailed("the forge does not say whether the request is open")
    status = text(request, "detailed_merge_status")
    conflicts = at(request, "has_conflicts") is True or status == "conflict"
    merged = None
    if state is RequestState.MERGED:
        merged = maybe_commit(request, "merge_commit_sha") or maybe_commit(
            request, "squash_commit_sha"
        )
        merged = merged or commit(request, "sha")
    return Request(
        number=number(request, "iid"),
        url=link(request, "web_url"),
        branch=text(request, "source_branch"),
        head=commit(request, "sha"),
        target=text(request, "target_branch"),
        state=state,
        body=text(request, "description", most=LONGEST_BODY * 4),
        # An unchecked request may be mergeable; only conflicts are reported to the author.
        mergeable=False if conflicts else True if status == "mergeable" else None,
        merged_commit=merged,
        merged_by=text(request, "merge_user", "username") or text(request, "merged_by", "username"),
    )


def _note(note: Any) -> Said:
    new, old = (
        maybe_number(note, "position", "new_line"),
        maybe_number(note, "position", "old_line"),
    )
    side = "new_path" if new is not None else "old_path"
    return Said(
        id=f"comment-{number(note, 'id')}",
        by=person(note, "author"),
        body=text(note, "body", most=LONGEST_BODY),
        commit=maybe_commit(note, "position", "head_sha"),
        path=text(note, "position", side, most=1000) or None,
        line=new if new is not None else old,
        old=new is None and old is not None,
    )
