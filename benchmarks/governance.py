"""Hiring, approving and looking at agents over HTTP, against the strongest system of this kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks import office
from benchmarks.bulk import fill_agents
from benchmarks.harness import Plan, Row, shown
from benchmarks.instance import Instance, started
from benchmarks.wire import Fixed, Load, Script, http, load
from remit.services.hiring import hiring

CLIENTS = 16
TIMES_BETTER = 10
AGENTS = 1_000
SECONDS = 3.0
#: More approvals than are decided in the time that is measured.
APPROVALS_PER_SECOND = 1_200
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Peer:
    """What the peer takes, measured on the same kind of machine."""

    seconds: float
    #: With 16 clients, where it was measured.
    per_second: int | None = None


HIRE = Peer(0.025, 77)
APPROVE = Peer(0.023, 73)
LIST = Peer(0.143, 7)
READ = Peer(0.011)
READ_AMONG_MANY = Peer(0.090)


def measure(plan: Plan) -> Iterator[Row]:
    home, seconds = plan.home("governance"), plan.seconds(SECONDS)
    with office.opened(home) as here:
        token, first = here.agent.token, here.agent_id
        count = int(APPROVALS_PER_SECOND * seconds)
        waiting = [_asked(here, number) for number in range(count + count // 3)]
    assert token is not None
    with started(home) as instance:
        read = http("GET", f"/api/agents/{first}", instance.board)
        found = load(instance.url, [Fixed(read)], seconds)
        yield _row("read one agent", 1, found, READ)
        for clients in (1, CLIENTS):
            scripts: list[Script] = [_Hire(instance, token, n) for n in range(clients)]
            yield _row("hire", clients, load(instance.url, scripts, seconds), HIRE)
        for clients, some in ((1, waiting[count:]), (CLIENTS, waiting[:count])):
            scripts = [_Approve(instance, some[n::clients]) for n in range(clients)]
            yield _row("approve", clients, load(instance.url, scripts, seconds), APPROVE)
    many = plan.home("governance-many")
    with office.opened(many) as here:
        fill_agents(here, AGENTS - 1)
        first = here.agent_id
    with started(many) as instance:
        path = f"/api/companies/{instance.company}/agents?limit={AGENTS}"
        assert len(instance.ask("GET", path)) == AGENTS
        listing = http("GET", path, instance.board)
        for clients in (1, CLIENTS):
            # A list is large, and a second may be too short for all of them.
            found = load(instance.url, [Fixed(listing) for _ in range(clients)], max(seconds, 3.0))
            yield _row(f"list {AGENTS:,} agents", clients, found, LIST)
        read = http("GET", f"/api/agents/{first}", instance.board)
        found = load(instance.url, [Fixed(read)], seconds)
        yield _row(f"read one of {AGENTS:,} agents", 1, found, READ_AMONG_MANY)


def _row(name: str, clients: int, found: Load, peer: Peer) -> Row:
    alone = clients == 1
    if alone or peer.per_second is None:
        better, against = peer.seconds / found.cost.p50, shown(peer.seconds)
    else:
        better, against = found.per_second / peer.per_second, f"{peer.per_second} a second"
    return Row(
        f"{name}, {clients} client{'' if alone else 's'}: {found.per_second:,.0f} a second",
        str(found.cost),
        f"peer: {against}",
        better,
        f"≥ {TIMES_BETTER}x",
        better >= TIMES_BETTER,
    )


def _asked(here: office.Office, number: int) -> str:
    """A hire that awaits a decision; answers its approval."""
    made = here.call(
        here.agent, hiring.hire, company=None, name=f"asked-{number}", adapter_type="scripted"
    )
    found: str = made["approval"]["id"]
    return found


class _Hire:
    """Somebody new each time, who awaits approval."""

    def __init__(self, instance: Instance, token: str, client: int) -> None:
        self._path = f"/api/companies/{instance.company}/agent-hires"
        self._token, self._client, self._number = token, client, 0

    def request(self) -> bytes:
        self._number += 1
        document = {
            "name": f"hired-{self._client}-{id(self)}-{self._number}",
            "role": "engineer",
            "title": "Builds things",
            "adapterType": "scripted",
            "prompt": "Build what is asked for.",
        }
        return http("POST", self._path, self._token, json.dumps(document).encode(), _JSON)

    def take(self, _head: bytes, _body: bytes, /) -> None:
        return


class _Approve:
    """One hire after the other; when there are none left, it only looks."""

    def __init__(self, instance: Instance, waiting: Sequence[str]) -> None:
        self._board, self._waiting = instance.board, list(waiting)
        self._last = self._waiting[0]

    def request(self) -> bytes:
        if not self._waiting:
            return http("GET", f"/api/approvals/{self._last}", self._board)
        self._last = self._waiting.pop()
        return http("POST", f"/api/approvals/{self._last}/approve", self._board)

    def take(self, _head: bytes, _body: bytes, /) -> None:
        return
