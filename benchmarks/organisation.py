"""Work that is created, handed on and looked at, in trees of agents and outcomes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import cycle

from benchmarks import office
from benchmarks.bulk import fill_outcomes, fill_tree
from benchmarks.harness import Cost, Plan, Row, bounded, cost, interleaved, shown
from benchmarks.instance import started
from benchmarks.office import Office
from benchmarks.wire import Script, http, load
from remit.services.command import Context, Kind, Verb
from remit.services.organisation import agents, reorganise
from remit.services.work import delegation, outcome_walks

#: A peer, not measured here: how long one creation takes it with one client, and how many a
#: second it manages with sixteen.
PEER_SECONDS, PEER_PER_SECOND = 0.029, 50
TIMES_BETTER = 10
CLIENTS = 16
HANDED_OVER, SEEN = 10_000, 1_000
SIZES, MOST_MOVED = (1_000, 10_000, 100_000), 1_000
MOST_DELEGATE, MOST_PLACE, MOST_SUBTREE, MOST_MOVE = 0.300, 0.001, 0.020, 0.100


def measure(plan: Plan) -> Iterator[Row]:
    yield from _create(plan)
    with office.opened(plan.home("outcomes")) as here:
        yield _delegate(plan, here)
    for size in SIZES[:1] if plan.quick else SIZES:
        with office.opened(plan.home(f"graph-{size}")) as here:
            yield from _graph(plan, here, size)
    for size in SIZES[-1:] if plan.quick else SIZES:
        with office.opened(plan.home(f"tree-{size}")) as here:
            yield from _tree(plan, here, size)


class _Create:
    """A new outcome each time, below one mandate."""

    def __init__(self, company: str, token: str, parent: str) -> None:
        self._path, self._token, self._parent = f"/api/companies/{company}/outcomes", token, parent
        self._number = 0

    def request(self) -> bytes:
        self._number += 1
        document = {
            "parentId": self._parent,
            "title": f"Part {self._number}",
            "description": f"What part {self._number} is about.",
        }
        headers = {"Content-Type": "application/json"}
        return http("POST", self._path, self._token, json.dumps(document).encode(), headers)

    def take(self, _head: bytes, _body: bytes, /) -> None:
        return


def _create(plan: Plan) -> Iterator[Row]:
    with started(plan.home("creating")) as instance:
        key = instance.agent("measured")
        mandate = instance.ask("GET", "/api/agents/me", token=key)["id"]
        for clients in (1, CLIENTS):
            scripts: list[Script] = [
                _Create(instance.company, key, mandate) for _ in range(clients)
            ]
            found = load(instance.url, scripts, plan.seconds(5))
            alone = clients == 1
            better = PEER_SECONDS / found.cost.p50 if alone else found.per_second / PEER_PER_SECOND
            yield Row(
                f"create over HTTP, {clients} clients: {found.per_second:,.0f} a second",
                str(found.cost),
                f"peer: {shown(PEER_SECONDS) if alone else f'{PEER_PER_SECOND} a second'}",
                better,
                f"≥ {TIMES_BETTER}x",
                better >= TIMES_BETTER,
            )


def _timed(times: int, prepare: Callable[[], Callable[[], object]]) -> Cost:
    """What something takes that has to be prepared anew each time."""
    taken = []
    for _ in range(times):
        work = prepare()
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return cost(taken)


def _delegate(plan: Plan, here: Office) -> Row:
    here.call(here.board, agents.create, company=here.company, name="report", reports_to="ceo")

    def prepare() -> Callable[[], object]:
        whole = fill_outcomes(here, here.agent_id, HANDED_OVER)[0]

        def work() -> None:
            done = here.call(here.agent, delegation.delegate, outcome=whole, to="report")
            assert done["moved"] == HANDED_OVER - 1, done["moved"]

        return work

    taken = _timed(2 if plan.quick else 5, prepare)
    return bounded(f"delegate {HANDED_OVER:,} outcomes", taken.p50, MOST_DELEGATE)


def _graph(plan: Plan, here: Office, size: int) -> Iterator[Row]:
    """A thousand outcomes below one, and the rest of the company's beside them."""
    seen = fill_outcomes(here, here.agent_id, SEEN)
    if size > SEEN:
        fill_outcomes(here, here.agent_id, size - SEEN)
    taken = interleaved(
        {
            "subtree": lambda: here.call(here.agent, outcome_walks.subtree, outcome=seen[0]),
            "one": lambda: here.call(here.agent, outcome_walks.subtree, outcome=seen[0], depth=0),
            "why": lambda: here.call(here.agent, outcome_walks.ancestors, outcome=seen[-1]),
        },
        plan.some(100),
        seconds=plan.patience,
    )
    against = f"only its top: {shown(taken['one'].p50)}"
    among = f"among {size:,}"
    yield bounded(
        f"subtree of {SEEN:,} outcomes {among}", taken["subtree"].p50, MOST_SUBTREE, against
    )
    yield Row(f"every reason for one outcome {among}", shown(taken["why"].p50), against)


def _tree(plan: Plan, here: Office, size: int) -> Iterator[Row]:
    """A team that moves between two bosses, and all the others beside them."""
    moved = min(MOST_MOVED, size // 2)
    bosses: list[int | None] = [None, None]
    bosses += [
        0 if number == 2 else max(2, (number - 3) // 2 + 2) for number in range(2, moved + 1)
    ]
    beside = len(bosses)
    bosses += [None]
    bosses += [beside + (number - 1) // 4 for number in range(1, size - beside)]
    ids = fill_tree(here, bosses)
    deepest = ids[-1]

    def place(ctx: Context, *, agent: str) -> bool:
        ctx.enter(here.company)
        return ids[beside] in ctx.boss_chain(agent)

    is_below = Verb("measured.place", Kind.QUERY, place)
    nothing = Verb("measured.nothing", Kind.QUERY, _enter)
    taken = interleaved(
        {
            "place": lambda: here.call(here.agent, is_below, agent=deepest),
            "nothing": lambda: here.call(here.agent, nothing, company=here.company),
        },
        plan.some(400),
        seconds=plan.patience,
    )
    yield bounded(
        f"is-ancestor among {size:,} agents",
        taken["place"].p50,
        MOST_PLACE,
        f"a query of nothing: {shown(taken['nothing'].p50)}",
    )
    targets = cycle([ids[1], ids[0]])

    def prepare() -> Callable[[], object]:
        to = next(targets)
        operations = [{"op": "move", "agent": ids[2], "to": to}]
        return lambda: here.call(
            here.board, reorganise.reorganise, company=here.company, operations=operations
        )

    moving = _timed(4 if plan.quick else 20, prepare)
    yield bounded(f"move {moved - 1:,} of {size:,} agents to another boss", moving.p50, MOST_MOVE)


def _enter(ctx: Context, *, company: str) -> None:
    ctx.enter(company)
