"""From an issue to a merged change without a hand, played by real agents and by programs that are
killed, with the instance, at each step in turn.

One branch, one request, one merge and one letter about each thing, wherever and however often it
was killed; nothing is lost.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from remit.runtime.sandbox import sandbox_policy
from tests import runtime_stage
from tests.agents.fake_model import Request, Say, Step, ToolResult, Use
from tests.change_office import SECONDS, TITLE, ChangeOffice, End, around
from tests.forge_server import TOKEN
from tests.real_programs import KEY, Fake, answer_of, command, config, model, said_to, tool
from tests.runtime_stage import Stage

MOMENTS = ("before", "inside", "after")
#: What happens in the story, and how often: the verb that keeps it.
WORK = {
    **dict.fromkeys(("claiming.claim", "runs.end"), 8),
    "inbox.acknowledge": 6,
    "repos.use": 5,
    "mail.send": 2,
    **dict.fromkeys(("delegation.delegate", "outcomes.submit", "outcomes.complete"), 1),
    "changes.return": 1,
    **dict.fromkeys(("changes.prepare", "changes.propose"), 3),
    **dict.fromkeys(("checks.claim", "checks.delivered"), 3),
}
OUTSIDE = {
    "errands.claim": 4,
    **dict.fromkeys(("errands.pushing", "errands.published", "errands.delivered"), 3),
    **dict.fromkeys(("changes.merge", "reviews.intend", "reviews.taken_in"), 1),
}
FORGE = {
    "watches.claim": 4,
    "watches.ended": 4,
    "requests.observe": 4,
    "requests.opened": 3,
    "issues.take": 1,
    "issues.told": 1,
}
#: What a forge sets going that calls, and how often.
CALLED = {
    "watches.ring": 8,
    "watches.claim": 4,
    "requests.observe": 5,
    "watches.ended": 4,
    "issues.take": 1,
    "issues.told": 1,
}
#: Requests that do something at the forge, and how often.
REQUESTS = {
    r"POST .*git-receive-pack$": 3,
    r"POST .*/pulls$": 1,
    r"PATCH .*/pulls/\d+$": 2,
    r"PUT .*/merge$": 1,
    r"POST .*/issues/\d+/comments$": 1,
}
#: What `make test` tries, several in one story; the rest is the campaign.
FEW = [
    (
        "ssh",
        [
            ("errands.pushing", "after", 1),
            ("checks.delivered", "inside", 1),
            ("reviews.intend", "after", 1),
            ("outcomes.submit", "inside", 1),
        ],
    ),
    (
        "github",
        [
            ("issues.take", "after", 1),
            ("requests.opened", "before", 1),
            (r"PUT .*/merge$", "after", 1),
            ("issues.told", "inside", 1),
        ],
    ),
]
WHOLE = pytest.mark.campaign("every other step of the same story, killed there")
#: Each with several kills, at moments that nobody chose.
SEEDS = range(15)


def cases() -> list[Any]:
    each = cycle(MOMENTS)
    steps = [
        ("plain", (verb, next(each), which))
        for verb, count in {**WORK, **OUTSIDE}.items()
        for which in range(1, count + 1)
    ]
    steps += [
        ("github", (verb, moment, which))
        for verb, count in {**OUTSIDE, **FORGE}.items()
        for which in range(1, count + 1)
        for moment in MOMENTS
    ]
    steps += [
        ("github", (request, moment, which))
        for request, count in REQUESTS.items()
        for which in range(1, count + 1)
        for moment in ("before", "after")
    ]
    few = [pytest.param(*one, id=one[0]) for one in FEW]
    return few + [
        pytest.param(kind, [step], id="-".join((kind, *map(str, step))), marks=WHOLE)
        for kind, step in steps
    ]


def calls() -> list[Any]:
    """Each step of a forge that calls, one forge after the other: at each moment where calls are
    sent again, and at one of them where they are lost."""
    kinds, each = cycle(("github", "gitlab", "gitea")), cycle(MOMENTS)
    steps = [(verb, which) for verb, most in CALLED.items() for which in range(1, most + 1)]
    ends = [(True, (verb, moment, which)) for verb, which in steps for moment in MOMENTS]
    ends += [(False, (verb, next(each), which)) for verb, which in steps]
    named = {True: "sent-again", False: "lost"}
    return [
        pytest.param(kind, step, kept, id="-".join((kind, named[kept], *map(str, step))))
        for kind, (kept, step) in zip(kinds, ends, strict=False)
    ]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    if not sandbox_policy.look().usable:
        pytest.skip("there is no sandbox here")
    with runtime_stage.opened("tests.change_office") as found:
        yield found


@pytest.fixture(scope="module")
def called(stage: Stage) -> Iterator[Stage]:
    """Where a forge is looked at when it calls."""
    with runtime_stage.opened("tests.called_office") as found:
        yield found


class Model:
    """What the model of somebody in the story answers; it remembers nothing."""

    def __init__(self, kind: str, role: str) -> None:
        self.kind, self._role = kind, role
        self.fake: Fake

    def __call__(self, request: Request) -> Sequence[Step]:
        told = said_to(dict(request))
        results = [one.text for one in self.fake.results_in(request)]
        steps: Sequence[Step] = getattr(self, f"_{self._role}")(told, results)
        return [*steps, Say("That is all.")]

    def _use(self, name: str, given: Any = None) -> Use:
        return Use(tool(self.kind, name), given or {})

    def _shell(self, line: str) -> Use:
        if self.kind == "claude":
            return Use("Bash", {"command": line, "description": "work"})
        return Use("exec_command", {"cmd": line})

    def _ceo(self, told: str, _: list[str]) -> Sequence[Step]:
        if found := re.search(r"To judge: .*\(outcome:([0-9a-f-]{36})\)", told):
            return [self._use("outcome_complete", {"id": found[1], "note": "I saw the commit."})]
        grants = [{"resource": "repo:site", "level": "propose"}]

        def delegate(listed: ToolResult) -> dict[str, Any]:
            return {"outcome_id": outcome(listed), "to": "author", "grants": grants}

        return [self._use("outcome_list"), self._use("delegate", delegate)]

    def _author(self, told: str, _: list[str]) -> Sequence[Step]:
        if f"Accepted: {TITLE}" in told:
            return []
        if found := re.search("kb_file:([0-9a-f-]{36}) says", told):
            evidence = [found[1]]

            def submit(listed: ToolResult) -> dict[str, Any]:
                return {"id": outcome(listed), "evidence": evidence, "note": "It is in."}

            return [self._use("outcome_list"), self._use("outcome_submit", submit)]
        proposal = {"name": "site", "branch": "fix", "title": "Add, do not subtract"}
        propose = self._use("repo_propose", proposal)
        commit = "git -C site commit --quiet --all --message Add"
        clone = self._use("repo_clone", {"name": "site", "ref": "fix"})
        if "Returned: Add" in told:
            edit = self._shell(f"sed -i '1a\\    \"Both.\"' site/app.py && {commit}")
        elif "Check failed: Add" in told:
            edit = self._shell(f"sed -i 's/b - a/a + b/' site/app.py && {commit}")
        elif "All checks passed: Add" in told:
            return []
        else:
            clone = self._use("repo_clone", {"name": "site"})
            edit = self._shell(
                f"git -C site checkout -q -b fix && sed -i 's/a - b/b - a/' site/app.py && {commit}"
            )
            return [clone, edit, propose]

        def ask(proposed: ToolResult) -> dict[str, Any]:
            change = answer_of(proposed)["change"]
            return {"to": "agent:reviewer", "subject": "Please judge", "body": f"It is {change}."}

        return [clone, edit, propose, self._use("mail_send", ask)]

    def _reviewer(self, told: str, results: list[str]) -> Sequence[Step]:
        (change,) = set(re.findall("It is ([0-9a-f-]{36})", told))

        def clone(shown: ToolResult) -> dict[str, Any]:
            return {"name": "site", "ref": answer_of(shown)["changes"][0]["head"]}

        steps = [
            self._use("repo_status", {"change": change}),
            self._use("repo_clone", clone),
            self._shell("cat site/app.py"),
        ]
        if len(results) < len(steps):
            return steps
        one = answer_of(ToolResult(results[0]))["changes"][0]
        seen = {"change": change, "head": one["head"], "base": one["base"]}
        if "Both." in results[2]:
            return [*steps, self._use("repo_merge", seen)]
        return [*steps, self._use("repo_return", {**seen, "note": "Say what it does."})]


def outcome(listed: ToolResult) -> str:
    (found,) = (one["id"] for one in answer_of(listed)["outcomes"] if one["title"] == TITLE)
    return str(found)


MODELS = {"claude": {"tools": None, "permissionMode": "bypassPermissions"}, "codex": {}}
#: In this order: the root agent, the author and the reviewer.
CASTS = [
    ("codex", "claude", "codex"),
    pytest.param(
        *("claude", "codex", "claude"), marks=pytest.mark.campaign("the same with others")
    ),
]


@pytest.mark.timeout(5 * SECONDS)
@pytest.mark.requirement("FX-20", "FX-28", "FX-29", "FX-30", "FX-31")
@pytest.mark.parametrize(("ceo", "author", "reviewer"), CASTS)
def test_real_agents_go_from_an_issue_to_a_merged_change(
    stage: Stage, tmp_path: Path, ceo: str, author: str, reviewer: str
) -> None:
    cast = {"ceo": Model(ceo, "ceo"), "author": Model(author, "author")}
    cast["reviewer"] = Model(reviewer, "reviewer")
    team: dict[str, Any] = {}
    environ = {"HOME": "/nonexistent", "ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    with ExitStack() as models, around("github", tmp_path) as place:
        for name, one in cast.items():
            command(one.kind)
            one.fake = models.enter_context(model(one.kind, one))
            team[name] = (one.kind, config(one.kind, one.fake, **MODELS[one.kind]))
        office = ChangeOffice(place, tmp_path, stage, team, environ)
        office.play()
        assert [one.fake.failures for one in cast.values()] == [[], [], []]
        office.check()
        assert TOKEN not in json.dumps([one.fake.requests for one in cast.values()])


@pytest.mark.timeout(5 * SECONDS)
@pytest.mark.parametrize("kind", ["gitlab", "gitea"])
@pytest.mark.campaign("another way to ask for the same; test_forges has each request of it")
def test_the_same_at_another_forge(stage: Stage, tmp_path: Path, kind: str) -> None:
    with around(kind, tmp_path) as place:
        office = ChangeOffice(place, tmp_path, stage)
        office.play()
        office.check()


@pytest.mark.timeout(5 * SECONDS)
@pytest.mark.requirement("FX-31")
@pytest.mark.parametrize("kind", ["github", "gitlab", "gitea"])
@pytest.mark.campaign("the whole story of what test_forges shows of a call and a review")
def test_a_forge_that_calls_is_heard_and_people_review_and_merge_there(
    called: Stage, tmp_path: Path, kind: str
) -> None:
    with around(kind, tmp_path) as place:
        office = ChangeOffice(place, tmp_path, called, called=True)
        office.play()
        office.check()


@pytest.mark.timeout(5 * SECONDS)
@pytest.mark.requirement("AG-24", "FX-28", "FX-30", "FX-31")
@pytest.mark.parametrize(("kind", "steps"), cases())
def test_an_instance_is_killed_between_an_issue_and_its_merge(
    stage: Stage,
    tmp_path: Path,
    kind: str,
    steps: list[End],
    record_property: Callable[[str, object], None],
) -> None:
    with around(kind, tmp_path) as place:
        office = ChangeOffice(place, tmp_path, stage, ends=steps)
        office.play()
        office.check()
        record_property("killed at rest", len(office.at_rest))


@pytest.mark.timeout(5 * SECONDS)
@pytest.mark.requirement("FX-31")
@pytest.mark.parametrize(("kind", "step", "kept"), calls())
@pytest.mark.campaign("whole stories; test_forges dies at each of these steps")
def test_an_instance_is_killed_while_the_forge_calls(
    stage: Stage, called: Stage, tmp_path: Path, kind: str, step: End, kept: bool
) -> None:
    with around(kind, tmp_path) as place:
        # Nobody looks by himself where calls are kept; where they are lost, somebody does.
        place.forge.insistent = kept
        office = ChangeOffice(place, tmp_path, called if kept else stage, ends=[step], called=True)
        try:
            office.play()
            office.check()
            if kept and step[0] == "watches.ring" and not office.at_rest:
                assert place.forge.sent_again, "whoever was killed had not answered"
        finally:
            place.forge.insistent = False


@pytest.mark.campaign("minutes for moments that nobody chose")
@pytest.mark.timeout(5 * SECONDS)
@pytest.mark.requirement("FX-31")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["github", "gitlab", "gitea"])
def test_an_instance_is_killed_again_and_again_while_the_forge_calls(
    called: Stage, tmp_path: Path, kind: str, seed: int
) -> None:
    moments = random.Random(f"{kind} calls {seed}")
    with around(kind, tmp_path) as place:
        place.forge.insistent = True
        office = ChangeOffice(place, tmp_path, called, called=True)
        try:
            office.play([moments.random() * 4 for _ in range(6)])
            office.check()
        finally:
            place.forge.insistent = False


@pytest.mark.campaign("minutes for moments that nobody chose")
@pytest.mark.timeout(5 * SECONDS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["ssh", "github"])
def test_an_instance_is_killed_again_and_again(
    stage: Stage, tmp_path: Path, kind: str, seed: int
) -> None:
    moments = random.Random(f"{kind} {seed}")
    with around(kind, tmp_path) as place:
        office = ChangeOffice(place, tmp_path, stage)
        office.play([moments.random() * 4 for _ in range(6)])
        office.check()
