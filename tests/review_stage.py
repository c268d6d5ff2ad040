"""Changes with real commits: a bare remote, and what an agent proposes to it."""

import subprocess
from pathlib import Path
from typing import Any

from remit.app import App
from remit.model.connections.commit_identity import CommitIdentity
from remit.services import shapes
from remit.services.changes import changes, errands, proposals, reviews
from remit.services.connections import repos
from remit.services.identity import as_system
from tests.change_stage import give
from tests.company import Answer, Company, Run
from tests.git_remote import ENV, git

WHO = CommitIdentity.of("author", "example", None)
FILES = {"app.py": "def add(a, b):\n    return a - b\n", "README.md": "x\n"}


class Checkout:
    """A bare repository that somebody else has, and a checkout of it."""

    def __init__(self, place: Path, files: dict[str, str] | None = None) -> None:
        self.bare = place / "site.git"
        self.work = place / "work"
        self.work.mkdir(parents=True)
        git(self.work, "init", "--quiet", "--initial-branch=main", ".")
        self.write(files or FILES)
        git(place, "clone", "--quiet", "--bare", str(self.work), str(self.bare))
        git(self.work, "remote", "add", "origin", str(self.bare))

    def write(self, files: dict[str, str]) -> str:
        for name, text in files.items():
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).write_text(text)
        git(self.work, "add", "--all", "--force")
        git(self.work, "commit", "--quiet", "--allow-empty", "--message", "more")
        return git(self.work, "rev-parse", "HEAD")

    def proposal(
        self,
        app: App,
        files: dict[str, str],
        branch: str = "fix",
        author: str = "author",
        **more: Any,
    ) -> dict[str, Any]:
        """A branch from main with these files; as `repo_propose` of an agent brings it in."""
        if git(self.work, "branch", "--show-current") != branch:
            git(self.work, "checkout", "--quiet", "-B", branch, "main")
        head = self.write(files)
        base = git(self.work, "merge-base", "main", head)
        paths = git(self.work, "diff", "--name-only", "-z", base, head).split("\0")
        ours = f"refs/remit/{author}/{branch}"
        git(self.work, "update-ref", ours, head)
        bundle = subprocess.run(
            ["git", "-C", str(self.work), "bundle", "create", "-", f"^{base}", ours],
            env=ENV,
            capture_output=True,
            check=True,
        ).stdout
        git(self.work, "checkout", "--quiet", "main")
        file = app.ids.new()
        with app.blobs.receive(1 << 30) as spool:
            spool.write(bundle)
            sha = app.blobs.put(file, spool).sha256
        return {
            "name": "site",
            "branch": branch,
            "title": "Add, do not subtract",
            "target": "main",
            "base": base,
            "head": head,
            "new_id": file,
            "new_stored": {"sha256": sha, "size": len(bundle), "is_text": False, "links": []},
            "new_facts": {"paths": [path for path in paths if path]},
            **more,
        }

    def push_main(self, files: dict[str, str]) -> str:
        """What somebody else brings into the branch meanwhile."""
        commit = self.write(files)
        git(self.work, "push", "--quiet", "origin", "main")
        return commit

    def main(self) -> str:
        return git(self.bare, "rev-parse", "main")


class Site(Checkout):
    """The same, and a company that works on it."""

    def __init__(self, company: Company, place: Path) -> None:
        super().__init__(place)
        self.company = company
        about: dict[str, Any] = {"name": "site", "url": str(self.bare)}
        company.call(company.board, repos.add, company=company.id, **about)
        self.merger = company.app.merger
        self.reviews = company.app.reviews

    def author(self, name: str = "author") -> Run:
        member = self.company.agent(name)
        give(self.company, member)
        return self.company.run(member)

    def propose(self, by: Run, files: dict[str, str], **more: Any) -> Answer:
        proposal = self.proposal(self.company.app, files, **more)
        return self.company.call(by.caller, proposals.propose, **proposal)

    def claim(self) -> shapes.ClaimedErrandShape:
        """What is to be taken in next; what goes before is done with nothing done."""
        self.publish()
        ((errand, _), *_) = self.company.call(as_system(), reviews.ready)
        claim = self.company.call(as_system(), errands.claim, errand=errand, worker="w")
        assert claim is not None
        return claim

    def publish(self) -> None:
        while waiting := self.company.call(as_system(), errands.ready):
            errand = waiting[0][0]
            claim = self.company.call(as_system(), errands.claim, errand=errand, worker="w")
            assert claim is not None
            epoch = claim["epoch"]
            self.company.call(as_system(), errands.delivered, errand=errand, epoch=epoch)

    def carry_out(self, claimed: shapes.ClaimedErrandShape | None = None) -> None:
        self.company.wait(self.merger.carry_out(claimed or self.claim(), WHO))

    def shown(self, change: str) -> Answer:
        return self.company.call(self.company.board, changes.show, change=change)
