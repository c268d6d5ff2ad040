"""HTTP users of a random company: they call routes and open pages.

Every request, in every state of the company, gets an answer or a refusal; never an internal error.
"""

from typing import Any
from zlib import crc32

from remit.entrypoints.http.wire.caller import COOKIE
from remit.ids import random_name
from remit.services.execution import runs
from remit.services.governance import approvals
from remit.services.identity import Caller, as_system
from remit.services.people import sessions
from remit.testing.door import Response
from remit.testing.invariants import Broken
from remit.testing.simulation import Simulation

#: Pages that always exist.
PAGES = ("/", "/org", "/outcomes", "/approvals", "/inbox", "/events", "/hire", "/account")


class Outside:
    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self._session: str | None = None
        #: Channel tokens of agents, by the agent's name.
        self.tokens: dict[str, str] = {}

    def ask(self, number: int, agent: str, other: str) -> None:
        """Send one of many requests, sometimes twice with the same idempotency key."""
        wanted = self._requests(agent, other)
        method, address, body = wanted[number % len(wanted)]
        key = {"Idempotency-Key": random_name()} if method == "POST" else {}
        first = self._sound(
            self.sim.request(method, f"/api{address}", body=body, headers=key), address
        )
        if method == "POST" and number % 3 == 0:
            again = self.sim.request(method, f"/api{address}", body=body, headers=key)
            if first.status < 300 and again.body != first.body:
                raise Broken("a repeated request has the first answer", (address, again.body[:500]))

    def write(self, number: int, words: int) -> str | None:
        """Send a message through a channel, sometimes twice. Returns its id; None if it was refused
        or no agent is bound."""
        if not self.tokens:
            return None
        name = min(self.tokens, key=lambda agent: crc32(f"{number} {agent}".encode()))
        body = {
            "id": f"outside-{words % 64}",
            "conversation": "room",
            "body": f"Words {words % 64}",
        }
        address = "/api/channels/webhook"
        answers = []
        for _ in range(2 if words % 3 == 0 else 1):
            response = self.sim.request(
                "POST", address, caller=Caller(self.tokens[name]), body=body
            )
            answers.append(self._sound(response, address))
        if answers[0].status not in (200, 201):
            return None
        ids = {answer.json()["id"] for answer in answers}
        if len(ids) > 1:
            raise Broken("what comes from outside comes once", sorted(ids))
        return str(ids.pop())

    def look(self, number: int, agent: str) -> None:
        """Open a page, signed in as a browser is."""
        own = (f"/agents/{agent}", f"/companies/{self.sim.company}", *self._some_pages())
        pages = (*PAGES, *own)
        page = pages[number % len(pages)]
        answer = self._visit(page)
        if answer.status == 401:
            self._session = None  # the session expired
            answer = self._visit(page)
        if answer.status not in (200, 404):
            raise Broken("every page is there, or is not", (page, answer.status))

    def _requests(self, agent: str, other: str) -> list[tuple[str, str, dict[str, Any] | None]]:
        own = f"/companies/{self.sim.company}"
        requests: list[tuple[str, str, dict[str, Any] | None]] = [
            ("POST", f"{own}/messages", {"to": f"agent:{agent}", "body": "By post."}),
            ("POST", f"{own}/outcomes", {"parentId": agent, "title": "By request"}),
            ("POST", f"{own}/files", {"description": "A file", "content": "By hand."}),
            ("POST", f"/agents/{agent}/wakeup", {}),
            ("POST", f"/agents/{agent}/pause", {}),
            ("POST", f"/agents/{agent}/resume", {}),
            ("POST", f"{own}/agent-hires", {"name": random_name()[:12], "reportsTo": agent}),
            ("PATCH", f"/agents/{agent}/permissions", {"canCreateAgents": True}),
            (
                "POST",
                f"{own}/reorganise",
                {"operations": [{"op": "move", "agent": agent, "to": other}], "dryRun": True},
            ),
            ("GET", "/needs-you", None),
            ("GET", f"{own}/org", None),
            ("GET", f"/agents/{agent}/why-idle", None),
            ("GET", f"/agents/{agent}/loose-ends", None),
            ("GET", f"{own}/activity", None),
        ]
        pending = self.sim.ask(approvals.listing, company=self.sim.company, status="pending")
        for approval in pending[:1]:
            at = f"/approvals/{approval['id']}"
            requests += [
                ("GET", at, None),
                ("POST", f"{at}/comments", {"body": "Hm."}),
                ("POST", f"{at}/approve", {"expectedRevision": approval["revision"]}),
                ("POST", f"{at}/reject", {"expectedRevision": approval["revision"] + 1}),
            ]
        return requests

    def _some_pages(self) -> list[str]:
        """Return pages of things that exist at present."""
        rows = self.sim.ask(runs.listing, company=self.sim.company, limit=1)
        return [f"/runs/{run['id']}" for run in rows] + [
            f"/outcomes/{outcome['id']}" for outcome in self.sim.outcomes(status="open")[:1]
        ]

    def _visit(self, page: str) -> Response:
        if self._session is None:
            link = self.sim.do(sessions.create_link)["token"]
            self._session = self.sim.do(sessions.redeem, as_system(), link=link)["token"]
        answer: Response = self.sim.do_async(
            self.sim.door.request("GET", page, headers={"cookie": f"{COOKIE}={self._session}"})
        )
        return self._sound(answer, page)

    @staticmethod
    def _sound(answer: Response, address: str) -> Response:
        if answer.status >= 500:
            raise Broken("nothing goes wrong inside", (address, answer.status, answer.body[:500]))
        return answer
