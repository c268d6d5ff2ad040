"""A company that works on a repository with a forge around it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from remit.clock import HOUR, Micros
from remit.services.changes import changes, proposals
from remit.services.connections import repos, secrets
from remit.testing.clock import VirtualClock
from tests.change_stage import give
from tests.company import Answer, Company, Run
from tests.forge_server import TOKEN, Forge, Pull, forge
from tests.git_remote import trust
from tests.mailing import ack, take
from tests.review_stage import Checkout

GOOD = {"app.py": "def add(a, b):\n    return a + b\n"}
BETTER = {"app.py": "def add(a, b):\n    return b + a\n"}


class ForgeStage(Checkout):
    def __init__(self, company: Company, place: Path, forge: Forge, **more: Any) -> None:
        super().__init__(place)
        self.company, self.forge, self.app = company, forge, company.app
        forge.bare = self.bare
        about: Any = {"name": "site", "url": f"{forge.base}/acme/site.git", "username": "bot"}
        told = {"forge": forge.kind, "secret": "forge-token", **more}
        company.call(company.board, repos.add, company=company.id, **about, **told)

    def author(self, name: str = "author") -> Run:
        member = self.company.agent(name)
        give(self.company, member)
        return self.company.run(member)

    def propose(self, by: Run, files: dict[str, str] = GOOD, **more: Any) -> Answer:
        proposal = self.proposal(self.app, files, **more)
        return self.company.call(by.caller, proposals.propose, **proposal)

    def proposed(self, by: Run, **more: Any) -> tuple[Answer, Pull]:
        """A change, and its request at the forge."""
        change = self.propose(by, **more)
        self.publish()
        problems = self.shown(change["change"])["problems"]
        assert not problems, problems
        return change, self.forge.pulls[-1]

    def publish(self) -> None:
        self.company.wait(self.app.publisher.tick())

    def look(self) -> None:
        """Look at the forge when that is due again."""
        self.later(HOUR)
        assert self.company.wait(self.app.watcher.tick()) == 1, "somebody looked"

    def later(self, time: Micros) -> None:
        assert isinstance(self.company.clock, VirtualClock)
        self.company.clock.advance(time)

    def merge(self) -> None:
        self.company.wait(self.app.merger.tick())

    def shown(self, change: str) -> Answer:
        return self.company.call(self.company.board, changes.show, change=change)

    def mail(self, run: Run) -> list[str]:
        """What came to an agent since the last time, as texts."""
        letters = take(self.company, run)
        if letters:
            ack(self.company, run.caller, *letters)
        return [f"{letter['subject']}\n{letter['body']}" for letter in letters]

    def problem(self) -> str | None:
        ((problem,),) = self.company.sql("SELECT problem FROM forge_watches")
        return None if problem is None else str(problem)


@contextmanager
def staged(
    kind: str, company: Company, place: Path, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> Iterator[ForgeStage]:
    root = place / "remotes" / "acme"
    with forge(kind, root / "site.git", place) as site:
        trust(monkeypatch, site.certificate)
        monkeypatch.setenv("FORGE_TOKEN", TOKEN)
        where: dict[str, Any] = {"source": "env", "place": "FORGE_TOKEN"}
        company.call(company.board, secrets.put, company=company.id, name="forge-token", **where)
        yield ForgeStage(company, root, site, **more)
        assert site.violations == []
