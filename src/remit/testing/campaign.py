"""Property-based campaign: random companies, operations and crashes, checked after every step.

A story is a list of `Op`s, each a kind and a few numbers; `World` executes them.
"""

import random
from collections.abc import Callable, Iterable, Sequence

from remit.errors import RemitError
from remit.testing.database import Crash
from remit.testing.invariants import check, check_quiet, check_record
from remit.testing.simulation import Simulation
from remit.testing.world import LARGEST_COMPANY, Op, Outcome, World

#: Range of an op's numbers, which are taken modulo the number of existing things.
REACH = 1 << 16
CHECK_RECORD_EVERY = 250
#: Possible numbers of agents at the beginning, of which one is drawn.
SIZES = (4, 4, 8, 20, 60, LARGEST_COMPANY - 1)


WEIGHTS = {
    "turn": 60, "hire": 4, "send": 6, "post": 14, "decide": 5, "answer": 3, "move": 2, "control": 3,
    "work": 4, "delegate": 2, "reclaim": 1, "grant": 2, "cancel": 1, "setting": 1, "time": 4,
    "jump": 1, "crash": 3, "sweep": 1, "request": 4, "page": 2, "bind": 2, "outside": 3,
    "carry": 3,
}  # fmt: skip


def story(seed: int, length: int) -> list[Op]:
    """Return a story of this length, always the same for a seed."""
    chance = random.Random(f"story {seed}")  # noqa: S311
    kinds = chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=length)
    begin = [Op("hire", number, number // 3) for number in range(chance.choice(SIZES))]
    return begin + [Op(kind, *(chance.randrange(REACH) for _ in range(3))) for kind in kinds]


def play(seed: int, ops: Sequence[Op]) -> Outcome:
    """Play a story, with a check after every step; the outcome has the broken invariant, if any."""
    with Simulation(seed) as sim:
        world = World(sim)
        out = world.out
        checked: object = None
        try:
            for number, op in enumerate(ops):
                out.ops.append(op)
                try:
                    world.carry_out(op)
                except RemitError:
                    out.refusals += 1
                except Crash:
                    sim.crash()
                # Crashes open another database object; an unchanged database needs no check.
                state = (sim.crashes, sim.database.changes)
                if state != checked:
                    check(sim)
                    checked = state
                if number % CHECK_RECORD_EVERY == CHECK_RECORD_EVERY - 1:
                    check_record(sim)
            world.settle()
            check(sim)
            world.check_sent()
            check_quiet(sim)
            check_record(sim)
        except Exception as error:
            out.broken = error
        out.crashes = sim.crashes
        out.story = sim.story
        return out


def shrink(seed: int, ops: Sequence[Op], same: Callable[[Outcome], bool]) -> list[Op]:
    """Shrink a failing story to a part that fails in the same way, and that is minimal."""
    kept = list(ops)
    size = max(1, len(kept) // 2)
    while True:
        before = len(kept)
        start = 0
        while start < len(kept):
            tried = kept[:start] + kept[start + size :]
            if same(play(seed, tried)):
                kept = tried
            else:
                start += size
        if size == 1 and len(kept) == before:
            return kept
        size = max(1, size // 2)


def campaign(seeds: Iterable[int], length: int = 400) -> Iterable[Outcome]:
    """Yield an outcome for each seed; failing stories are shrunk."""
    for seed in seeds:
        out = play(seed, story(seed, length))
        if out.broken is not None:
            broken = str(out.broken).partition(":")[0]
            ops = shrink(
                seed,
                out.ops,
                lambda tried, name=broken: (
                    tried.broken is not None  # type: ignore[misc]
                    and str(tried.broken).partition(":")[0] == name
                ),
            )
            out = play(seed, ops)
        yield out


__all__ = ["Op", "Outcome", "campaign", "play", "shrink", "story"]
