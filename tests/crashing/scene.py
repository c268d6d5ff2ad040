"""Where a situation is prepared in which a verb succeeds: names, agents and mail of its own."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from remit.model.execution.limit import DEFAULTS, Limit
from remit.services.execution import runs
from remit.services.identity import Caller, as_system
from remit.services.rights import grants
from tests import working
from tests.company import Answer, Company, Member, Run
from tests.crashing.call import Call
from tests.mailing import send

Situation = Callable[["Scene"], Call]
#: By verb, and by what is special about the situation when a verb has several.
SITUATIONS: dict[str, Situation] = {}


def situation(name: str) -> Callable[[Situation], Situation]:
    def keep(body: Situation) -> Situation:
        assert name not in SITUATIONS, name
        SITUATIONS[name] = body
        return body

    return keep


def verb_of(name: str) -> str:
    return name.partition(" ")[0]


def chapter_of(name: str) -> str:
    """The file that has it, without its `of_`: what is tried together, on one company."""
    return SITUATIONS[name].__module__.rpartition(".of_")[2]


class Scene:
    """Where one situation is prepared: names of its own, and how it is called."""

    def __init__(self, company: Company, verb: str, number: int) -> None:
        self.c = company
        self.board = company.board.token
        self._verb = verb
        self._name = f"{verb.replace('.', '-').replace('_', '-')}-{number}"
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"{self._name}-{self._count}"

    def agent(self, boss: Member | None = None, **more: Any) -> Member:
        more.setdefault("adapter_type", "scripted")
        return self.c.agent(self.name(), boss=boss.id if boss else "ceo", **more)

    def hirer(self) -> Member:
        """Somebody who may ask for a hire."""
        boss = self.agent()
        self.give(boss, "agent.create")
        return boss

    def give(self, to: Member, resource: str, **more: Any) -> None:
        wish = {"to": to.id, "resource": resource, "level": "use", **more}
        self.c.call(self.c.board, grants.give, company=self.c.id, **wish)

    def by_board(self, **given: Any) -> Call:
        return Call(self._verb, given, self.board)

    def by(self, who: Member | Run | Caller, **given: Any) -> Call:
        caller = who if isinstance(who, Caller) else who.caller
        return Call(self._verb, given, caller.token)

    def by_remit(self, **given: Any) -> Call:
        return Call(self._verb, given)

    def run(self, who: Member) -> Run:
        """At work for a worker, whose lease an instance that begins among others leaves alone."""
        return working.claim(self.c, who)

    def insatiable(self) -> Member:
        """Somebody who has used the tokens of a day and has mail."""
        who = self.agent()
        taken = {"tokens_in": DEFAULTS[Limit.AGENT_TOKENS_PER_DAY]}
        self.c.call(as_system(), runs.end, run=self.run(who).id, report=taken)
        self.letter(who)
        return who

    def letter(self, to: Member, body: str = "Please.", **more: Any) -> Answer:
        return send(self.c, self.c.board, f"agent:{to.id}", body, **more)


def changed(call: Call, **more: Any) -> Call:
    return Call(**{**asdict(call), **more})
