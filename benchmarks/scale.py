"""Lists and calls cost in proportion to a page, not to the size of the company."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from benchmarks import office
from benchmarks.bulk import COMMON_WORD, RARE_WORD, fill
from benchmarks.harness import KIB_4, Plan, Row, compared, interleaved
from benchmarks.office import Office
from remit.services.identity import Caller
from remit.services.knowledge import files
from remit.services.organisation import agents
from remit.services.rights import grants

FEW, MANY = 1_000, 100_000
MOST = 1.5


def measure(plan: Plan) -> Iterator[Row]:
    with contextlib.ExitStack() as stack:
        works: dict[str, dict[str, Callable[[], object]]] = {}
        for size in (FEW, MANY):
            here = stack.enter_context(office.opened(plan.home(f"scale-{size}")))
            for name, work in _works(here, size).items():
                works.setdefault(name, {})[str(size)] = work
        for name, both in works.items():
            taken = interleaved(both, plan.some(160), block=4, seconds=plan.patience / 3)
            few, many = taken[str(FEW)].p50, taken[str(MANY)].p50
            yield compared(name, many, f"among {FEW:,}", few, most=MOST)


def _works(here: Office, size: int) -> dict[str, Callable[[], object]]:
    made = here.call(
        here.board, agents.create, company=here.company, name="report", reports_to="ceo"
    )
    key = here.call(here.board, agents.create_key, agent=made["id"])["token"]
    report, holder, company = Caller(key), here.agent, here.company
    ids = fill(here, size)
    readable = here.file(KIB_4, f"{COMMON_WORD} of what is read")["id"]
    middle = ids[len(ids) // 2]

    def browse(caller: Caller, words: str) -> Callable[[], object]:
        return lambda: here.call(caller, files.browse, company=company, words=words)

    def held(after: str) -> Callable[[], object]:
        return lambda: here.call(holder, files.listing, company=None, after=after)

    def capabilities(caller: Caller, after: str) -> Callable[[], object]:
        return lambda: here.call(caller, grants.listing, company=company, after=after)

    return {
        "kb_browse, a rare word": browse(holder, RARE_WORD),
        "kb_browse, a word of every file": browse(holder, COMMON_WORD),
        "kb_browse, the same, half of them hidden": browse(report, COMMON_WORD),
        "kb_browse, two common words": browse(holder, f"{COMMON_WORD} number"),
        "kb_browse, no such word": browse(holder, "nowhere"),
        "kb_list, first page of what is held": held(""),
        "kb_list, a page in the middle": held(middle),
        "capability_list, first page": capabilities(holder, ""),
        "capability_list, a page in the middle": capabilities(holder, middle),
        "grants of the company, first page": capabilities(here.board, ""),
        "files of the company, newest page": browse(here.board, ""),
        "files, newest page, half of them hidden": browse(report, ""),
        "one read of 4 KiB": lambda: here.read(readable),
        "one look at a file": lambda: here.call(holder, files.show, file=middle),
        "one grant": lambda: here.call(
            holder,
            grants.give,
            company=None,
            to="agent:report",
            resource=f"kb_file:{readable}",
            level="read",
        ),
    }
