"""The organisation on the command line: child processes against a real instance."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from remit.clock import SystemClock, to_iso
from remit.entrypoints.cli.drawing import reorganisation, trees
from tests.company import run_sql
from tests.test_cli import Home, only, refused, remit

__all__ = ["only", "remit"]  # fixtures

HOSTILE = "Ship [bold]it[/bold] 宣伝 " + "and more " * 15


@pytest.fixture
def staffed(only: Home) -> Home:
    """A company with a boss and two reports, where nobody has to be asked."""
    only.json("company", "set", "--approve-hires", "no")
    only.json("agent", "set", "ceo", "name=boss", "title=Chief")
    for name in ("left", "right"):
        aim = ("--purpose", f"See to the {name}", "--once")
        only.json("agent", "create", name, "--boss", "boss", *aim)
    return only


def names(home: Home) -> list[str]:
    """The tree of agents, without what else is said about them."""
    return [line.partition(" (")[0] for line in home("org", "tree").out.splitlines()[1:]]


# Outcomes


@pytest.mark.requirement("AG-93", "FX-06")
def test_outcomes_are_created_listed_changed_and_finished(staffed: Home) -> None:
    first = staffed.json("outcome", "create", "First", "--parent", "boss")
    second = staffed.json(
        *("outcome", "create", HOSTILE, "--parent", "boss", "--blocked-by", first["id"]),
        *("--urgent", "--important", "--description", "*why*\nand how"),
    )
    assert (second["urgent"], second["important"], second["actionable"]) == (True, True, False)
    listed = staffed("outcome", "list", "--owner", "boss").out.splitlines()
    assert listed[0].split() == ["TITLE", "RANK", "STATUS", "OWNER", "DELEGATED", "ID"]
    assert any(
        HOSTILE.strip() in line and "!*" in line and "open, waits" in line for line in listed
    )
    ready = staffed.json("outcome", "list", "--owner", "boss", "--actionable")
    assert [one["id"] for one in ready] == [first["id"]]
    assert staffed.json("outcome", "list", "--stale") == []
    looked_at = "UPDATE outcomes SET reviews = 9 WHERE id = ?"  # which takes days
    run_sql(f"sqlite:///{staffed.folder}/remit.db", looked_at, first["id"])
    stale = staffed.json("outcome", "list", "--stale")
    assert [one["id"] for one in stale] == [first["id"]]

    shown = staffed("outcome", "show", second["id"][:18]).out
    for said in ("urgent, important", "owner      boss", "*why*\nand how", "Waits for:\n  First"):
        assert said in shown, shown
    assert re.search(r"outcome\.create by u\w+$", shown, re.MULTILINE)

    changed = staffed.json(
        *("outcome", "update", second["id"], "--title", "Second", "--not-urgent", "--unblock"),
        *("--defer", "2999-01-01T00:00:00Z"),
    )
    assert (changed["title"], changed["urgent"], changed["important"]) == ("Second", False, True)
    assert "deferred to 2999-01-01" in staffed("outcome", "show", second["id"]).out
    changed = staffed.json("outcome", "update", second["id"], "--defer", "never")
    assert changed["actionable"] is True
    stale = staffed("outcome", "update", second["id"], "--title", "x", "--version", "1")
    refused(stale, 4, "version 3")
    refused(staffed("outcome", "update", second["id"]), 2, "Nothing")
    refused(staffed("outcome", "create", "x", "--parent", "nobody"), 3, "nobody")
    refused(staffed("outcome", "create", "x"), 2, "--parent")

    file = staffed.json("kb", "create", "Proof", stdin=b"it works")
    done = staffed.json(
        "outcome", "complete", first["id"], "--evidence", f"kb://{file['id']}", "--note", "seen"
    )
    assert done["verdict"]["evidence"][0]["id"] == file["id"]
    assert f"kb://{file['id']} version 1" in staffed("outcome", "show", first["id"]).out
    assert staffed.json("outcome", "reopen", first["id"])["status"] == "open"
    refused(staffed("outcome", "reopen", first["id"]), 4, "open")
    assert "closed" in staffed("outcome", "close", first["id"], "Not wanted").out


@pytest.mark.requirement("AG-93")
def test_the_tree_of_outcomes_is_drawn(staffed: Home) -> None:
    big = staffed.json("outcome", "create", HOSTILE, "--parent", "boss", "--urgent")["id"]
    part = staffed.json("outcome", "create", "Part", "--parent", big)["id"]
    staffed.json("outcome", "create", "Shared", "--parent", part, "--also", big)
    done = staffed.json("outcome", "create", "Finished", "--parent", big)["id"]
    staffed.json("outcome", "complete", done)
    assert staffed("outcome", "tree", big).out.splitlines() == [
        f"! {HOSTILE.strip()}  open, waits · boss",
        f"├── {'Part':68}  open, waits · boss",
        f"│   └── {'Shared':64}  shown elsewhere",
        f"├── {'Shared':68}  open, ready · boss",
        f"└── {'Finished':68}  completed · boss",
        "",
        "! urgent  * important",
    ]
    narrow = staffed("outcome", "tree", environment={"COLUMNS": "80"}).out
    assert "Help the people of this company" in narrow.splitlines()[0]
    assert "… " in narrow
    assert "delegated to left" in narrow
    assert max(map(cell_len, narrow.splitlines())) <= 80

    assert "Finished" not in staffed("outcome", "tree", "--open").out
    short = staffed("outcome", "tree", "--depth", "1").out
    assert "└── … 3 more below" in short
    assert "Part" not in short
    assert part in staffed("outcome", "tree", big, "--ids").out
    (tree,) = staffed.json("outcome", "tree", "--depth", "0")
    assert (tree["children"], tree["more"]) == ([], 3)
    key = staffed("agent", "token", "left").out.strip()
    assert staffed("outcome", "tree", "--token", key).out.startswith("See to the left  open, ready")
    refused(staffed("outcome", "tree", "nobody"), 3, "nobody")


def test_an_outcome_is_delegated_and_reclaimed(staffed: Home) -> None:
    whole = staffed.json("outcome", "create", "Whole", "--parent", "boss")["id"]
    staffed.json("outcome", "create", "Part", "--parent", whole)
    file = staffed.json("kb", "create", "Needed", stdin=b"x")
    refused(staffed("outcome", "delegate", whole), 2, "--hire")
    refused(staffed("outcome", "delegate", whole, "--to", "left", "--role", "pm"), 2, "--hire")
    handed = staffed(
        *("outcome", "delegate", whole, "--hire", "hired", "--role", "engineer"),
        *("--adapter", "scripted", "--config", "{}", "--prompt", "Be good."),
        *("--grant", f"kb_file:{file['id']}", "read"),
    )
    assert handed.out.startswith("hired is responsible for it, with 1 below it.\n"), handed.err
    held = staffed("grant", "list", "--agent", "hired").out
    assert re.search(r"^hired +outcome:\S+ +read .* by rule$", held, re.MULTILINE)
    assert re.search(r"^hired +kb_file:\S+ +read .* granted by", held, re.MULTILINE)
    refused(staffed("outcome", "delegate", whole, "--to", "left"), 4, "already")

    back = staffed("outcome", "reclaim", "hired", "Too slow.")
    assert "shut down: hired" in back.out
    handover = re.search(r"remit kb cat (\S+)`", back.out)
    assert handover is not None
    assert "Too slow." in staffed("kb", "cat", handover[1]).out
    refused(staffed("outcome", "reclaim", "hired", "Again."), 4, "not delegated")


def test_outcomes_of_a_named_company_go_by_short_ids(remit: Home, staffed: Home) -> None:
    (company,) = staffed.json("company", "list")
    there = ("--company", company["id"])
    made = remit.json(*there, "outcome", "create", "Here", "--parent", "boss")
    assert remit.json(*there, "outcome", "show", made["id"][:23])["title"] == "Here"
    refused(remit(*there, "outcome", "show", "0123456789ab"), 3, "outcome")


def test_a_list_is_watched_until_it_is_interrupted(staffed: Home) -> None:
    with staffed.start("outcome", "list", "--owner", "left", "--watch", "--json") as watching:
        try:
            assert watching.stdout is not None
            first = json.loads(watching.stdout.readline())
            assert first["title"] == "See to the left"
            staffed.json("outcome", "create", "News", "--parent", "left")
            seen = [first]
            while seen[-1]["title"] != "News":
                seen.append(json.loads(watching.stdout.readline()))
            # What is as it was is not said again.
            assert all(one not in seen[:number] for number, one in enumerate(seen))
            watching.send_signal(signal.SIGINT)
            assert watching.wait(60) == 0
        finally:
            watching.kill()


def test_a_screen_is_drawn_anew_when_something_happens(staffed: Home) -> None:
    main, terminal = pty.openpty()
    with subprocess.Popen(
        staffed.command("agent", "list", "--watch"),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**staffed.environment, "TERM": "xterm", "COLUMNS": "120", "LINES": "30"},
        start_new_session=True,
    ) as process:
        try:
            os.close(terminal)
            seen, renamed, end = "", False, time.monotonic() + 60
            while "newcomer" not in seen and time.monotonic() < end:
                if select.select([main], [], [], 1)[0]:
                    seen += os.read(main, 65536).decode(errors="replace")
                if "Ctrl-C ends it." in seen and not renamed:
                    renamed = staffed("agent", "set", "left", "name=newcomer").code == 0
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()
    os.close(main)
    assert seen.count("\x1b[2J") >= 2
    assert "newcomer" in seen


def test_the_example_of_a_company_is_applied_as_it_is(only: Home) -> None:
    file = str(Path(__file__).parent.parent / "examples" / "company.toml")
    tried = only("apply", file, "--dry-run").out
    assert "+ agent author" in tried
    assert tried.endswith("4 to create, 2 to change, 0 unchanged.\n")
    assert [one["name"] for one in only.json("agent", "list")] == ["ceo"]
    # It says what the agents would run and be lent, and asks; nobody is there to answer.
    refused(only("apply", file), 2, "Nobody can be asked to accept it.")
    assert [one["name"] for one in only.json("agent", "list")] == ["ceo"]
    assert only("apply", file, "--yes").out.endswith("4 created, 2 changed, 0 unchanged.\n")
    assert names(only) == ["└── ceo", "    └── editor", "        └── author"]
    assert only("apply", file).out.endswith("There is nothing to do.\n")


# Agents and the tree


@pytest.mark.requirement("AG-93")
def test_agents_are_paused_resumed_and_their_logs_read(staffed: Home) -> None:
    assert staffed("agent", "pause", "left").out.startswith("left is paused; `remit resume")
    refused(staffed("agent", "pause", "left"), 4, "left is paused already.")
    assert "└── left (general) paused" in staffed("org", "tree").out.replace("├", "└")
    assert staffed("agent", "resume", "left").out.startswith("left is resumed; ")
    refused(staffed("agent", "resume", "left"), 4, "not paused")
    nothing = staffed("agent", "logs", "left").out
    assert nothing.startswith("Its runs have reported no activity.\n")
    assert "remit agent logs left --printed" in nothing
    assert staffed.json("agent", "logs", "left") == []
    assert "seat" not in staffed("agent", "show", "left").out
    assert "log " in staffed("agent", "show", "left").out


def test_a_reorganisation_is_previewed_carried_out_and_undone(staffed: Home) -> None:
    before = names(staffed)
    command = ("org", "insert-layer", "middle", "left", "right", "--role", "cto")
    tried = staffed(*command, "--dry-run")
    assert tried.out.startswith("This would change (nothing was changed):\n")
    assert names(staffed) == before
    done = staffed(*command)
    assert done.out.startswith("Done:\n")
    assert names(staffed) == ["└── boss", "    └── middle", "        ├── left", "        └── right"]

    def told(text: str) -> list[str]:
        lines = text.splitlines()[2:]
        return [line for line in lines if line and "holds" not in line and "undo" not in line]

    assert told(tried.out) == told(done.out)
    boss = done.out.partition("\nboss\n")[2].partition("\nmiddle\n")[0].splitlines()
    assert "  gains  is boss of middle" in boss
    assert "  loses  is boss of left, right" in boss

    event = re.search(r"remit org undo (\S+)`", done.out)
    assert event is not None
    assert "gains  is boss of left, right" in staffed("org", "undo", event[1], "--dry-run").out
    assert names(staffed)[1] == "    └── middle"
    staffed("org", "undo", event[1])
    assert names(staffed) == before
    refused(staffed("org", "undo", event[1]), 4, "")
    refused(staffed("org", "undo", "0123456789ab"), 3, "reorganisation")


def test_agents_move_and_layers_go(staffed: Home) -> None:
    moved = staffed("agent", "move", "right", "left")
    assert "left\n  gains  is boss of right" in moved.out, moved.err
    assert names(staffed) == ["└── boss", "    └── left", "        └── right"]
    refused(staffed("org", "move", "boss", "right"), 4, "below")
    refused(staffed("org", "move", "nobody", "boss"), 3, "nobody")
    gone = staffed("org", "remove-layer", "left")
    assert "boss\n  gains  is boss of right" in gone.out
    assert names(staffed) == ["└── boss", "    └── right"]
    staffed.json("org", "move", "right", "board")
    assert names(staffed) == ["├── boss", "└── right"]


def test_a_person_takes_a_seat_and_gives_it_back(staffed: Home) -> None:
    (person,) = (one["name"] for one in staffed.json("user", "list") if one["name"][0] == "u")
    tried = staffed("org", "seat", "left", "--user", person, "--dry-run").out
    assert f"{person} (a person)\n  gains  acts as left" in tried
    assert staffed.json("agent", "show", "left")["seat_user_id"] is None
    staffed.json("org", "seat", "left", "--user", person)
    assert re.search(rf"^seat +{person}$", staffed("agent", "show", "left").out, re.MULTILINE)
    staffed.json(
        "org", "seat", "left", "--adapter", "scripted", "--config", '{"timeoutSeconds": 5}'
    )
    assert staffed.json("agent", "show", "left")["adapter_type"] == "scripted"
    refused(staffed("org", "seat", "left"), 2, "--user")
    refused(staffed("org", "seat", "left", "--user", "nobody"), 3, "user")
    refused(staffed("org", "seat", "left", "--adapter", "x"), 2, "adapter")


def test_the_past_is_shown(staffed: Home) -> None:
    file = staffed.json("kb", "create", "Notes", stdin=b"then\x00")
    staffed.json("grant", "give", "left", f"kb_file:{file['id']}", "read")
    then = to_iso(SystemClock().now())
    staffed.json("kb", "write", file["id"], stdin=b"now")
    staffed.json("org", "move", "right", "left")
    drawn = staffed("as-of", then, "org").out.splitlines()
    assert drawn[0].endswith(f" at {then}")
    assert drawn[1:] == ["└── boss (ceo)", "    ├── left (general)", "    └── right (general)"]
    held = staffed("as-of", then, "grants", "--agent", "left").out
    assert re.search(r"^left +kb_file:\S+ +read +allow", held, re.MULTILINE)
    assert staffed("as-of", then, "file", file["id"]).raw == b"then\x00"
    assert staffed.json("as-of", then, "file", file["id"])["version"] == 1
    assert "No grants" in staffed("as-of", "1999-01-01", "grants").out
    refused(staffed("as-of", "1999-01-01", "file", file["id"]), 3, "did not exist")
    refused(staffed("as-of", "2999-01-01", "org"), 2, "not come")
    refused(staffed("as-of", "soon", "org"), 2, "not a time")
    refused(staffed("as-of", then, "file"), 2, "id")
    refused(staffed("as-of", then, "org", "--agent", "left"), 2, "--agent")
    refused(staffed("as-of", then, "nonsense"), 2, "nonsense")


# Drawing


def line(branch: str, node: dict[str, str]) -> trees.Line:
    return trees.Line(branch, node["title"], "open · somebody")


def test_two_hundred_nodes_fit_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def children(level: int) -> Iterator[dict[str, object]]:
        for number in range(6 if level < 3 else 0):
            title = f"{level}.{number} \x1b[31m\u202e{'宣伝' * (5 * number)}"
            yield {"title": title, "children": list(children(level + 1))}

    monkeypatch.setenv("COLUMNS", "60")
    forest = list(children(0))
    trees.draw(list(trees.lines(forest, "children", line)))
    drawn = capsys.readouterr().out.splitlines()
    assert len(drawn) == 6 + 36 + 216
    assert max(map(cell_len, drawn)) <= 60
    assert not re.search(r"[\x1b\u202e]", "".join(drawn))
    assert all(one.endswith("open · somebody") for one in drawn)
    assert len({cell_len(one) for one in drawn}) == 1, "the second column is straight"

    trees.draw(list(trees.lines(forest, "children", line, depth=1)))
    drawn = capsys.readouterr().out.splitlines()
    assert len(drawn) == 12
    assert drawn[1].startswith("│   └── … 6 more below")


def test_many_names_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    changes = [
        {
            "change": "gains",
            "who": "user:1",
            "whoName": "ann\x1b[31m",
            "right": "is boss of",
            "over": str(number),
            "overName": f"a{number:03}",
        }
        for number in range(200)
    ]
    reorganisation.draw({"dryRun": False, "eventId": None, "changes": changes})
    told = capsys.readouterr().out
    assert "ann\\x1b[31m (a person)\n  gains  is boss of a000, a001, " in told
    assert told.rstrip().endswith("a011 and 188 more")
    reorganisation.draw({"dryRun": True, "eventId": None, "changes": []})
    assert "Nobody's authority changes." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "listed"),
    [
        (("agent", "show"), "agent list"),
        (("outcome", "show"), "outcome list"),
        (("kb", "log"), "kb list"),
        (("run", "show"), "run list"),
        (("approval", "show"), "approval list"),
        (("question", "answer"), "question list"),
        (("read",), "inbox --all"),
        (("job", "show"), "job list"),
    ],
)
def test_who_names_something_unknown_is_told_how_to_list_such_things(
    only: Home, command: tuple[str, ...], listed: str
) -> None:
    words = [*command, "00000000-0000-7000-8000-000000000000"]
    missing = only(*words, *(["Yes."] if "answer" in words else []))
    assert (missing.code, missing.err.splitlines()[1:]) == (3, [f"  next: See `remit {listed}`."])


def test_an_unknown_name_of_an_agent_is_told_where_names_are(only: Home) -> None:
    missing = only("agent", "show", "nobody-at-all")
    assert missing.err.endswith("  next: See `remit agent list`.\n")
    only.json("agent", "create", "writer")
    assert only("agent", "show", "writre").err.endswith("  next: Did you mean writer?\n")
