"""What several processes did at once on one database could have been done one after the other.

First that the checker tells right from wrong, then what it says of Remit. For longer or more:
`REMIT_HISTORIES=20`; the same choices again: `REMIT_HISTORY_SEED=…`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from remit.services.governance import approvals
from remit.store.engine.migrate import is_sqlite
from remit.testing.linearizability import Operation, Undecided, check, recorded
from tests import runtime_stage
from tests.company import Company, opened
from tests.history_models import BECOMES, Approvals, Files, Runs
from tests.history_stage import MODULE, Part
from tests.organisation import problems
from tests.runtime_stage import Stage
from tests.working import alive, eventually

#: How much is tried: 1 in each run of the tests, more when somebody asks for it.
EFFORT = int(os.environ.get("REMIT_HISTORIES", "1"))
SEED = int(os.environ.get("REMIT_HISTORY_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
#: So many operations, in as long as they take on a machine that has other things to do.
OPERATIONS = 1_000
SECONDS = 40.0
PROCESSES = 5


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with runtime_stage.opened(MODULE) as found:
        yield found


class Play:
    """A company, some processes that work on it at once, and what happens to them."""

    def __init__(self, url: str, home: Path, stage: Stage, seed: int) -> None:
        self.url, self.home, self.stage, self.seed = url, home, stage, seed
        self.folder = home.parent / f"history-{seed}"
        self.folder.mkdir()
        self.chance = random.Random(seed)
        self.faults: Counter[str] = Counter()
        with opened(url, home) as company:
            self.files = dict(self._file(company, n) for n in range(3))
            asker = company.user("asker")
            self.approvals = [self._approval(company, asker, n) for n in range(40)]
            self.agents = [self._agent(company, n) for n in range(2)]
            self.board, self.asker = company.board.token, asker.token
        self.born: dict[str, int] = {}

    @staticmethod
    def _file(company: Company, number: int) -> tuple[str, tuple[int, str]]:
        made = company.file(company.board, f"file {number}".encode())
        return made["id"], (made["version"], made["hash"])

    @staticmethod
    def _approval(company: Company, asker: Any, number: int) -> str:
        given: Any = {"kind": "request_board_approval", "payload": {"title": f"Wish {number}"}}
        made = company.call(asker, approvals.request, company=company.id, **given)
        return str(made["id"])

    @staticmethod
    def _agent(company: Company, number: int) -> str:
        """At the top, so that Remit goes on starting it however often its runs are lost."""
        return company.agent(f"agent-{number}", boss=None, adapter_type="scripted").id

    def begin(self, heir_of: str | None = None) -> None:
        name = f"p{len(self.born)}"
        part = Part(
            url=self.url,
            home=str(self.home),
            history=str(self.folder),
            name=name,
            seed=str(self.seed),
            files=list(self.files),
            approvals=self.approvals,
            agents=self.agents,
            heir_of=f"{self.folder}/{heir_of}.0.jsonl" if heir_of else None,
            board=self.board,
            asker=self.asker,
        )
        self.born[name] = self.stage.begin(part)

    def happen(self) -> None:
        """Let them work, and see to it that not everything goes well."""
        for _ in range(PROCESSES):
            self.begin()
        kinds = ["kill", "stop"] if is_sqlite(self.url) else ["kill", "stop", "cut off"]
        faults = itertools.cycle(self.chance.sample(kinds, len(kinds)))
        end_at = time.monotonic() + SECONDS
        while self._operations() < OPERATIONS and time.monotonic() < end_at:
            time.sleep(self.chance.uniform(0.1, 0.4))
            living = [name for name, pid in self.born.items() if alive(pid)]
            if not living:
                break
            name = self.chance.choice(living)
            fault = next(faults)
            if fault == "kill":
                os.kill(self.born[name], signal.SIGKILL)
                self.begin(heir_of=name)
            elif fault == "stop":
                os.kill(self.born[name], signal.SIGSTOP)
                time.sleep(self.chance.uniform(0.05, 0.3))
                os.kill(self.born[name], signal.SIGCONT)
            else:
                self._cut_off()
            self.faults[fault] += 1
        (self.folder / "over").touch()
        for pid in self.born.values():
            eventually(lambda pid=pid: not alive(pid), 60)  # type: ignore[misc]
        errors = [path.read_text() for path in self.folder.glob("*.error")]
        assert not errors, errors

    def _operations(self) -> int:
        """About how many were answered; each is two lines."""
        return sum(path.read_bytes().count(b"\n") for path in self.folder.glob("*.jsonl")) // 2

    def _cut_off(self) -> None:
        """Some connections end, whatever they are at."""
        with psycopg.connect(self.url, autocommit=True) as server:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE random() < 0.3"
                " AND application_name = 'remit' AND datname = current_database()"
            )

    def histories(self) -> dict[str, list[Operation]]:
        whole = recorded(sorted(self.folder.glob("*.jsonl")))
        return {
            "files": [one for one in whole if one.key in self.files],
            "approvals": [one for one in whole if one.key in set(self.approvals)],
            "runs": [one for one in whole if one.key in set(self.agents)],
        }

    def models(self) -> dict[str, Any]:
        return {"files": Files(self.files), "approvals": Approvals(), "runs": Runs()}


# ── the checker ─────────────────────────────────────────────────────────────────────────────────


class Register:
    """A value that is written and read."""

    def initial(self, _: str) -> int:
        return 0

    def step(self, state: int, operation: Operation) -> Iterable[int]:
        if operation.name == "write":
            return [operation.given]
        return [state] if operation.unknown or operation.answer == state else []

    def observes(self, operation: Operation) -> bool:
        return operation.name == "read"


def write(value: int, began: int, ended: int | None, key: str = "x") -> Operation:
    return Operation(key, "write", value, None, began, ended)


def read(value: int, began: int, ended: int | None, key: str = "x") -> Operation:
    return Operation(key, "read", None, value, began, ended)


def explained(*history: Operation) -> bool:
    return not check(Register(), history)


def test_what_overlaps_may_have_come_in_either_order() -> None:
    assert explained(write(1, 0, 10), read(0, 1, 2), read(1, 3, 4))
    assert explained(write(1, 0, 10), write(2, 1, 9), read(1, 11, 12), read(1, 13, 14))
    assert explained(write(1, 0, 5), read(0, 5, 6)), "the same moment is no order"


def test_what_came_later_does_not_come_first() -> None:
    assert not explained(write(1, 0, 10), read(1, 1, 2), read(0, 3, 4))
    assert not explained(write(1, 0, 1), read(0, 2, 3))
    assert not explained(write(1, 0, 10), write(2, 1, 9), read(1, 11, 12), read(2, 13, 14))
    assert not explained(read(7, 0, 1)), "nobody wrote that"


def test_what_has_no_answer_may_have_happened_at_any_time_or_never() -> None:
    lost = write(1, 0, None)
    assert explained(lost, read(0, 5, 6), read(0, 7, 8))
    assert explained(lost, read(1, 5, 6))
    assert explained(lost, read(0, 5, 6), read(1, 7, 8), read(1, 9, 10))
    assert not explained(lost, read(1, 5, 6), read(0, 7, 8)), "but not back again"
    assert not explained(read(1, 0, 1), write(1, 2, None)), "nor before it was asked"
    assert explained(read(9, 0, None)), "an answer that nobody got is not wrong"


def test_keys_are_independent_and_the_wrong_one_is_named() -> None:
    right = [write(1, 0, 1, "a"), read(1, 2, 3, "a")]
    (found,) = check(Register(), [*right, write(1, 0, 1, "b"), read(0, 2, 3, "b")])
    assert found.key == "b"


def test_a_violation_is_cut_down_to_what_shows_it() -> None:
    """Nothing after the first wrong answer, nothing from before the last quiet moment."""
    before = [write(n, 10 * n, 10 * n + 1) for n in range(1, 50)]
    wrong = [write(50, 500, 510), read(50, 502, 503), read(49, 504, 505)]
    after = [write(n, 10 * n, 10 * n + 1) for n in range(51, 80)]
    (found,) = check(Register(), [*before, *wrong, *after])
    assert found.before == (50,), "or the first read would have been wrong"
    assert found.operations == (wrong[-1],)
    assert "x was 50; then" in str(found)


def test_a_search_that_would_never_end_says_so() -> None:
    lost = [write(n, 0, None) for n in range(1, 20)]
    with pytest.raises(Undecided):
        check(Register(), [*lost, read(99, 1, 2)], most=1_000)


def brute_force(history: list[Operation]) -> bool:
    """All orders of all choices of what happened, for small histories."""
    known = [one for one in history if one.ended is not None]
    loose = [one for one in history if one.ended is None]
    for count in range(len(loose) + 1):
        for happened in itertools.combinations(loose, count):
            for order in itertools.permutations([*known, *happened]):
                if _in_time(order) and _right(order):
                    return True
    return False


def _in_time(order: tuple[Operation, ...]) -> bool:
    return not any(
        later.ended is not None and later.ended < earlier.began
        for earlier, later in itertools.combinations(order, 2)
    )


def _right(order: tuple[Operation, ...]) -> bool:
    state = 0
    for one in order:
        if one.name == "write":
            state = one.given
        elif one.ended is not None and one.answer != state:
            return False
    return True


def test_it_says_what_trying_all_orders_says() -> None:
    chance = random.Random(7)
    verdicts: Counter[bool] = Counter()
    for _ in range(600):
        history = []
        for _ in range(chance.randint(2, 5)):
            began = chance.randrange(12)
            ended = None if chance.random() < 0.2 else began + chance.randrange(1, 8)
            make = chance.choice([read, write])
            history.append(make(chance.randrange(3), began, ended))
        expected = brute_force(history)
        assert explained(*history) is expected, history
        verdicts[expected] += 1
    assert min(verdicts.values()) > 100


def test_a_renewal_that_looks_as_if_it_changed_nothing_is_not_put_first() -> None:
    """Nobody had looked at the lease, so that renewing it seemed to leave all as it was."""
    begun = Operation("a", "claim", {"run": "r"}, ["begun", 1], 0, 1)
    renewed = Operation("a", "renew", {"epoch": 1}, ["kept"], 2, 5)
    looks = [
        Operation("a", "look", {}, ["r", 100], 3, 4),
        Operation("a", "look", {}, ["r", 200], 6, 7),
    ]
    assert not check(Runs(), [begun, renewed, *looks])
    assert check(Runs(), [begun, *looks])


# ── Remit ───────────────────────────────────────────────────────────────────────────────────────


def _answered(history: list[Operation], *names: str) -> list[Operation]:
    return [one for one in history if not one.unknown and one.name in names]


def _a_second_winner(history: list[Operation], chance: random.Random) -> list[Operation]:
    """Two writers of the same version, and both are told that they wrote it."""
    won = chance.choice([one for one in _answered(history, "write") if one.answer[0] == "written"])
    text = "0" * 64
    given = {**won.given, "new": text, "key": None}
    return [*history, replace(won, given=given, answer=["written", won.answer[1], text])]


def _a_lost_write(history: list[Operation], chance: random.Random) -> list[Operation]:
    """One that was acknowledged, and that others built on, never happened."""
    wins = [one for one in _answered(history, "write") if one.answer[0] == "written"]
    built_on = {(one.key, *one.answer) for one in _answered(history, "read")}
    lost = chance.choice([one for one in wins if (one.key, *one.answer[1:]) in built_on])
    text = lost.given["new"]
    return [one for one in history if one.name != "write" or one.given["new"] != text]


def _an_old_version(history: list[Operation], _: random.Random) -> list[Operation]:
    """Two reads, one long after the other, see what the other saw."""
    reads = sorted(_answered(history, "read"), key=lambda one: one.began)
    first, last = reads[0], [one for one in reads if one.key == reads[0].key][-1]
    assert first.answer != last.answer
    rest = [one for one in history if one not in (first, last)]
    return [*rest, replace(first, answer=last.answer), replace(last, answer=first.answer)]


def _a_second_decision(history: list[Operation], chance: random.Random) -> list[Operation]:
    decided = ["approved", "rejected", "cancelled"]
    final = chance.choice(
        [one for one in _answered(history, *BECOMES) if one.answer[:2] == ["is", BECOMES[one.name]]
         and one.answer[1] in decided]
    )  # fmt: skip
    other = "reject" if final.name == "approve" else "approve"
    answer = ["is", BECOMES[other], final.answer[2]]
    return [*history, replace(final, name=other, given={}, answer=answer)]


def _a_decision_about_what_was_replaced(
    history: list[Operation], chance: random.Random
) -> list[Operation]:
    """It names a revision that had been replaced before anybody asked, and goes through."""
    resubmitted = [one for one in _answered(history, "resubmit") if one.answer[0] == "is"]
    stale = chance.choice(
        [
            one
            for one in _answered(history, *BECOMES)
            if one.answer[0] == "stale_revision"
            and any(
                (new.key, new.answer[2]) == (one.key, one.answer[1]) and _end(new) < one.began
                for new in resubmitted
            )
        ]
    )
    answer = ["is", BECOMES[stale.name], stale.given["seen"]]
    return [one if one is not stale else replace(one, answer=answer) for one in history]


def _a_second_run(history: list[Operation], chance: random.Random) -> list[Operation]:
    """Two workers claim an agent at once, and both are told that they have it."""
    won = chance.choice([one for one in _answered(history, "claim") if one.answer[0] == "begun"])
    return [*history, replace(won, given={"run": "another"})]


def _a_late_call(history: list[Operation], _: random.Random) -> list[Operation]:
    """Something is done in the name of a run that is over."""
    over = max((one for one in _answered(history, "end") if one.answer == ["ended"]), key=_end)
    return [*history, Operation(over.key, "act", over.given, ["done"], _end(over) + 1, 1 << 62)]


def _a_renewal_of_what_is_lost(history: list[Operation], _: random.Random) -> list[Operation]:
    wins = [one for one in _answered(history, "claim") if one.answer[0] == "begun"]
    last = max(wins, key=_end)
    before = {"epoch": last.answer[1] - 1}
    return [*history, Operation(last.key, "renew", before, ["kept"], _end(last) + 1, 1 << 62)]


def _end(operation: Operation) -> int:
    assert operation.ended is not None
    return operation.ended


#: What each history must not survive, so that the check is one that can fail.
HARMS: dict[str, list[Callable[[list[Operation], random.Random], list[Operation]]]] = {
    "files": [_a_second_winner, _a_lost_write, _an_old_version],
    "approvals": [_a_second_decision, _a_decision_about_what_was_replaced],
    "runs": [_a_second_run, _a_late_call, _a_renewal_of_what_is_lost],
}


@pytest.mark.requirement("BX-05", "BX-06")
@pytest.mark.parametrize("number", range(EFFORT))
def test_what_processes_did_at_once_could_have_been_done_one_after_the_other(
    database_url: str, tmp_path: Path, stage: Stage, number: int
) -> None:
    seed = SEED + number
    play = Play(database_url, tmp_path / "home", stage, seed)
    play.happen()
    counts: Counter[str] = Counter()
    for name, history in play.histories().items():
        violations = check(play.models()[name], history)
        told = "\n\n".join(map(str, violations))
        assert not violations, f"REMIT_HISTORY_SEED={seed}\n{told}"
        for harm in HARMS[name]:
            with contextlib.suppress(IndexError, ValueError):  # nothing of the kind happened
                harmed = harm(history, play.chance)
                assert check(play.models()[name], harmed), f"{harm.__name__}, seed {seed}"
                counts["harmed and noticed"] += 1
        counts[name] = len(history)
        counts["without answer"] += sum(one.unknown for one in history)
    assert counts["harmed and noticed"] >= 5
    print(f"seed {seed}: {dict(counts)}, {dict(play.faults)}")
    with opened(database_url, tmp_path / "home") as company:
        assert problems(company) == []
        # Which of two came first is not seen in their answers if both were under way.
        late = company.sql(
            "SELECT e.action, e.run_id FROM events e JOIN events f"
            " ON f.company_id = e.company_id AND f.action = 'run.end'"
            " AND f.resource = 'run:' || e.run_id WHERE e.seq > f.seq AND e.allowed"
        )
        assert late == [], "in the name of a run that was over"
