"""Strict stand-ins for the APIs of forges, beside real git over smart HTTP.

Each knows the requests that its documentation has, with their fields and headers, and refuses all
others: `violations` says what was refused so. What the requests do is done to a real repository.
"""

from __future__ import annotations

import hmac
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from tests.git_remote import Site, git, https

TOKEN = "forge-tok3n-of-the-company"
LOG = "step 1\nstep 2\nE   assert 3 == 4\nFAILED tests/test_app.py::test_add\n"
#: Whoever has no account any more.
GHOST = "Ghost"
Answer = tuple[int, Any]
_DIRECT = build_opener(ProxyHandler({}))


@dataclass
class Pull:
    number: int
    branch: str
    target: str
    title: str
    body: str
    state: str = "open"
    merged: str | None = None
    merged_by: str = ""
    #: Whether its branch is one of the fork.
    forked: bool = False


@dataclass
class Talk:
    """A review, a comment about a line, or a comment."""

    id: int
    about: int
    by: str
    body: str
    verdict: str = ""
    path: str | None = None
    line: int | None = None
    commit: str | None = None


@dataclass
class Ticket:
    number: int
    title: str
    body: str
    by: str
    #: Label, who, and whether it was set or taken away.
    labels: list[tuple[str, str, bool]] = field(default_factory=list)


@dataclass
class Forge:
    """What all of them have."""

    bare: Path
    pulls: list[Pull] = field(default_factory=list)
    talk: list[Talk] = field(default_factory=list)
    tickets: list[Ticket] = field(default_factory=list)
    #: By commit: name, whether it is good (None: not yet), and its id.
    checks: dict[str, list[tuple[int, str, bool | None]]] = field(default_factory=dict)
    pushers: set[str] = field(default_factory=lambda: {"remit-bot"})
    people: list[str] = field(default_factory=lambda: ["remit-bot"])
    requests: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    #: Done before an answer: the next one instead, if it returns one.
    before: Callable[[str, str], Answer | None] | None = None
    #: Headers of every answer.
    told: dict[str, str] = field(default_factory=dict)
    counter: int = 100
    base: str = ""
    #: Where a log is sent to.
    logs_at: str = ""
    seen_headers: list[dict[str, str]] = field(default_factory=list)
    #: Some say with no answer how to ask whether it is still so.
    tags: bool = True
    #: Called with "before" and "after" of each request, git's included.
    watch: Callable[[str, str], None] = lambda *_: None

    #: Where webhooks go, and what they are signed with.
    hook: tuple[str, str] | None = None
    #: What did not arrive is sent again, and not lost.
    insistent: bool = False
    #: How often that was.
    sent_again: int = 0

    #: A fork of the repository, with the same name and another owner.
    fork: Path | None = None
    certificate: Path = Path()
    #: What serves its repositories.
    git: Site | None = None
    kind = ""
    prefix = ""

    # ── what tests do at the forge ──────────────────────────────────────────────────────────

    def next_id(self) -> int:
        self.counter += 1
        return self.counter

    def id_of(self, login: str) -> int:
        if login not in self.people:
            self.people.append(login)
        return self.people.index(login) + 1

    def say(self, number: int, by: str, body: str, **more: Any) -> Talk:
        self.talk.append(Talk(self.next_id(), number, by, body, **more))
        self.call()
        return self.talk[-1]

    def check(self, commit: str, name: str, good: bool | None) -> int:
        known = self.checks.setdefault(commit, [])
        before = [check for check in known if check[1] == name]
        id_ = before[0][0] if before else self.next_id()
        self.checks[commit] = [check for check in known if check[1] != name] + [(id_, name, good)]
        self.call()
        return id_

    def ticket(self, title: str, by: str, label: str, labelled_by: str) -> Ticket:
        ticket = Ticket(self.next_id(), title, "Please **mend** it.", by)
        ticket.labels.append((label, labelled_by, True))
        self.tickets.append(ticket)
        self.call()
        return ticket

    def call(self) -> None:
        """Say by a webhook that something happened."""
        if self.hook is not None:
            threading.Thread(target=self._call, args=self.hook, daemon=True).start()

    def _call(self, to: str, secret: str) -> None:
        body = json.dumps({"action": "happened", "number": self.next_id()}).encode()
        headers = {"Content-Type": "application/json", **self.signed(secret, body)}
        called = Request(to, body, headers)  # noqa: S310  an address of the test's own
        while not self._arrived(called) and self.insistent:
            self.sent_again += 1
            time.sleep(0.2)

    def _arrived(self, called: Request) -> bool:
        try:
            _DIRECT.open(called, timeout=10).close()
        except (OSError, HTTPException):
            return False
        return True

    def signed(self, secret: str, body: bytes) -> dict[str, str]:
        """As each documents it."""
        raise NotImplementedError

    def head(self, branch: str) -> str:
        return git(self.bare, "rev-parse", f"refs/heads/{branch}")

    def tip(self, pull: Pull) -> str:
        """The head of a request, which the forge has also if it comes from the fork."""
        if not pull.forked:
            return self.head(pull.branch)
        there = f"+refs/heads/{pull.branch}:refs/pull/{pull.number}/head"
        git(self.bare, "fetch", "--quiet", str(self.fork), there)
        return git(self.bare, "rev-parse", f"refs/pull/{pull.number}/head")

    def pull(self, number: int) -> Pull:
        return next(pull for pull in self.pulls if pull.number == number)

    def merge(self, pull: Pull, by: str, *, squash: bool = False) -> str | None:
        """As the forge does it; None where both disagree."""
        tip, head = self.head(pull.target), self.tip(pull)
        try:
            tree = git(self.bare, "merge-tree", "--write-tree", tip, head)
        except AssertionError:
            return None
        parents = ["-p", tip] if squash else ["-p", tip, "-p", head]
        commit = git(self.bare, "commit-tree", *parents, "-m", pull.title, tree)
        git(self.bare, "update-ref", f"refs/heads/{pull.target}", commit, tip)
        pull.state, pull.merged, pull.merged_by = "closed", commit, by
        self.call()
        return commit

    def mergeable(self, pull: Pull) -> bool:
        try:
            git(
                *(self.bare, "merge-tree", "--write-tree"),
                *(self.head(pull.target), self.tip(pull)),
            )
        except AssertionError:
            return False
        return True

    def open_pull(
        self, branch: str, target: str, title: str, body: str, *, forked: bool = False
    ) -> Pull | None:
        if any(
            (pull.branch, pull.forked, pull.state) == (branch, forked, "open")
            for pull in self.pulls
        ):
            return None
        self.pulls.append(Pull(self.next_id(), branch, target, title, body, forked=forked))
        self.call()
        return self.pulls[-1]

    # ── requests ────────────────────────────────────────────────────────────────────────────

    def answer(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        path = urlsplit(target).path
        if path.startswith("/logs/"):
            if "authorization" in {name.lower() for name in headers}:
                self.violations.append("a token went with the redirect")
            return 200, {}, LOG.encode()
        self.requests.append(f"{method} {path.removeprefix(self.prefix)}")
        self.seen_headers.append({name.lower(): value for name, value in headers.items()})
        status, answer = self._answer(method, target, headers, body)
        more = dict(self.told)
        if status in (301, 302):
            more["Location"] = answer
            answer = ""
        content = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        if status == 200 and method == "GET" and self.tags:
            more["ETag"] = f'"{abs(hash(content))}"'
            if headers.get("If-None-Match") == more["ETag"]:
                return 304, more, b""
        return status, more, content

    def _answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        parts = urlsplit(target)
        path = parts.path.removeprefix(self.prefix)
        if not self.authorised(headers):
            return 401, {"message": "Bad credentials"}
        if not headers.get("User-Agent"):
            return 403, self._refuse("no User-Agent")
        if self.before is not None and (instead := self.before(method, path)) is not None:
            return instead
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        for (verb, pattern), (fields, parameters, act) in self.routes().items():
            match = re.fullmatch(pattern, path)
            if verb != method or match is None:
                continue
            document: dict[str, Any] = {}
            if body:
                if headers.get("Content-Type") != "application/json":
                    return 415, self._refuse(f"{path}: no JSON")
                document = json.loads(body)
            if set(document) - set(fields):
                return 422, self._refuse(f"{path}: {sorted(set(document) - set(fields))}")
            if set(query) - set(parameters):
                return 422, self._refuse(f"{path}: {sorted(set(query) - set(parameters))}")
            named = {key: unquote(value) for key, value in match.groupdict().items()}
            answer: Answer = act({**named, **query, **document})
            return answer
        return 404, self._refuse(f"{method} {path}")

    def _refuse(self, what: str) -> dict[str, str]:
        self.violations.append(what)
        return {"message": f"refused: {what}"}

    def authorised(self, headers: Mapping[str, str]) -> bool:
        raise NotImplementedError

    def routes(self) -> dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...], Any]]:
        raise NotImplementedError


PAGED = ("per_page", "page")


class GitHubSite(Forge):
    kind, prefix = "github", "/api/v3"
    opening: ClassVar[tuple[str, ...]] = ("title", "head", "base", "body", "head_repo")
    paged = PAGED
    states: ClassVar = {"approve": "APPROVED", "changes": "CHANGES_REQUESTED", "": "COMMENTED"}

    def signed(self, secret: str, body: bytes) -> dict[str, str]:
        digest = hmac.new(secret.encode(), body, "sha256").hexdigest()
        return {"X-GitHub-Event": "ping", "X-Hub-Signature-256": f"sha256={digest}"}

    def authorised(self, headers: Mapping[str, str]) -> bool:
        if headers.get("X-GitHub-Api-Version") != "2022-11-28":
            self.violations.append("no version")
        if headers.get("Accept") != "application/vnd.github+json":
            self.violations.append("no Accept")
        return headers.get("Authorization") == f"Bearer {TOKEN}"

    def routes(self) -> dict[Any, Any]:
        at = "/repos/acme/site"
        n, sha = "(?P<number>[0-9]+)", "(?P<sha>[0-9a-f]{40})"
        list_ = ("head", "state", *self.paged)
        return {
            ("GET", at): ((), (), self._project),
            ("GET", f"{at}/pulls"): ((), list_, self._pulls),
            ("POST", f"{at}/pulls"): (self.opening, (), self._open),
            ("GET", f"{at}/pulls/{n}"): ((), (), self._one),
            ("PATCH", f"{at}/pulls/{n}"): (("title", "body", "base", "state"), (), self._update),
            ("GET", f"{at}/pulls/{n}/reviews"): ((), self.paged, self._reviews),
            ("GET", f"{at}/pulls/{n}/comments"): ((), self.paged, self._placed),
            ("GET", f"{at}/issues/{n}/comments"): ((), (*self.paged, "since"), self._comments),
            ("POST", f"{at}/issues/{n}/comments"): (("body",), (), self._comment),
            ("GET", f"{at}/collaborators/(?P<login>[^/]+)/permission"): ((), (), self._may),
            ("GET", f"{at}/commits/{sha}/check-runs"): ((), self.paged, self._runs),
            ("GET", f"{at}/commits/{sha}/status"): ((), self.paged, self._status),
            ("GET", f"{at}/actions/jobs/{n}/logs"): ((), (), self._log),
            ("PUT", f"{at}/pulls/{n}/merge"): (
                ("sha", "merge_method", "commit_title", "commit_message"),
                (),
                self._merge,
            ),
            ("GET", f"{at}/issues"): ((), ("labels", "state", *self.paged), self._issues),
            ("GET", f"{at}/issues/{n}/events"): ((), self.paged, self._events),
        }

    def _project(self, _: dict[str, Any]) -> Answer:
        return 200, {"id": 1, "full_name": "acme/site", "permissions": {"push": True}}

    def shown(self, pull: Pull) -> dict[str, Any]:
        repo = {"full_name": "acme/site"}
        source = {"full_name": "sandbox/site"} if pull.forked else repo
        return {
            "id": 7000 + pull.number,
            "number": pull.number,
            "html_url": f"{self.base}/acme/site/pull/{pull.number}",
            "state": pull.state,
            "title": pull.title,
            "body": pull.body,
            "merged": pull.merged is not None,
            "merged_at": "2026-01-01T00:00:00Z" if pull.merged else None,
            "merge_commit_sha": pull.merged,
            "merged_by": {"login": pull.merged_by, "id": 1} if pull.merged else None,
            "mergeable": None if pull.state != "open" else self.mergeable(pull),
            "head": {"ref": pull.branch, "sha": self.tip(pull), "repo": source},
            "base": {"ref": pull.target, "sha": self.head(pull.target), "repo": repo},
        }

    def _pulls(self, request: dict[str, Any]) -> Answer:
        owner, _, branch = request["head"].partition(":")
        wanted = (branch, owner == "sandbox")
        return 200, [
            self.shown(pull) for pull in self.pulls if (pull.branch, pull.forked) == wanted
        ]

    def _open(self, request: dict[str, Any]) -> Answer:
        owner, _, branch = request["head"].rpartition(":")
        forked = owner == "sandbox"
        texts = (branch, request["base"], request["title"], request["body"])
        pull = self.open_pull(*texts, forked=forked)
        if pull is None:
            return 422, {"message": "Validation Failed", "errors": ["already exists"]}
        return 201, self.shown(pull)

    def _one(self, request: dict[str, Any]) -> Answer:
        return 200, self.shown(self.pull(int(request["number"])))

    def _update(self, request: dict[str, Any]) -> Answer:
        pull = self.pull(int(request["number"]))
        pull.title, pull.body = request.get("title", pull.title), request.get("body", pull.body)
        pull.target = request.get("base", pull.target)
        if "state" in request and pull.merged is None:
            pull.state = request["state"]
        return 200, self.shown(pull)

    def _user(self, login: str) -> dict[str, Any]:
        return {"login": login, "id": self.id_of(login)}

    def _reviews(self, request: dict[str, Any]) -> Answer:
        return 200, [
            {
                "id": talk.id,
                "user": self._user(talk.by),
                "body": talk.body,
                "state": self.states[talk.verdict],
                "commit_id": talk.commit,
                "comments_count": 0,
            }
            for talk in self._of(request)
            if talk.verdict
        ]

    def _of(self, request: dict[str, Any]) -> list[Talk]:
        return [talk for talk in self.talk if talk.about == int(request["number"])]

    def _placed(self, request: dict[str, Any]) -> Answer:
        return 200, [
            {
                "id": talk.id,
                "user": self._user(talk.by),
                "body": talk.body,
                "path": talk.path,
                "line": talk.line,
                "original_line": talk.line,
                "side": "RIGHT",
                "commit_id": talk.commit,
                "original_commit_id": talk.commit,
            }
            for talk in self._of(request)
            if talk.path
        ]

    def _comments(self, request: dict[str, Any]) -> Answer:
        return 200, [
            {"id": talk.id, "user": self._user(talk.by), "body": talk.body}
            for talk in self._of(request)
            if not talk.path and not talk.verdict
        ]

    def _comment(self, request: dict[str, Any]) -> Answer:
        talk = self.say(int(request["number"]), "remit-bot", request["body"])
        return 201, {"id": talk.id, "user": self._user(talk.by), "body": talk.body}

    def _may(self, request: dict[str, Any]) -> Answer:
        level = "write" if request["login"] in self.pushers else "read"
        return 200, {"permission": level, "user": self._user(request["login"])}

    def _runs(self, request: dict[str, Any]) -> Answer:
        runs = [
            {
                "id": id_,
                "name": name,
                "status": "in_progress" if good is None else "completed",
                "conclusion": None if good is None else "success" if good else "failure",
                "html_url": f"{self.base}/runs/{id_}",
                "output": {"title": None, "summary": None, "text": None},
                "app": {"slug": "github-actions"},
            }
            for id_, name, good in self.checks.get(request["sha"], [])
        ]
        return 200, {"total_count": len(runs), "check_runs": runs}

    def _status(self, request: dict[str, Any]) -> Answer:
        return 200, {"state": "pending", "sha": request["sha"], "statuses": []}

    def _log(self, request: dict[str, Any]) -> Answer:
        return 302, f"{self.logs_at}/logs/{request['number']}"

    def _merge(self, request: dict[str, Any]) -> Answer:
        pull = self.pull(int(request["number"]))
        # Whoever names none has whatever is there taken in.
        if request.get("sha") not in (None, self.tip(pull)):
            return 409, {"message": "Head branch was modified."}
        if request.get("merge_method") not in ("merge", "squash", "rebase"):
            return 422, self._refuse("merge_method")
        done = pull.state == "open" and self.merge(
            pull, "remit-bot", squash=request["merge_method"] == "squash"
        )
        if not done:
            return 405, {"message": "Pull Request is not mergeable"}
        return 200, {"sha": done, "merged": True, "message": "merged"}

    def _issues(self, request: dict[str, Any]) -> Answer:
        return 200, [
            {
                "number": ticket.number,
                "html_url": f"{self.base}/acme/site/issues/{ticket.number}",
                "title": ticket.title,
                "body": ticket.body,
                "user": self._user(ticket.by),
                "updated_at": f"2026-01-01T00:00:{len(ticket.labels):02}Z",
            }
            for ticket in self.tickets
            if any(label == request["labels"] for label, _, _ in ticket.labels)
        ]

    def _ticket(self, request: dict[str, Any]) -> Ticket:
        return next(ticket for ticket in self.tickets if ticket.number == int(request["number"]))

    def _events(self, request: dict[str, Any]) -> Answer:
        return 200, [
            {
                "id": place,
                "event": "labeled" if is_set else "unlabeled",
                "actor": self._user(by),
                "label": {"name": label},
            }
            for place, (label, by, is_set) in enumerate(self._ticket(request).labels)
        ]


class GiteaSite(GitHubSite):
    kind, prefix = "gitea", "/api/v1"
    opening: ClassVar[tuple[str, ...]] = ("title", "head", "base", "body")
    paged = ("limit", "page")
    states: ClassVar = {"approve": "APPROVED", "changes": "REQUEST_CHANGES", "": "COMMENT"}

    def signed(self, secret: str, body: bytes) -> dict[str, str]:
        digest = hmac.new(secret.encode(), body, "sha256").hexdigest()
        return {"X-Gitea-Event": "push", "X-Gitea-Signature": digest}

    def authorised(self, headers: Mapping[str, str]) -> bool:
        return headers.get("Authorization") == f"token {TOKEN}"

    def routes(self) -> dict[Any, Any]:
        at, n = "/repos/acme/site", "(?P<number>[0-9]+)"
        routes = super().routes()
        for gone in ("comments", "merge"):
            routes = {key: way for key, way in routes.items() if key[1] != f"{at}/pulls/{n}/{gone}"}
        routes = {
            key: way for key, way in routes.items() if not key[1].endswith(("check-runs", "logs"))
        }
        sorted_ = ("state", "sort", *self.paged)
        labelled = ("labels", "state", "type", *self.paged)
        return routes | {
            ("GET", f"{at}/pulls"): ((), sorted_, self._all),
            ("GET", f"{at}/pulls/{n}/reviews/(?P<review>[0-9]+)/comments"): ((), (), self._lines),
            ("POST", f"{at}/pulls/{n}/merge"): (
                ("Do", "head_commit_id", "MergeTitleField", "MergeMessageField"),
                (),
                self._take,
            ),
            ("GET", f"{at}/issues"): ((), labelled, self._issues),
            ("GET", f"{at}/issues/{n}/timeline"): ((), self.paged, self._timeline),
        }

    def _all(self, _: dict[str, Any]) -> Answer:
        return 200, [self.shown(pull) for pull in self.pulls]

    def _user(self, login: str) -> dict[str, Any]:
        return {**super()._user(login), "id": -1} if login == GHOST else super()._user(login)

    def _reviews(self, request: dict[str, Any]) -> Answer:
        lined = any(talk.path for talk in self._of(request))
        status, reviews = super()._reviews(request)
        return status, [{**review, "comments_count": int(lined)} for review in reviews]

    def _lines(self, request: dict[str, Any]) -> Answer:
        return 200, [
            {
                "id": talk.id,
                "user": self._user(talk.by),
                "body": talk.body,
                "path": talk.path,
                "position": talk.line,
                "original_position": 0,
                "commit_id": talk.commit,
            }
            for talk in self._of(request)
            if talk.path
        ]

    def _status(self, request: dict[str, Any]) -> Answer:
        says = {None: "pending", True: "success", False: "failure"}
        return 200, {
            "sha": request["sha"],
            "statuses": [
                {"id": id_, "context": name, "status": says[good], "description": LOG}
                for id_, name, good in self.checks.get(request["sha"], [])
            ],
        }

    def _take(self, request: dict[str, Any]) -> Answer:
        method = {"squash": "squash"}.get(request["Do"], "merge")
        told = {"number": request["number"], "sha": request.get("head_commit_id")}
        status, answer = super()._merge({**told, "merge_method": method})
        return (200, "") if status == 200 else (status, answer)

    def _timeline(self, request: dict[str, Any]) -> Answer:
        return 200, [
            {
                "id": place,
                "type": "label",
                "user": self._user(by),
                "label": {"name": label},
                "body": "1" if is_set else "",
            }
            for place, (label, by, is_set) in enumerate(self._ticket(request).labels)
        ]


class GitLabSite(Forge):
    kind, prefix = "gitlab", "/api/v4"

    def signed(self, secret: str, body: bytes) -> dict[str, str]:
        return {"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": secret}

    def authorised(self, headers: Mapping[str, str]) -> bool:
        return headers.get("PRIVATE-TOKEN") == TOKEN

    def routes(self) -> dict[Any, Any]:
        at, n = "/projects/acme%2Fsite", "(?P<number>[0-9]+)"
        fork = "/projects/sandbox%2Fsite"
        mr, issue = f"{at}/merge_requests/{n}", f"{at}/issues/{n}"
        new = ("source_branch", "target_branch", "title", "description")
        merge = (
            *("sha", "squash", "should_remove_source_branch"),
            *("merge_commit_message", "squash_commit_message"),
        )
        listed = ("source_branch", "state", *PAGED)
        changed = ("title", "description", "target_branch", "state_event")
        statuses = f"{at}/repository/commits/(?P<sha>[0-9a-f]{{40}})/statuses"
        return {
            ("GET", at): ((), (), lambda _: (200, {"id": 1, "path_with_namespace": "acme/site"})),
            ("GET", fork): ((), (), lambda _: (200, {"id": 2})),
            ("POST", f"{fork}/merge_requests"): ((*new, "target_project_id"), (), self._open),
            ("GET", f"{at}/merge_requests"): ((), listed, self._list),
            ("POST", f"{at}/merge_requests"): (new, (), self._open),
            ("GET", mr): ((), (), self._one),
            ("PUT", mr): (changed, (), self._update),
            ("PUT", f"{mr}/merge"): (merge, (), self._merge),
            ("GET", f"{mr}/reviewers"): ((), PAGED, self._reviewers),
            ("GET", f"{mr}/discussions"): ((), PAGED, self._discussions),
            ("POST", f"{mr}/notes"): (("body",), (), self._note),
            ("GET", f"{issue}/discussions"): ((), PAGED, self._discussions),
            ("POST", f"{issue}/notes"): (("body",), (), self._note),
            ("GET", f"{at}/members/all/{n}"): ((), (), self._member),
            ("GET", statuses): ((), PAGED, self._statuses),
            ("GET", f"{at}/jobs/{n}/trace"): ((), (), lambda _: (200, LOG)),
            ("GET", f"{at}/issues"): ((), ("labels", "state", *PAGED), self._issues),
            ("GET", f"{issue}/resource_label_events"): ((), PAGED, self._label_events),
        }

    def shown(self, pull: Pull) -> dict[str, Any]:
        state = "merged" if pull.merged else {"open": "opened"}.get(pull.state, pull.state)
        fits = pull.state != "open" or self.mergeable(pull)
        return {
            "id": 9000 + pull.number,
            "iid": pull.number,
            "web_url": f"{self.base}/acme/site/-/merge_requests/{pull.number}",
            "source_branch": pull.branch,
            "target_branch": pull.target,
            "source_project_id": 2 if pull.forked else 1,
            "target_project_id": 1,
            "sha": self.tip(pull),
            "state": state,
            "description": pull.body,
            "has_conflicts": not fits,
            "detailed_merge_status": "mergeable" if fits else "conflict",
            "merge_commit_sha": pull.merged,
            "squash_commit_sha": None,
            "merge_user": {"username": pull.merged_by, "id": 1} if pull.merged else None,
        }

    def _list(self, request: dict[str, Any]) -> Answer:
        return 200, [
            self.shown(pull) for pull in self.pulls if pull.branch == request["source_branch"]
        ]

    def _open(self, request: dict[str, Any]) -> Answer:
        texts = request["title"], request["description"]
        branches = request["source_branch"], request["target_branch"]
        pull = self.open_pull(*branches, *texts, forked="target_project_id" in request)
        return (201, self.shown(pull)) if pull else (409, {"message": ["Another open"]})

    def _one(self, request: dict[str, Any]) -> Answer:
        return 200, self.shown(self.pull(int(request["number"])))

    def _update(self, request: dict[str, Any]) -> Answer:
        pull = self.pull(int(request["number"]))
        pull.title, pull.body = (
            request.get("title", pull.title),
            request.get("description", pull.body),
        )
        pull.target = request.get("target_branch", pull.target)
        if request.get("state_event") == "close":
            pull.state = "closed"
        return 200, self.shown(pull)

    def _merge(self, request: dict[str, Any]) -> Answer:
        pull = self.pull(int(request["number"]))
        if request.get("sha") not in (None, self.tip(pull)):
            return 409, {"message": "SHA does not match HEAD of source branch"}
        done = pull.state == "open" and self.merge(pull, "remit-bot", squash=request["squash"])
        return (200, self.shown(pull)) if done else (405, {"message": "405 Method Not Allowed"})

    def _user(self, login: str) -> dict[str, Any]:
        return {"username": login, "id": self.id_of(login)}

    def _of(self, request: dict[str, Any]) -> list[Talk]:
        return [talk for talk in self.talk if talk.about == int(request["number"])]

    def _reviewers(self, request: dict[str, Any]) -> Answer:
        states = {"approve": "approved", "changes": "requested_changes"}
        return 200, [
            {"user": self._user(talk.by), "state": states[talk.verdict], "created_at": str(talk.id)}
            for talk in self._of(request)
            if talk.verdict
        ]

    def _discussions(self, request: dict[str, Any]) -> Answer:
        return 200, [
            {"id": "d", "notes": [self._shown_note(talk)]}
            for talk in self._of(request)
            if talk.body
        ]

    def _shown_note(self, talk: Talk) -> dict[str, Any]:
        place = {"new_path": talk.path, "old_path": talk.path, "new_line": talk.line}
        position = {**place, "old_line": None, "head_sha": talk.commit}
        note = {"id": talk.id, "body": talk.body, "author": self._user(talk.by), "system": False}
        return {**note, "position": position} if talk.path else note

    def _note(self, request: dict[str, Any]) -> Answer:
        talk = self.say(int(request["number"]), "remit-bot", request["body"])
        return 201, self._shown_note(talk)

    def _member(self, request: dict[str, Any]) -> Answer:
        login = self.people[int(request["number"]) - 1]
        level = {**dict.fromkeys(self.pushers, 30), "guest": 10, GHOST: 0}.get(login)
        if level is None:
            return 404, {"message": "404 Not found"}
        return 200, {"id": int(request["number"]), "username": login, "access_level": level}

    def _statuses(self, request: dict[str, Any]) -> Answer:
        says = {None: "running", True: "success", False: "failed"}
        return 200, [
            {"id": id_, "name": name, "status": says[good], "target_url": f"{self.base}/{id_}"}
            for id_, name, good in self.checks.get(request["sha"], [])
        ]

    def _issues(self, request: dict[str, Any]) -> Answer:
        return 200, [
            {
                "iid": ticket.number,
                "web_url": f"{self.base}/acme/site/-/issues/{ticket.number}",
                "title": ticket.title,
                "description": ticket.body,
                "author": self._user(ticket.by),
                "updated_at": f"2026-01-01T00:00:{len(ticket.labels):02}Z",
            }
            for ticket in self.tickets
            if any(label == request["labels"] for label, _, _ in ticket.labels)
        ]

    def _label_events(self, request: dict[str, Any]) -> Answer:
        ticket = next(issue for issue in self.tickets if issue.number == int(request["number"]))
        return 200, [
            {"user": self._user(by), "label": {"name": label}, "action": "add" if on else "remove"}
            for label, by, on in ticket.labels
        ]


SITES: Mapping[str, type[Forge]] = {site.kind: site for site in (GitHubSite, GitLabSite, GiteaSite)}


@contextmanager
def forge(kind: str, bare: Path, folder: Path) -> Iterator[Forge]:
    """A forge around a bare repository that lies at `acme/site.git` below a folder."""
    site = SITES[kind](bare)
    served: Any = {"api": site.answer, "watch": lambda *request: site.watch(*request)}
    with https(bare.parent.parent, folder, password=TOKEN, **served) as server:
        site.base = site.logs_at = server.url
        site.certificate, site.git = server.certificate, server
        yield site
