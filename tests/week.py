"""A week in a company of fifty agents, with people who take their time and everything that goes
wrong in a week: on a virtual clock, with real services, and models that are functions.

A wish is a letter from a person. It goes down the levels as outcomes, each delegated to a report,
and comes back by submissions and verdicts; whoever got the letter answers it. Runs take time, so
that news comes while agents run. What holds a wish up by right (a person who has not decided yet, a
provider that is closed, a stop, a laptop that sleeps, a run at work) is taken down; what remains of
the time until the answer is Remit's.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros
from remit.errors import Conflict, NotFound, RemitError
from remit.services.execution import account_faults, run_queue, runs
from remit.services.governance import approvals
from remit.services.identity import Caller, as_system
from remit.services.messaging import inbox, mail, questions, schedules
from remit.services.organisation import halts
from remit.services.people import companies, users
from remit.services.screens import needs_you
from remit.testing import AgentDied, Letter, Member, Simulation, ToolRefused, Turn

SLOTS = 24
#: How often the clock is looked at when nothing is known to come.
LOOK_EVERY = 2 * MINUTE
#: No wish comes so late that people who take a day, and bosses who never judge, could not be done
#: with it by the end.
LAST_WISH = 64 * HOUR
_WISH = re.compile(r"wish (\d{1,6})")
_OUTCOME = re.compile(r"outcome:([0-9a-f-]{36})")
#: Who is not told when a provider opens again finds out after so long, and then not everybody
#: begins at once.
LONGEST_PROBE = 15 * MINUTE
RAMP = 10 * SECOND
#: A letter that breaks whoever reads it.
POISON = "This letter breaks whoever reads it."
#: How long each person takes to decide; None never does.
PATIENCE: dict[str, Micros | None] = {
    "chair": MINUTE,
    "hours": 3 * HOUR,
    "day": DAY,
    "never": None,
}


@dataclass
class Wish:
    number: int
    person: str
    to: Brain
    sent_at: Micros
    message: str
    answered_at: Micros | None = None
    #: From when to when somebody or something held it up by right.
    held_up: list[tuple[Micros, Micros]] = field(default_factory=list)

    def left_to_remit(self, holds: list[tuple[Micros, Micros]]) -> Micros:
        """How much of the time until the answer nobody else is accountable for."""
        assert self.answered_at is not None
        free, at = 0, self.sent_at
        for begin, end in sorted([*self.held_up, *holds]):
            begin, end = max(begin, at), min(end, self.answered_at)
            if begin < end:
                free += begin - at
                at = end
        return free + max(0, self.answered_at - at)


class Brain:
    """A model: what it does in a run is what a good one would do, but for its quirk."""

    def __init__(self, week: Week, name: str, level: int, boss: Brain | None) -> None:
        self.week = week
        self.name = name
        self.level = level
        self.boss = boss
        self.reports: list[Brain] = []
        self.quirk = ""
        self.member: Member
        #: The letters of people that it has to answer, by wish.
        self.to_answer: dict[int, Letter] = {}
        #: What it did about a wish already.
        self.did: Counter[str] = Counter()
        self.waited_for: list[Letter] = []

    def think(self, turn: Turn) -> None:
        self.week.touched = set()
        if any(POISON in letter.body for letter in turn.mail):
            raise AgentDied("a letter broke it")
        if self.quirk == "answers in text":
            self._answer_in_text(turn)
            return
        for letter in turn.mail:
            self._read(turn, letter)
        while self.waited_for and self.did["may begin"]:
            turn.reply(self.waited_for.pop(), "I begin.")
        for outcome in turn.call("outcome_list", status="open")["outcomes"]:
            match = _WISH.search(outcome["title"])
            if match and outcome["actionable"] and not outcome["waiting"]:
                self._work_on(turn, outcome, int(match[1]))

    # ── mail ────────────────────────────────────────────────────────────────────────────────

    def _answer_in_text(self, turn: Turn) -> None:
        """As chat models do: it says what it thinks, and calls no tool."""
        for letter in turn.mail:
            if letter.sender.startswith("user:"):
                self.week.touched |= {int(digits) for digits in _WISH.findall(letter.body)}
                turn.words = f"The answer to {letter.body} is four."

    def _read(self, turn: Turn, letter: Letter) -> None:
        self.week.touched |= {int(digits) for digits in _WISH.findall(letter.subject + letter.body)}
        match = _WISH.search(letter.body)
        if letter.sender.startswith("user:") and match and letter.body.startswith("wish"):
            number = int(match[1])
            if number in self.to_answer:
                return  # it comes again, because a run did not get to its end
            self.to_answer[number] = letter
            with contextlib.suppress(ToolRefused):
                turn.call("outcome_create", parent_id=turn.agent.id, title=letter.body)
        elif letter.subject.startswith(("To judge", "Still awaited: a submission")):
            self._judge(turn, letter)
        elif letter.subject.startswith("Agents wait for each other"):
            first = min(self.reports, key=lambda report: report.name)
            with contextlib.suppress(ToolRefused):
                turn.send(first.member, "You begin.", subject="You begin")
        elif letter.body == "I begin.":
            self.did["may begin"] += 1
        elif letter.body.startswith("After you."):
            self.waited_for.append(letter)
        elif letter.subject == "You begin":
            self.did["may begin"] += 1

    def _judge(self, turn: Turn, letter: Letter) -> None:
        if self.quirk == "never judges":
            return
        match = _OUTCOME.search(letter.body)
        outcome = match[1] if match else ""
        if not outcome:
            return
        with contextlib.suppress(ToolRefused):
            if self.week.chance.random() < 0.1 and not self.did[f"sent back {outcome}"]:
                self.did[f"sent back {outcome}"] += 1
                turn.call("outcome_return", id=outcome, note="Say where it comes from.")
            else:
                turn.call("outcome_complete", id=outcome, note="Good.")

    # ── work ────────────────────────────────────────────────────────────────────────────────

    def _work_on(self, turn: Turn, outcome: dict[str, Any], number: int) -> None:
        self.week.touched.add(number)
        key = outcome["id"]
        if self.quirk == "waits for its twin" and not self.did["may begin"]:
            if not self.did[f"wrote {key}"]:
                self.did[f"wrote {key}"] += 1
                twin = next(report for report in self._boss().reports if report is not self)
                with contextlib.suppress(ToolRefused):
                    turn.call(
                        "mail_send",
                        to=twin.member.address,
                        body="After you.",
                        expects_reply=True,
                        outcome_id=key,
                    )
            return
        if self.quirk == "loops" and not self.did[f"looped {key}"]:
            self.did[f"looped {key}"] += 1
            for _ in range(30):
                turn.call("outcome_view", id=key)
            raise AgentDied("it did the same again and again")
        if self._asks_first(turn, key, number):
            return
        if not self.did[f"began {key}"]:
            self.did[f"began {key}"] += 1
            if self._hand_down(turn, outcome, number):
                return
            if self.quirk == "plans ten parts":
                for part in range(10):
                    title = f"Part {part} of {outcome['title']}"[:200]
                    child = turn.call("outcome_create", parent_id=key, title=title)
                    self.did[f"began {child['id']}"] += 1
                    self.did[f"part {child['id']}"] += 1
                return
        if self.did[f"part {key}"]:
            if not self.did[f"one in {turn.run}"]:
                self.did[f"one in {turn.run}"] += 1
                turn.call("outcome_complete", id=key, note="A tenth.")
            return
        self._bring_back(turn, outcome, number)

    def _boss(self) -> Brain:
        assert self.boss is not None
        return self.boss

    def _asks_first(self, turn: Turn, key: str, number: int) -> bool:
        """Now and then something must be known, or somebody hired, before it can go on."""
        if self.did[f"asked {key}"] or number in self.week.asked:
            return False
        self.did[f"asked {key}"] += 1
        dice = self.week.chance.random()
        if dice < 0.12:
            question = f"wish {number}: which colour?"
            turn.call("ask", question=question, to="board", outcome_id=key)
            self.week.asked.add(number)
            return True
        if dice < 0.16 and self.level < 3:
            name = f"temp-{number}-{self.name}"
            with contextlib.suppress(ToolRefused):
                turn.call(
                    "hire_agent",
                    name=name,
                    role="engineer",
                    adapter_type="scripted",
                    title=f"for wish {number}",
                    outcome_id=key,
                )
                self.week.asked.add(number)
                return True
        return False

    def _hand_down(self, turn: Turn, outcome: dict[str, Any], number: int) -> bool:
        below = [
            brain
            for brain in self.reports
            if self.week.is_at_work(brain)
            and brain.quirk != "answers in text"
            # Who needs ten runs for each wish is not given every one.
            and not (brain.quirk == "plans ten parts" and brain.did["wishes"] >= 3)
        ]
        twins = [brain for brain in below if brain.quirk == "waits for its twin"]
        chosen = twins or ([self.week.chance.choice(below)] if below else [])
        for report in chosen:
            report.did["wishes"] += 1
            title = f"wish {number} for {report.name}"
            part = turn.call("outcome_create", parent_id=outcome["id"], title=title)
            turn.call("delegate", outcome_id=part["id"], to=report.member.address)
        return bool(chosen)

    def _bring_back(self, turn: Turn, outcome: dict[str, Any], number: int) -> None:
        key = outcome["id"]
        if self.quirk == "forgets to submit" and not self.did[f"remembered {key}"]:
            self.did[f"remembered {key}"] += 1
            turn.call("kb_create", description="Draft", content="Half of it.")
            return
        file = turn.call("kb_create", description=f"wish {number}", content="All of it.")
        if outcome["delegated"]:
            turn.call("outcome_submit", id=key, evidence=[file["id"]], note="It is done.")
        else:
            turn.call("outcome_complete", id=key, evidence=[file["id"]], note="It is done.")
            letter = self.to_answer.pop(number, None)
            if letter is not None and self.quirk != "forgets to answer":
                turn.reply(letter, f"wish {number} has come true.")


class Week:
    """The company, its people, and the time that passes."""

    def __init__(self, seed: int, *, days: float = 7, wishes: int = 40) -> None:
        self.sim = Simulation(seed, name="Week")
        self.chance = random.Random(f"week {seed}")
        self.clock = self.sim.clock
        self.begin = self.clock.now()
        self.end = self.begin + int(days * DAY)
        self._events: list[tuple[Micros, int, Callable[[], object]]] = []
        self._count = itertools.count()
        self.running: dict[str, str] = {}
        #: When an agent's last run ended: who is at work is not waited for.
        self._ended: dict[str, Micros] = {}
        self.wishes: dict[int, Wish] = {}
        #: From when to when everybody was held up.
        self.holds: list[tuple[Micros, Micros]] = []
        self.provider_closed: tuple[Micros, Micros] = (0, 0)
        #: Otherwise Remit has to find out.
        self.says_until_when = seed % 2 == 0
        self.touched: set[int] = set()
        self.latencies: list[Micros] = []
        self.runs = 0
        self.poison = ""
        #: Starts while the company was stopped; and of one provider, how many at once while it was
        #: known to be closed.
        self.started_while_stopped = 0
        self.most_probes = 0
        #: From when on the instance is killed as soon as several are at work, the latest first.
        self.kills: list[Micros] = []
        #: Runs that ended because of that.
        self.cut_off = 0
        #: Wishes about which a person was asked something.
        self.asked: set[int] = set()
        self._stopped = False
        self._probes = 0
        self._known_closed = False
        self._known_items: dict[str, Micros] = {}
        self._changes = -1
        self.brains: dict[str, Brain] = {}
        self.people: dict[str, Caller] = {"chair": self.sim.board}
        self._found()
        self._wish_through_the_week(wishes)

    def __enter__(self) -> Week:
        return self

    def __exit__(self, *error: object) -> None:
        self.sim.close()

    # ── the company ─────────────────────────────────────────────────────────────────────────

    def _found(self) -> None:
        """One ceo, four leads, nine managers, thirty-six at work: fifty on four levels."""
        self.sim.do(companies.change, company=self.sim.company, messaging="team")
        ceo = self._hire("ceo", 0, None)
        leads = [self._hire(f"lead-{number}", 1, ceo) for number in range(4)]
        managers = [self._hire(f"manager-{n}", 2, leads[n % 4]) for n in range(9)]
        for number in range(36):
            self._hire(f"worker-{number}", 3, managers[number % 9])
        quirks = {
            "worker-0": "loops",
            "worker-1": "plans ten parts",
            "worker-2": "forgets to submit",
            "worker-9": "answers in text",
            "worker-11": "forgets to submit",
            "lead-0": "forgets to answer",
            "manager-4": "never judges",
        }
        for name, quirk in quirks.items():
            self.brains[name].quirk = quirk
        for worker in managers[8].reports[:2]:
            worker.quirk = "waits for its twin"
        managers[8].reports = managers[8].reports[:2]
        for name, scope in (("hours", leads[1]), ("day", leads[2]), ("never", leads[3])):
            self.sim.do(
                users.add,
                company=self.sim.company,
                name=name,
                role="board",
                scope=scope.member.id,
            )
            token = self.sim.do(users.create_token, company=self.sim.company, user=name)
            self.people[name] = Caller(token["token"])

    def _hire(self, name: str, level: int, boss: Brain | None) -> Brain:
        brain = Brain(self, name, level, boss)
        above = boss.member if boss else None
        brain.member = (
            self.sim.agent(name, brain.think, boss=above, perpetual=True)
            if (boss)
            else self.sim.agent(name, brain.think)
        )
        if boss is not None:
            boss.reports.append(brain)
        self.brains[name] = brain
        return brain

    def is_at_work(self, brain: Brain) -> bool:
        return self.sim.status(brain.member) not in ("terminated", "paused", "error")

    # ── what happens ────────────────────────────────────────────────────────────────────────

    def at(self, when: Micros, what: Callable[[], object]) -> None:
        heapq.heappush(self._events, (when, next(self._count), what))

    def _wish_through_the_week(self, count: int) -> None:
        for number in range(1, count + 1):
            when = self.begin + int(self.chance.uniform(HOUR, self.end - self.begin - LAST_WISH))
            person = self.chance.choice(["chair", "chair", "hours", "day", "never"])
            leads = {"chair": "ceo", "hours": "lead-1", "day": "lead-2", "never": "lead-3"}
            name = leads[person]
            if person == "chair":
                name = self.chance.choice(["ceo", "ceo", "lead-0"])
            self.at(when, lambda n=number, p=person, to=name: self.wish(n, p, to))  # type: ignore[misc]

    def wish(self, number: int, person: str, to: str) -> None:
        sent = self.sim.do(
            mail.send,
            self.people[person],
            company=self.sim.company,
            to=self.brains[to].member.address,
            body=f"wish {number}",
        )
        brain = self.brains[to]
        self.wishes[number] = Wish(number, person, brain, self.clock.now(), sent["id"])

    def troubles(self, *, closed: Micros, asleep: Micros, halted: Micros) -> None:
        """What goes wrong on top of people and models, each once."""
        length = self.end - self.begin
        self.close_provider(self.begin + int(0.1 * length), closed)
        self.at(self.begin + int(0.22 * length), lambda: self.stop_for(halted))
        self.at(self.begin + int(0.3 * length), lambda: self.sleep(asleep))
        self.kills = [self.begin + int(part * length) for part in (0.4, 0.18, 0.02)]
        self.at(self.begin + int(0.05 * length), self.send_poison)
        number = max([*self.wishes, 1000]) + 1
        for name in ("manager-8", "worker-9", "worker-0", "worker-1", "worker-2", "manager-4"):
            # Whoever has a quirk gets something to do at least once.
            when = self.begin + int(self.chance.uniform(0.01, 0.09) * length)
            self.at(when, lambda n=number, to=name: self.wish(n, "chair", to))  # type: ignore[misc]
            number += 1
        for name in ("ceo", "lead-0", "lead-1", "lead-2", "lead-3", "manager-0"):
            when = self.provider_closed[0] + int(self.chance.uniform(0, closed))
            self.at(when, lambda n=number, to=name: self.wish(n, "chair", to))  # type: ignore[misc]
            number += 1

    def close_provider(self, when: Micros, how_long: Micros) -> None:
        self.provider_closed = (when, when + how_long)
        unknown = 0 if self.says_until_when else LONGEST_PROBE
        self.holds.append((when, when + how_long + unknown + RAMP))
        for second in range(RAMP // SECOND):
            # A worker looks every second; here time leaps from one thing that is known to the next.
            self.at(when + how_long + second * SECOND, lambda: None)

    def stop_for(self, how_long: Micros) -> None:
        self.sim.do(halts.stop, company=self.sim.company, note="Lunch")
        for agent, run in list(self.running.items()):
            self.running.pop(agent)
            self._end(run, "failed", {"fault": "stopped", "exit_reason": "stopped"}, None)
        now = self.clock.now()
        self.holds.append((now, now + how_long))
        self._stopped = True
        self.at(now + how_long, self.go)

    def go(self) -> None:
        self.sim.do(halts.go, company=self.sim.company)
        self._stopped = False

    def sleep(self, how_long: Micros) -> None:
        self.holds.append((self.clock.now(), self.clock.now() + how_long))
        self.clock.advance(how_long)

    def kill(self) -> None:
        """The instance dies with everybody who is at work, and is up again a minute later."""
        self.sim.crash()
        self.sleep(MINUTE)
        for agent in self.running:
            self._ended[agent] = self.clock.now()
        self.running.clear()
        (lost,) = self.sql("SELECT count(*) FROM runs WHERE error LIKE 'the instance stopped%'")
        self.cut_off = lost[0]
        assert self.sim.ask(run_queue.live, caller=as_system()) == []

    def send_poison(self) -> None:
        sent = self.sim.do(
            mail.send,
            company=self.sim.company,
            to=self.brains["worker-5"].member.address,
            body=POISON,
        )
        self.poison = sent["id"]
        self.sim.do(
            mail.send,
            company=self.sim.company,
            to=self.brains["worker-5"].member.address,
            body="And a harmless one behind it.",
        )

    # ── time ────────────────────────────────────────────────────────────────────────────────

    def play(self) -> None:
        while self.clock.now() < self.end:
            self._events_now()
            while self.sim.do_async(self.sim.app.clockwork.tick()):
                pass
            self._sweep()
            while self._start_ready():
                pass
            if self.kills and self.kills[-1] <= self.clock.now() and len(self.running) > 1:
                self.kills.pop()
                self.kill()
                continue
            self._people()
            self.clock.advance(max(self._next() - self.clock.now(), SECOND // 10))
        self.look_for_answers()
        self._held_up_by_judges()
        self._held_up_together()

    def _events_now(self) -> None:
        while self._events and self._events[0][0] <= self.clock.now():
            heapq.heappop(self._events)[2]()

    def _next(self) -> Micros:
        known = self.sim.ask(run_queue.next_ready, caller=as_system())
        times: list[Micros | None] = [*known]
        times += [self.sim.ask(schedules.next_due, caller=as_system())]
        times += [when for when, *_ in self._events]
        now = self.clock.now()
        return min(
            [moment for moment in times if moment is not None and moment > now] + [now + LOOK_EVERY]
        )

    def _sweep(self) -> None:
        for agent in self.sim.ask(run_queue.misdated, caller=as_system()):
            self.sim.do(run_queue.redate, caller=as_system(), agent=agent)
        for company in self.sim.ask(run_queue.forgotten, caller=as_system()):
            self.sim.do(run_queue.sweep, caller=as_system(), company=company)

    def _start_ready(self) -> int:
        """Start whoever is ready; what they do may make others ready at once."""
        before = self.runs
        for agent in self.sim.ready():
            if agent not in self.running and len(self.running) < SLOTS:
                self._start(agent)
        return self.runs - before

    def _start(self, agent: str) -> None:
        run = self.sim.app.ids.new()
        due = self._due_since(agent)
        try:
            claimed = self.sim.do(
                run_queue.claim,
                caller=as_system(),
                agent=agent,
                run=run,
                workspace=f"/nowhere/{run}",
                worker="simulated",
            )
        except (Conflict, NotFound) as refusal:
            self.sim.refused(agent, refusal)
            return
        self.runs += 1
        self.latencies.append(self._waited(due))
        self.started_while_stopped += self._stopped
        now = self.clock.now()
        how_long = int(self.chance.uniform(20, 120) * SECOND)
        status, report = "completed", dict[str, Any]()
        self.touched = set()
        if self.provider_closed[0] <= now < self.provider_closed[1]:
            status, how_long = "failed", 5 * SECOND
            if self._known_closed:
                self._probes += 1
                self.most_probes = max(self.most_probes, self._probes)
                self.at(now + how_long, self._probe_ended)
            self.at(now + how_long, self._learn_of_closing)
            report = {"fault": "rate", "error": "The limit is reached."}
            if self.says_until_when:
                report["fault_until"] = self.provider_closed[1]
        else:
            if claimed["probe"]:
                self.sim.do(account_faults.answered, caller=as_system(), run=run)
            status, report = self._carry_out(agent, run, claimed["token"])
        for number in self.touched & self.wishes.keys():
            self.wishes[number].held_up.append((now, now + how_long))
        self.running[agent] = run
        self.at(now + how_long, lambda: self._finish(agent, run, status, report, claimed["seen"]))

    def _learn_of_closing(self) -> None:
        self._known_closed = True

    def _probe_ended(self) -> None:
        self._probes -= 1

    def _carry_out(self, agent: str, run: str, token: str) -> tuple[str, dict[str, Any]]:
        member = self.sim.members.get(agent)
        if member is None:
            member = self._adopt(agent)
        turn = Turn(self.sim, member, run, token)
        try:
            taken = self.sim.do(inbox.take, caller=Caller(token))
            turn.mail = [
                Letter(message["id"], message["sender"], message["subject"], message["body"])
                for message in taken["messages"]
            ]
            member.script(turn)
        except AgentDied as died:
            return "lost", {"error": str(died), "exit_reason": "crashed"}
        except ToolRefused as refusal:
            return "failed", {"error": str(refusal), "exit_reason": refusal.code}
        except RemitError as error:
            return "failed", {"error": error.sentence, "exit_reason": error.reason}
        return "completed", {"final_response": turn.words or "I did what I could."}

    def _adopt(self, agent: str) -> Member:
        """Somebody whom an agent hired."""
        member = self.sim.adopt(agent)
        brain = Brain(self, member.name, 3, None)
        brain.member = member
        member.script = brain.think
        self.brains[member.name] = brain
        return member

    def _finish(
        self, agent: str, run: str, status: str, report: dict[str, Any], seen: int | None
    ) -> None:
        if self.running.get(agent) == run:
            self.running.pop(agent)
            self._ended[agent] = self.clock.now()
            self._end(run, status, report, seen)

    def _end(self, run: str, status: str, report: dict[str, Any], seen: int | None) -> None:
        with contextlib.suppress(Conflict, NotFound):
            self.sim.do(
                runs.end, caller=as_system(), run=run, status=status, seen=seen, report=report
            )

    def _waited(self, since: Micros) -> Micros:
        """How long somebody waited whom nothing held up."""
        for begin, end in sorted(self.holds):
            if begin <= since < end:
                since = end
        return max(0, self.clock.now() - since)

    def _due_since(self, agent: str) -> Micros:
        (due,) = self.sql("SELECT due_at FROM agent_leases WHERE agent_id = :agent", agent=agent)
        return min(max(int(due[0]), self._ended.get(agent, 0)), self.clock.now())

    # ── people ──────────────────────────────────────────────────────────────────────────────

    def _people(self) -> None:
        if self.sim.database.changes == self._changes:
            return
        self._changes = self.sim.database.changes
        theirs: set[str] = set()
        for name in ("hours", "day", "never", "chair"):
            patience = PATIENCE[name]
            for item in self.sim.ask(
                needs_you.listing, self.people[name], company=self.sim.company
            ):
                key = f"{item['kind']} {item['id']}"
                if name != "chair":
                    theirs.add(key)
                elif key in theirs and not self._was_reminded(item):
                    continue
                if patience is not None and f"{name} {key}" not in self._known_items:
                    self._known_items[f"{name} {key}"] = self.clock.now()
                    when = self.clock.now() + (0 if item["kind"] == "mail" else patience)
                    self.at(when, lambda who=name, it=item: self._decide(who, it))  # type: ignore[misc]

    def _was_reminded(self, item: dict[str, Any]) -> bool:
        rows = self.sql("SELECT reminders FROM waits WHERE subject_id = :id", id=item["id"])
        return any(row[0] for row in rows)

    def _decide(self, person: str, item: dict[str, Any]) -> None:
        caller = self.people[person]
        since = self._since(item)
        with contextlib.suppress(RemitError):
            match item["kind"]:
                case "question":
                    self.sim.do(questions.answer, caller, question=item["id"], answer="Blue")
                case "approval":
                    self.sim.do(approvals.approve, caller, approval=item["id"], note="Yes")
                case "mail":
                    self.sim.do(inbox.acknowledge, caller, ids=[item["id"]])
        for number in re.findall(r"(?:wish |temp-)(\d{1,6})", item["title"]):
            if int(number) in self.wishes and item["kind"] != "mail":
                self.wishes[int(number)].held_up.append((since, self.clock.now()))

    def _since(self, item: dict[str, Any]) -> Micros:
        rows = self.sql("SELECT since FROM waits WHERE subject_id = :id", id=item["id"])
        return int(rows[0][0]) if rows else self.clock.now()

    def look_for_answers(self) -> None:
        """When each wish was answered: the first letter of its thread that went to a person."""
        for wish in self.wishes.values():
            rows = self.sql(
                "SELECT min(created_at) FROM messages WHERE thread_id = :thread"
                " AND sender_user_id IS NULL AND address NOT LIKE 'agent:%'",
                thread=wish.message,
            )
            wish.answered_at = rows[0][0]

    # ── looking ─────────────────────────────────────────────────────────────────────────────

    def _held_up_by_judges(self) -> None:
        """Who never judges takes their time, too: until somebody above did it."""
        rows = self.sql(
            "SELECT o.title, s.created_at, s.ended_at FROM submissions s"
            " JOIN outcomes o ON o.id = s.outcome_id WHERE o.delegator_id = :judge",
            judge=next(
                brain for brain in self.brains.values() if brain.quirk == "never judges"
            ).member.id,
        )
        for title, begin, end in rows:
            number = int((_WISH.search(title) or ["", "0"])[1])
            if number in self.wishes:
                self.wishes[number].held_up.append((begin, end or self.end))

    def _held_up_together(self) -> None:
        """Letters that one run read share what it made, and so what held that up."""
        together: dict[str, list[Wish]] = {}
        rows = self.sql("SELECT message_id, coalesce(shared_with, message_id) FROM wishes")
        by_message = {wish.message: wish for wish in self.wishes.values()}
        for message, first in rows:
            if message in by_message:
                together.setdefault(first, []).append(by_message[message])
        for wishes in together.values():
            held_up = [span for wish in wishes for span in wish.held_up]
            for wish in wishes:
                wish.held_up = held_up

    def dead(self) -> list[str]:
        """The letters that nobody reads any more."""
        rows = self.sql("SELECT message_id FROM deliveries WHERE status = 'dead'")
        return [POISON if message == self.poison else message for (message,) in rows]

    def news(self) -> int:
        """How often something happened that an agent is to be started for: a letter, a decision or
        verdict (which come as letters), or an outcome that somebody else gave it."""
        (letters,) = self.sql("SELECT count(*) FROM deliveries WHERE agent_id IS NOT NULL")[0]
        (outcomes,) = self.sql("SELECT count(*) FROM events WHERE action = 'outcome.delegate'")[0]
        return int(letters) + int(outcomes)

    def by_clock(self) -> int:
        """Runs that nothing but the clock was the reason for, and that changed nothing. Who plans
        ten parts and does one in each run is nudged for a reason."""
        idle = (
            "SELECT count(*) FROM runs WHERE occasion IN ('nudge', 'review') AND id NOT IN"
            " (SELECT run_id FROM events WHERE run_id IS NOT NULL"
            " AND action IN ('outcome.complete', 'outcome.submit', 'message.send'))"
        )
        return int(self.sql(idle)[0][0])

    def open_outcomes(self, quirk: str) -> list[str]:
        """What was handed to those with a quirk and did not come to an end."""
        names = {brain.member.id for brain in self.brains.values() if brain.quirk == quirk}
        rows = self.sql(
            "SELECT title, owner_id FROM outcomes WHERE status = 'open' AND title LIKE 'wish%'"
        )
        return [title for title, owner in rows if owner in names]

    def told(self, subject: str) -> int:
        rows = self.sql("SELECT count(*) FROM messages WHERE subject = :subject", subject=subject)
        return int(rows[0][0])

    def sql(self, statement: str, **values: Any) -> list[Any]:
        return self.sim.database.look(statement, values)
