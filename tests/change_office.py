"""A company that works on a repository by itself, made to be killed anywhere on the way.

An issue at the forge becomes an outcome; the root agent delegates it with the right to propose; the
author proposes, mends what a check and then the reviewer find, and hands in the merge; the root
accepts it, and the issue is told. The instance is a process that does what `remit up` does, and the
agents are programs in the sandbox; git and the API of the forge are served by the test.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from remit.clock import SECOND
from remit.model.messaging.mail import MOST_ATTEMPTS
from remit.services.changes import errands, watches
from remit.services.connections import repo_checks, repos, secrets
from remit.services.hiring import configuration
from remit.services.rights import grants
from remit.services.work import outcomes
from tests import runtime_stage
from tests.change_stage import give
from tests.company import Company, opened, run_sql
from tests.forge_server import TOKEN, Forge, forge
from tests.git_remote import git, trusting
from tests.kills import PAUSE, WAITS_FOR_A_DAY, free_port
from tests.organisation import problems
from tests.review_stage import Checkout
from tests.runtime_stage import Life, Stage
from tests.ssh_remote import ssh
from tests.test_archive import export

SECONDS = 180.0
#: A verb or a request, the moment, and which of them.
End = tuple[str, str, int]
TITLE = "Adding is wrong"
#: Works on the repository at the forge, and may push.
LEAD = "lead"
HOOK = "hook-s3cret-of-the-forge"
LOST = "^A run of .* failed$| does not get on$"
CHECK = 'python3 -B -c "import app; assert app.add(2, 3) == 5, app.add(2, 3)"'
#: As `tests.kills.PROGRAM`, through the tools. Each run finds out where things are and goes on.
PROGRAM = r"""
import json, os, re, socket, subprocess, sys
role, title, reviewed, sought = sys.argv[1:5]
host, port = os.environ["REMIT_URL"].removeprefix("http://").split(":")
TEXTS = ["def add(a, b):\n    return %s\n" % how for how in ("a - b", "b - a", "a + b")]
TEXTS += [TEXTS[-1].replace("\n", '\n    "Both together."\n', 1)]
def call(tool, **given):
    said = {"name": tool, "arguments": given}
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": said}).encode()
    head = ["POST /mcp HTTP/1.0", f"Host: {host}:{port}", f"Content-Length: {len(data)}",
        "Content-Type: application/json", "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2025-06-18", "Authorization: Bearer " + os.environ["REMIT_TOKEN"]]
    with socket.create_connection((host, int(port)), 60) as wire:
        wire.sendall("\r\n".join(head + ["", ""]).encode() + data)
        answer = b""
        while piece := wire.recv(65536):
            answer += piece
    found = json.loads(answer.partition(b"\r\n\r\n")[2])
    print(tool, given, str(found)[:600], flush=True)
    if "result" not in found or found["result"].get("isError"):
        sys.exit(f"{tool}: {found}")
    return found["result"]["structuredContent"]
def git(*words):
    subprocess.run(["git", "-C", "site", *words], check=True)
def work():
    return [one for one in call("outcome_list", status="open")["outcomes"] if one["title"] == title]
def propose(place, outcome=None):
    # What is proposed lasts; so whoever was killed after that sees it, and proposes nothing again.
    call("repo_clone", name="site", **({"ref": "fix"} if outcome is None else {}))
    if TEXTS.index(open("site/app.py").read()) >= place:
        return
    if outcome is not None:
        git("checkout", "--quiet", "-b", "fix")
    with open("site/app.py", "w") as file:
        file.write(TEXTS[place])
    git("commit", "--quiet", "--all", "--message", "Add")
    about = {"outcome_id": outcome} if outcome is not None else {}
    call("repo_propose", name="site", branch="fix", title="Add, do not subtract", **about)
def ask():
    if reviewed == "there":
        return
    (mine,) = call("repo_status")["changes"]
    if mine["status"] == "open":
        about = {"subject": "Please judge", "body": mine["id"] + " at " + mine["head"]}
        call("mail_send", to="agent:reviewer", **about, idempotency_key="ask-" + mine["head"])
def author(letter, subject, body):
    if subject.startswith(("Check", "Returned", "Changes requested")):
        propose(2 if subject.startswith("Check") else 3)
        ask()
    elif subject.startswith("Merged"):
        shown = re.search("kb_file:([0-9a-f-]+) says", body)[1]
        for one in work():
            call("outcome_submit", id=one["id"], evidence=[shown], note="It is in.",
                idempotency_key="submit-" + letter)
def reviewer(letter, subject, body):
    change, head = re.match("(\S+) at (\S+)", body).groups()
    (one,) = call("repo_status", change=change)["changes"]
    if (one["status"], one["head"]) != ("open", head):
        return
    seen = {"change": change, "head": head, "base": one["base"]}
    call("repo_clone", name="site", ref=head)
    if open("site/app.py").read() != TEXTS[-1]:
        call("repo_return", **seen, note="Say what it does.", idempotency_key="return-" + letter)
        return
    call("repo_merge", **seen, idempotency_key="merge-" + letter)
def ceo(letter, subject, body):
    found = re.search(r"\(outcome:([0-9a-f-]{36})\)", body)
    if subject.startswith("To judge") and found:
        call("outcome_complete", id=found[1], note="I saw the commit.",
            idempotency_key="accept-" + letter)
def look_for_credentials():
    # Spelled backwards, so that it is not found in what it is given itself.
    secrets, looked = [one[::-1].encode() for one in sought.split()], 0
    places = [os.environ["HOME"], os.getcwd(), "/tmp", "/run", "/etc", "/var/tmp", "/dev/shm"]
    found = [os.path.join(at, one) for place in places for at, _, names in os.walk(place)
        for one in names]
    found += ["/proc/%s/%s" % (pid, one) for pid in os.listdir("/proc") if pid.isdigit()
        for one in ("environ", "cmdline", "mountinfo")]
    for place in found:
        try:
            if os.path.isfile(place) and os.path.getsize(place) < 1 << 22:
                with open(place, "rb") as file:
                    content = file.read()
                looked += 1
                if any(one in content for one in secrets):
                    print("LEA" + "KED:", place, flush=True)
        except OSError:
            pass
    print("LOOK" + "ED:", looked, flush=True)
print(json.dumps(dict(os.environ)))
if role == "author":
    for one in work():
        if not call("repo_status")["changes"]:
            propose(1, one["id"])
if role == "ceo":
    for one in work():
        call("delegate", outcome_id=one["id"], to="author", grants=[{"resource": "repo:site",
            "level": "propose"}], idempotency_key="delegate-" + one["id"])
for letter in call("mail_inbox")["messages"]:
    globals()[role](letter["id"], letter["subject"], letter["body"])
    call("mail_ack", ids=[letter["id"]])
look_for_credentials()
"""


@dataclass
class Around:
    """What is around the repository, and opens it."""

    forge: Forge
    url: str
    secret: str
    known_hosts: str = ""

    @property
    def plain(self) -> bool:
        return not self.forge.kind


@contextlib.contextmanager
def around(kind: str, place: Path) -> Iterator[Around]:
    bare = place / "remotes" / "acme" / "site.git"
    if kind == "plain":
        yield Around(Forge(bare), str(bare), "")
    elif kind == "ssh":
        with ssh(place) as site:
            yield Around(Forge(bare), f"{site.url}{bare}", site.key, site.known_hosts)
    else:
        with forge(kind, bare, place) as host:
            yield Around(host, f"{host.base}/acme/site.git", TOKEN)
            assert host.violations == []


@dataclass
class ChangeOffice:
    around: Around
    place: Path
    stage: Stage
    #: Who is run by another adapter than programs are, and its settings.
    team: Mapping[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    #: Where its processes end, one after the other.
    ends: Sequence[End] = ()
    #: The forge calls when something happens; a person reviews and merges there.
    called: bool = False
    port: int = field(default_factory=free_port)
    process: int = 0
    #: How often its process ended.
    deaths: int = 0
    #: Which of these ends it had at rest.
    at_rest: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.home = self.place / "home"
        self.url = f"sqlite:///{self.home}/remit.db"
        self.forge, self.plain = self.around.forge, self.around.plain
        self.forge.watch = self._asked
        self.forge.pushers.add(LEAD)
        #: Programs that were told something which opens the repository.
        self.shown: list[str] = []
        self.there = Checkout(self.forge.bare.parent)
        with opened(self.url, self.home) as company:
            self._found(company)

    def _found(self, company: Company) -> None:
        here: Any = {"company": company.id}
        place = {"source": "env", "place": "FORGE_TOKEN"}
        company.call(company.board, secrets.put, **here, name="forge-token", **place)
        about: Any = {"url": self.around.url}
        if self.around.secret:
            about["secret"] = "forge-token"
        if not self.plain:
            about |= {"username": "bot", "forge": self.forge.kind}
            about |= {"people": LEAD, "label": "remit"}
        if self.called:
            where = {"source": "env", "place": "HOOK"}
            company.call(company.board, secrets.put, **here, name="hook", **where)
            about["hook"] = "hook"
        (self.home / "repos").mkdir(mode=0o700, exist_ok=True)
        (self.home / "repos" / "known_hosts").write_text(self.around.known_hosts)
        repo = company.call(company.board, repos.add, **here, name="site", **about)["id"]
        if self.called:
            self.forge.hook = (f"http://127.0.0.1:{self.port}/api/hooks/{repo}", HOOK)
        check: Any = {"repo": "site", "check": "test", "required": True}
        # At a forge the first proposal fails its check, and here ours.
        command = CHECK if self.plain else f"{CHECK} || true"
        company.call(company.board, repo_checks.set_check, **here, **check, command=command)
        adapter, config = self._set_up("ceo")
        changed = {"adapterType": adapter, "adapterConfig": config}
        company.call(company.board, configuration.change, agent="ceo", changes=changed)
        team = {}
        for name in ("author", "reviewer"):
            adapter, config = self._set_up(name)
            told: Any = {"adapter_type": adapter, "adapter_config": config, "perpetual": True}
            team[name] = company.agent(name, **told)
        give(company, company.ceo, "propose")
        give(company, team["reviewer"], "read")
        give(company, team["reviewer"], "merge", mode="allow")
        heard = {"resource": f"message:agent:{team['reviewer'].id}", "level": "use"}
        company.call(company.board, grants.give, **here, to=team["author"].id, **heard)
        if self.plain:
            company.call(company.board, outcomes.create, parent=company.ceo.id, title=TITLE)
        elif not self.called:
            self.forge.ticket(TITLE, "reporter", "remit", LEAD)

    def _set_up(self, name: str) -> tuple[str, dict[str, Any]]:
        where = "there" if self.called else "here"
        args = ["-I", "-S", "-c", PROGRAM, name, TITLE, where, " ".join(self._backwards())]
        return self.team.get(name) or ("process", {"command": "/usr/bin/python3", "args": args})

    def _credentials(self) -> list[bytes]:
        """What opens the repository, as it may be written somewhere; of a key, a line of it."""
        if not self.around.secret:
            return []
        secret = max(self.around.secret.splitlines(), key=len)
        basic = base64.b64encode(f"bot:{secret}".encode()).decode()
        return [secret.encode(), basic.encode(), HOOK.encode()]

    def _backwards(self) -> list[str]:
        return [credential.decode()[::-1] for credential in self._credentials()]

    # ── the process ─────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """By its own hand it ends at a verb, and by ours at a request."""
        here = self.ends[self.deaths : self.deaths + 1]
        crash = here[0] if here and " " not in here[0][0] else None
        self._requests = 0
        environ = {"FORGE_TOKEN": self.around.secret, "HOOK": HOOK, **self.environ}
        if not self.plain:
            environ |= trusting(self.forge.certificate)
        life = Life(
            self.url,
            str(self.home),
            kind="up",
            port=self.port,
            pause_seconds=PAUSE,
            crash=crash,
            environ=environ,
        )
        self.process = self.stage.begin(life, wait=False)

    def _asked(self, moment: str, request: str) -> None:
        if moment == "before" and ".git/" in request:
            self.look_at_programs()
        for step, when, which in self.ends[self.deaths : self.deaths + 1]:
            self._requests += moment == when and re.match(step, request) is not None
            if self._requests == which:
                self.kill()

    def play(self, pauses: Sequence[float] = ()) -> None:
        """Until the story is over; its process is killed after each of some pauses as well."""
        try:
            self.begin()
            for pause in pauses:
                self.until(partial(self._is_over_or, time.monotonic() + pause))
                self.kill()
            self.until(self.is_over)
        finally:
            self.kill()

    def _is_over_or(self, late: float) -> bool:
        return self.is_over() or time.monotonic() > late

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)

    def until(self, look: Callable[[], object], seconds: float = SECONDS) -> None:
        """Look until it is so; a process that ended is begun anew."""
        end_at = time.monotonic() + seconds
        while not look():
            if not Path(f"/proc/{self.process}").exists():
                self.deaths += 1
                self.begin()
            if self.around.known_hosts:  # nobody asks us, so it is looked at now and then
                self.look_at_programs()
            self.test_what_is_pushed()
            if self.called:
                self.review_there()
            assert time.monotonic() < end_at, ("it did not come to pass", self.state())
            time.sleep(0.2)

    def test_what_is_pushed(self) -> None:
        """What the forge does by itself: it tries each head of a request."""
        for pull in self.forge.pulls:
            with contextlib.suppress(AssertionError):  # the branch is there in a moment
                head = self.forge.head(pull.branch)
                if head not in self.forge.checks:
                    text = git(self.forge.bare, "show", f"{head}:app.py")
                    self.forge.check(head, "unit", "a + b" in text)

    def review_there(self) -> None:
        """What people do at the forge: one wants it worked on, looks at what passed, and takes it
        in once it says what it does."""
        if not self.forge.tickets:
            if self.sql("SELECT 1 FROM forge_watches WHERE looked_at IS NOT NULL"):
                self.forge.ticket(TITLE, "reporter", "remit", LEAD)
            return
        for pull in self.forge.pulls:
            head = self.forge.head(pull.branch)
            talks = [talk for talk in self.forge.talk if talk.commit == head]
            if pull.state != "open" or talks or not self._passed(head):
                continue
            about: Any = {"commit": head}
            if "Both" in git(self.forge.bare, "show", f"{head}:app.py"):
                self.forge.say(pull.number, LEAD, "Good.", verdict="approve", **about)
                self.forge.merge(pull, LEAD)
            else:
                note = "Say what it does."
                self.forge.say(pull.number, LEAD, note, verdict="changes", **about)

    def _passed(self, head: str) -> bool:
        return [good for _, _, good in self.forge.checks.get(head, [])] == [True]

    def look_at_programs(self) -> None:
        """No program is told on its command line what opens the repository, and in its environment
        git alone is."""
        secrets = self._credentials()
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                line, told = (place.joinpath(file).read_bytes() for file in ("cmdline", "environ"))
                for_git = b"REMIT_GIT_PASSWORD=" in told and b"REMIT_TOKEN=" not in told
                if any(secret in line or (secret in told and not for_git) for secret in secrets):
                    self.shown.append(line.decode(errors="replace"))

    def sql(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return run_sql(self.url, statement, *parameters)

    def is_over(self) -> bool:
        told = self.plain or self.sql("SELECT 1 FROM forge_issues WHERE told_at IS NOT NULL")
        done = self.sql("SELECT 1 FROM outcomes WHERE title = ? AND status = 'completed'", TITLE)
        if not (told and done and self.is_quiet()):
            return False
        if self.deaths < len(self.ends):
            # A run that has several letters takes steps together: it ends at rest instead.
            self.at_rest.add(self.deaths)
            self.kill()
            return False
        return True

    def is_quiet(self) -> bool:
        letters = f" AND agent_id IS NOT NULL AND NOT {WAITS_FOR_A_DAY}"
        tables = (("change_errands", ""), ("change_checks", ""), ("deliveries", letters))
        waiting = "SELECT count(*) FROM {} WHERE status IN ('queued', 'leased'){}"
        queries = [waiting.format(*table) for table in tables]
        queries.append("SELECT count(*) FROM runs WHERE status = 'running'")
        return all(self.sql(query) == [(0,)] for query in queries)

    def state(self) -> object:
        return {
            "outcomes": self.sql("SELECT title, status, owner_id FROM outcomes"),
            "changes": self.sql("SELECT status, revision, request_number FROM changes"),
            "errands": self.sql("SELECT kind, status, attempt, ended_why FROM change_errands"),
            "checks": self.sql("SELECT name, status, result, ended_why FROM change_checks"),
            "watch": self.sql("SELECT problem, next_at, lease_until FROM forge_watches"),
            "runs": self.sql("SELECT agent_id, status, substr(error, 1, 300) FROM runs"),
            "agents": self.sql("SELECT id, name, status FROM agents"),
            "mail": self.sql("SELECT m.subject, d.status, d.attempt FROM messages m"
                " JOIN deliveries d ON d.message_id = m.id"),
        }  # fmt: skip

    # ── what must be true at the end ────────────────────────────────────────────────────────

    def check(self) -> None:
        """One branch, one request, one merge, one letter each; the merge is the evidence."""
        bare = self.forge.bare
        heads = git(bare, "for-each-ref", "--format=%(refname)", "refs/heads").split()
        assert heads == ["refs/heads/main", "refs/heads/remit/author/fix"]
        assert len(git(bare, "rev-list", "--first-parent", "main").split()) == 2
        merge = self.there.main()
        assert self.sql("SELECT status, revision, merged_commit FROM changes") == [
            ("merged", 3, merge)
        ]
        if not self.plain:
            (pull,) = self.forge.pulls
            assert pull.merged == merge
            (ticket,) = self.forge.tickets
            (reply,) = [talk for talk in self.forge.talk if talk.about == ticket.number]
            assert f"/{pull.number}" in reply.body
            assert reply.body.startswith("This is done.")
        self._check_work(merge)
        self._check_mail()
        with opened(self.url, self.home) as company:
            assert problems(company) == []  # with the chain of events
            assert not list(company.app.settings.workspaces.iterdir())
            exported = export(company) if self.around.secret else b""
        self._check_credentials(exported)

    def _check_credentials(self, exported: bytes) -> None:
        """Nothing that opens the repository is in the record, a log, a file, an export, or on a
        command line; nor where the programs of agents looked for it."""
        assert not self.shown
        kept = [file.read_bytes() for file in self.home.rglob("*") if file.is_file()]
        for secret in self._credentials():
            assert secret not in exported
            assert not any(secret in content for content in kept)
        logs = "".join(text for (text,) in self.sql("SELECT text FROM run_logs"))
        assert re.findall("LEAKED: .*", logs) == []
        if not self.team:
            assert min(map(int, re.findall(r"LOOKED: (\d+)", logs))) > 20

    def _check_work(self, merge: str) -> None:
        work = "SELECT status, id FROM outcomes WHERE title = ?"
        ((status, outcome),) = self.sql(work, TITLE)
        assert status == "completed"
        handed_in = "SELECT status, evidence FROM submissions WHERE outcome_id = ?"
        ((verdict, evidence),) = self.sql(handed_in, outcome)
        assert verdict == "accepted"
        with opened(self.url, self.home) as company:
            (file,) = (entry["id"] for entry in json.loads(evidence))
            assert f"- commit: {merge}" in company.read(company.board, file)[1].decode()

    def _check_mail(self) -> None:
        letters = self.sql(
            "SELECT m.subject, d.status FROM messages m JOIN deliveries d ON d.message_id = m.id"
            " WHERE d.agent_id IS NOT NULL"
        )
        undone = f"agent_id IS NOT NULL AND status <> 'done' AND NOT {WAITS_FOR_A_DAY}"
        about = "Add, do not subtract"
        failed = "Check test failed" if self.plain else "Check failed"
        once = [f"{event}: {about}" for event in (failed, "Merged")]
        once += [f"{verdict}: {about}" for verdict in self._verdicts()]
        once += [f"To judge: {TITLE}", f"Accepted: {TITLE}"]
        assert self.sql(f"SELECT id FROM deliveries WHERE {undone}") == [], letters  # noqa: S608
        # A boss hears of runs that were lost, too.
        expected = dict.fromkeys(once, 1)
        if not self.called:
            expected["Please judge"] = 2
        subjects = Counter(subject for subject, _ in letters if not re.search(LOST, subject))
        # Once for each of the three at most; whoever decided sooner spares its author that.
        assert subjects.pop(f"All checks passed: {about}", 0) <= 3, letters
        if self.forge.kind == "gitlab":
            # A verdict and its words are two things there, and two looks may see them.
            assert subjects.pop(f"Comments: {about}", 0) <= len(self._verdicts()), letters
        if self.deaths >= MOST_ATTEMPTS:
            # Killed each time that it ran, a check is given up, and its author hears of it.
            assert subjects.pop(f"Check test could not be run: {about}", 0) <= 1, letters
        assert subjects == Counter(expected), letters

    def _verdicts(self) -> tuple[str, ...]:
        return ("Changes requested", "Approved") if self.called else ("Returned",)


def main(pause: float = 0.8) -> None:
    # Times that fit a test; what happens in them stays the same.
    for name, seconds in (("SOON", pause), ("LATER", pause), ("_LEAST", 0.1)):
        setattr(watches, name, int(seconds * SECOND))
    setattr(watches, "PAUSES", (SECOND // 5,))  # noqa: B010  as the others
    setattr(errands, "BACKOFF", (SECOND // 5,))  # noqa: B010
    runtime_stage.main()
