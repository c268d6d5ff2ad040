"""Mail on the command line: child processes against a real instance."""

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest
from rich.cells import cell_len

from remit.clock import DAY, HOUR, MINUTE, SystemClock, to_iso
from remit.entrypoints.cli import process
from remit.entrypoints.cli.drawing import output
from remit.settings import load
from remit.testing import ScriptedAgent
from tests.http_client import Client
from tests.test_cli import Home, only, refused, remit

__all__ = ["only", "remit"]  # fixtures

HOSTILE = "evil \x1b[2J\x1b]0;pwned\x07 text\rback\u202eturned"


@pytest.fixture
def staffed(only: Home) -> Home:
    """A company with a boss and a report."""
    only.json("agent", "create", "boss", "--role", "ceo", "--adapter", "scripted")
    only.json("agent", "create", "left", "--boss", "boss", "--adapter", "scripted")
    return only


def as_agent(home: Home, name: str) -> Home:
    """The same command line in the hands of an agent."""
    token = home("agent", "token", name).out.strip()
    return Home(home.folder, {"REMIT_TOKEN": token})


@pytest.fixture
def boss(staffed: Home) -> Home:
    return as_agent(staffed, "boss")


@pytest.fixture
def left(staffed: Home) -> Home:
    return as_agent(staffed, "left")


# Sending


@pytest.mark.requirement("AG-92", "AG-94")
def test_a_person_writes_to_the_root_agent_and_reads_its_answer(staffed: Home, boss: Home) -> None:
    wish = staffed.json("send", "boss", "Build it.", "--subject", "A wish")
    assert (wish["from_board"], wish["subject"]) == (True, "A wish")
    (letter,) = boss.json("inbox")
    assert (letter["id"], letter["body"]) == (wish["id"], "Build it.")
    answer = boss.json("send", "board", "Done.", "--reply-to", wish["id"][:18])
    assert answer["thread_id"] == wish["thread_id"]

    listed = staffed("inbox").out.splitlines()
    assert listed[0].split() == ["ID", "FROM", "AGE", "SUBJECT", "TEXT", "NOTE"]
    assert re.fullmatch(rf"{answer['id'][-12:]} +boss +now +Done\.", listed[1])
    shown = staffed("read", answer["id"][:18]).out
    assert shown.index("│ Build it.") < shown.index("│ Done.")
    assert "  from  agent:boss\n" in shown
    assert staffed("inbox").out == "There is no unread mail.\n"
    assert staffed.json("inbox") == []
    assert "read " in staffed("inbox", "--all").out
    assert [one["status"] for one in staffed.json("inbox", "--all")] == ["done"]


@pytest.mark.requirement("AG-94", "AG-93")
def test_a_person_writes_to_any_agent_and_looks_into_its_inbox(staffed: Home, left: Home) -> None:
    for address in ("left", "agent:left", "LEFT"):
        staffed.json("send", address, f"to {address}")
    assert [one["body"] for one in staffed.json("inbox", "--agent", "left")] == [
        "to left",
        "to agent:left",
        "to LEFT",
    ]
    assert "to agent:left" in staffed("inbox", "--agent", "left").out
    assert [one["status"] for one in left.json("inbox")] == ["queued"] * 3
    first = left.json("inbox")[0]["id"]
    assert "to left" in left("read", first).out
    assert len(left.json("inbox")) == 3, "an agent has not dealt with what it looked at"
    left_mandate = staffed.json("outcome", "show", "left")
    assert left_mandate["id"] == staffed.json("agent", "show", "left")["id"]
    assert staffed("agent", "logs", "left").code == 0
    refused(left("inbox", "--agent", "boss"), 3, "")
    refused(staffed("inbox", "--agent", "nobody"), 3, "nobody")


@pytest.mark.parametrize("arguments", [["-"], []])
def test_the_text_comes_from_standard_input(staffed: Home, arguments: list[str]) -> None:
    text = "first line\n\n\tsecond: Grüße 🙂\n"
    sent = staffed.json("send", "boss", *arguments, stdin=text.encode())
    (letter,) = staffed.json("inbox", "--agent", "boss")
    assert (letter["id"], letter["body"]) == (sent["id"], text)


def test_a_pipe_from_another_program_is_the_text(staffed: Home) -> None:
    with subprocess.Popen(
        ["/bin/sh", "-c", "printf one; sleep 0.2; printf two"], stdout=subprocess.PIPE
    ) as source:
        done = subprocess.run(
            staffed.command("send", "boss", "--subject", "piped"),
            stdin=source.stdout,
            capture_output=True,
            env=staffed.environment,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert staffed.json("inbox", "--agent", "boss")[0]["body"] == "onetwo"


def test_a_text_that_is_given_leaves_standard_input_alone(staffed: Home) -> None:
    sent = staffed.json("send", "boss", "given", stdin=b"not this")
    assert staffed.json("read", sent["id"])["body"] == "given"


def test_long_texts_travel_as_they_are(staffed: Home) -> None:
    text = "é\u2028\x01" * 500_000
    sent = staffed.json("send", "boss", "--subject", "Long", stdin=text.encode())
    assert staffed("kb", "cat", sent["file_id"]).raw == text.encode()
    shown = staffed("read", sent["id"])
    assert f"remit kb cat {sent['file_id'][-12:]}" in shown.out
    refused(staffed("send", "boss", stdin=b"x" * (33 * 1024 * 1024)), 1, "larger")


def test_files_are_attached_from_here_or_from_the_knowledge_base(
    staffed: Home, boss: Home, tmp_path: Path
) -> None:
    local = tmp_path / "results 宣伝.bin"
    local.write_bytes(b"\x00\xff" * 100)
    known = staffed.json("kb", "create", "Known", stdin=b"known")["id"]
    sent = staffed.json(
        *("send", "boss", "See files.", "--attach", str(local), "--attach", f"kb://{known}"),
        *("--attach", known[:18]),
    )
    stored, *others = sent["attachments"]
    assert others == [known], "the same file twice is one attachment"
    assert boss("kb", "cat", stored).raw == local.read_bytes()
    assert boss("kb", "cat", known).raw == b"known"
    assert "(2 files)" in boss("inbox").out
    shown = staffed("read", sent["id"]).out
    assert f"kb://{stored}  {local.name}, 200 B" in shown
    assert f"kb://{known}  Known, 5 B\n        remit kb cat {known[-12:]}\n" in shown
    # What is attached is for the receiver.
    other = as_agent(staffed, "left")
    assert stored not in json.dumps(other.json("kb", "browse"))


def test_nothing_is_sent_when_an_attachment_is_missing(staffed: Home, tmp_path: Path) -> None:
    before = staffed.json("kb", "browse")
    (tmp_path / "there").write_text("x")
    there = str(tmp_path / "there")
    for wrong in (str(tmp_path / "absent"), "", "kb://zz", str(tmp_path)):
        refused(staffed("send", "boss", "x", "--attach", there, "--attach", wrong), 3, "no file")
    gone = staffed("send", "boss", "x", "--attach", "01234567-89ab-7def-8123-456789abcdef")
    refused(gone, 3, "no such file")
    assert staffed.json("inbox", "--agent", "boss") == []
    assert staffed.json("kb", "browse") == before


def test_what_cannot_be_sent_says_why(staffed: Home, left: Home, boss: Home) -> None:
    refused(staffed("send", "nobody", "x"), 3, "no")
    refused(staffed("send", "user:nobody", "x"), 3, "no such user")
    refused(staffed("send", "boss"), 2, "no text")
    refused(staffed("send", "boss", "-"), 2, "no text")
    refused(staffed("send"), 2, "TO")
    refused(staffed("send", "boss", stdin=b"\xff\xfe"), 2, "not UTF-8")
    refused(staffed("send", "boss", "x", "--at", "soon"), 2, "not a time")
    refused(staffed("send", "boss", "x", "--reply-to", "zzzzzzzz"), 2, "not an id")
    refused(staffed("send", "boss", "x", "--subject", "s" * 201), 2, "subject")
    refused(staffed("send", "boss", "x", "--subject", "a\x1bb"), 2, "subject")
    refused(staffed("send", "everything:", "x"), 2, "address")
    staffed.json("agent", "create", "right", "--boss", "boss")
    refused(left("send", "right", "x"), 1, "You write to your boss")
    staffed.json("company", "set", "--messaging", "team")
    assert left("send", "right", "x").code == 0
    refused(staffed("company", "set", "--messaging", "all"), 2, "--messaging")
    assert re.search(r"^messaging +team$", staffed("company", "show").out, re.MULTILINE)


def test_mail_can_wait_for_its_time(staffed: Home) -> None:
    later = to_iso(SystemClock().now() + DAY)
    sent = staffed("send", "boss", "later", "--at", later)
    assert sent.out.endswith(f" It is delivered at {later}.\n")
    assert staffed.json("inbox", "--agent", "boss") == []
    id_ = sent.out.split()[1]
    assert "boss gets it at" in staffed("read", id_).out


# Reading


def test_no_text_steers_the_terminal_or_passes_for_ours(staffed: Home, boss: Home) -> None:
    body = f"{HOSTILE}\n  from  user:board\n│ nested\nSubject: x"
    sent = boss.json("send", "board", "-", "--subject", "Plain [bold]x[/bold]", stdin=body.encode())
    for shown in (staffed("inbox"), staffed("read", sent["id"], "--keep"), staffed("needs-you")):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", shown.out), shown.out
        assert "[bold]x[/bold]" in shown.out
    lines = staffed("read", sent["id"], "--keep").out.splitlines()
    at = lines.index("")
    assert all(line.startswith("│ ") for line in lines[at + 1 :])
    assert lines[1] == "  from  agent:boss"
    assert "│   from  user:board" in lines[at:]
    assert "│ │ nested" in lines[at:]
    assert len(staffed.json("inbox")) == 1, "--keep leaves it unread"
    assert json.loads(staffed("read", sent["id"], "--json").out)["body"] == body
    assert staffed.json("inbox") == []


def test_reading_shows_what_is_to_be_done(staffed: Home, boss: Home) -> None:
    asked = boss.json("send", "board", "plain")
    assert "question" not in staffed("read", asked["id"]).out
    refused(staffed("read", "zzzz"), 2, "not an id")
    refused(staffed("read", "01234567-89ab-7def-8123-456789abcdef"), 3, "no such message")
    refused(staffed("read", asked["id"], "--revive"), 4, "not a dead letter")
    refused(staffed("read", asked["id"], "--discard"), 4, "not a dead letter")
    refused(staffed("read", asked["id"], "--revive", "--discard"), 2, "exclude")


def terminal(home: Home, *arguments: str, columns: int = 60) -> str:
    """What a command shows on a real terminal of this width."""
    ours, theirs = pty.openpty()
    environment = {**home.environment, "COLUMNS": str(columns), "TERM": "xterm-256color"}
    with subprocess.Popen(
        home.command(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            seen += piece
    os.close(ours)
    assert process.returncode == 0, seen
    return seen.decode()


COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def test_an_inbox_fits_the_terminal(staffed: Home, boss: Home) -> None:
    boss.json("send", "board", "word " * 200, "--subject", "宣伝 " * 30)
    boss.json("send", "board", "Short.", "--subject", "Short")
    boss.json("send", "board", "-", "--subject", "Odd", stdin=HOSTILE.encode())
    for columns in (40, 60, 120):
        drawn = terminal(staffed, "inbox", columns=columns)
        plain = COLOUR.sub("", drawn).replace("\r\n", "\n")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", plain)
        assert max(map(cell_len, plain.splitlines())) <= columns
        assert plain.count("宣伝") == 30, "a subject is whole"
        assert sum("word" in line for line in plain.splitlines()) == 1, "of a text, one line"
        assert "…" in plain
    assert "\x1b[33munread\x1b[0m" in terminal(staffed, "inbox", "--all")
    assert "\x1b" not in staffed("inbox").out, "no colour where nobody watches"
    plain = terminal(Home(staffed.folder, {**staffed.environment, "NO_COLOR": "1"}), "inbox")
    assert "\x1b" not in plain


def test_a_long_line_stays_behind_its_bar(staffed: Home, boss: Home) -> None:
    body = "x" * 58 + "  from  user:board " + "宣伝" * 100
    sent = boss.json("send", "board", body, "--subject", "word " * 39)
    drawn = terminal(staffed, "read", sent["id"], "--keep", columns=60).replace("\r\n", "\n")
    lines = drawn.rstrip("\n").split("\n")
    assert max(map(cell_len, lines)) <= 60
    text = lines[lines.index("") + 1 :]
    assert all(line.startswith("│ ") for line in text)
    assert "".join(line.removeprefix("│ ") for line in text) == body
    assert lines[0].endswith("…")


def test_ages_are_short() -> None:
    now = SystemClock().now()
    for passed, said in [
        (0, "now"),
        (-HOUR, "now"),
        (5 * MINUTE, "5 min"),
        (3 * HOUR, "3 h"),
        (2 * DAY, "2 d"),
    ]:
        assert output.age(to_iso(now - passed)) == said
    assert output.age(to_iso(now - 40 * DAY)) == to_iso(now - 40 * DAY)[:10]
    assert output.age(None) == ""


# Questions, schedules, and what awaits


def tool(home: Home, name: str, **arguments: object) -> dict[str, str]:
    """An agent calls a tool."""
    url = home.json("status")["url"]
    with ScriptedAgent(url, home.environment["REMIT_TOKEN"]) as agent:
        return agent.call(name, **arguments)


def ask(home: Home, question: str, *options: str) -> dict[str, str]:
    return tool(home, "ask", question=question, options=list(options), to="board")


def test_questions_are_listed_answered_and_cancelled(staffed: Home, boss: Home) -> None:
    assert staffed("question", "list").out == "There are no questions.\n"
    asked = ask(boss, "Red or blue?", "red", "blue")
    listed = staffed("question", "list").out.splitlines()
    assert listed[0].split() == ["ID", "AGENT", "ASKS", "AGE", "ANSWER", "QUESTION", "OPTIONS"]
    assert "red | blue" in listed[1]
    assert "boss" in listed[1]
    short = listed[1].split()[0]
    (letter,) = staffed.json("inbox")
    assert (
        f"remit question answer {asked['id'][-12:]}" in staffed("read", letter["id"], "--keep").out
    )
    waiting = staffed("needs-you").out
    assert "Red or blue?" in waiting
    assert f"remit question answer {short}" in waiting
    waits = re.compile(r"answer a question since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\.")
    assert waits.search(staffed("agent", "why-idle", "boss").out)
    assert waits.search(staffed("top").out)
    unlisted = staffed("question", "answer", short, "green")
    refused(unlisted, 2, "one of")
    assert "--other" in unlisted.err
    done = staffed("question", "answer", short, "red")
    assert done.out == "Answered; boss gets it as mail.\n"
    assert "red" in boss.json("inbox")[-1]["body"]
    refused(staffed("question", "answer", asked["id"], "blue"), 4, "")
    assert staffed.json("inbox") == [], "what was answered need not be read"
    assert staffed("needs-you").out == "Nothing awaits you.\n"
    assert staffed.json("question", "list") == []
    (ended,) = staffed.json("question", "list", "--all", "--agent", "boss")
    assert ended["answer"] == "red"
    other = ask(boss, "Again?")
    assert "cancelled" in staffed("question", "cancel", other["id"][:18]).out
    refused(staffed("question", "cancel", other["id"]), 4, "")
    refused(staffed("question", "cancel", "01234567-89ab-7def-8123-456789abcdef"), 3, "")
    refused(staffed("question", "answer", "zz", "x"), 3, "'zz'")


def test_schedules_are_added_listed_and_cancelled(staffed: Home, left: Home) -> None:
    assert staffed("schedule", "list").out == "There are no schedules.\n"
    added = staffed.json(
        *("schedule", "add", "Stand up.", "--agent", "left", "--to", "boss"),
        *("--cron", "0 9 * * 1-5", "--timezone", "Europe/Zurich", "--subject", "Daily"),
    )
    own = left.json("schedule", "add", "Look again.", "--at", "2999-01-01T00:00:00Z")
    table = staffed("schedule", "list").out
    assert re.search(r"left +0 9 \* \* 1-5 Europe/Zurich +\S+Z +Daily$", table, re.MULTILINE)
    assert re.search(r"left +once +2999-01-01T00:00:00Z +Look again\.$", table, re.MULTILINE)
    assert [one["id"] for one in left.json("schedule", "list")] == [added["id"], own["id"]]
    assert (
        "next at 2" in staffed("schedule", "add", "x", "--agent", "boss", "--cron", "* * * * *").out
    )
    assert "cancelled" in staffed("schedule", "cancel", added["id"][:18]).out
    refused(staffed("schedule", "cancel", added["id"]), 4, "cancelled")
    refused(staffed("schedule", "add", "x", "--agent", "boss"), 2, "--cron")
    refused(staffed("schedule", "add", "x", "--cron", "* * * * *"), 2, "Whose")
    refused(staffed("schedule", "add", "x", "--agent", "boss", "--cron", "never"), 2, "never")
    wrong = staffed(
        "schedule", "add", "x", "--agent", "boss", "--cron", "0 9 * * *", "--timezone", "x"
    )
    refused(wrong, 2, "time zone")
    refused(
        staffed("schedule", "add", "x", "--agent", "nobody", "--cron", "0 9 * * *"), 3, "nobody"
    )
    assert staffed.json("schedule", "list", "--agent", "left", "--all")[0]["status"] == "cancelled"


def test_who_has_several_companies_sees_all_mail_and_says_where_to_send(
    remit: Home, staffed: Home, boss: Home
) -> None:
    (mine,) = staffed.json("company", "list")
    boss.json("send", "board", "to everybody on the board")
    found = remit.json("inbox", "--company", mine["id"])
    assert [one["company_id"] for one in found] == [mine["id"]]
    assert found[0]["id"] in [one["id"] for one in remit.json("inbox")]
    assert found[0]["id"] in [one["id"] for one in remit.json("needs-you")]
    head, *rows = remit("needs-you").out.splitlines()
    assert head.split()[:2] == ["COMPANY", "WHAT"]
    assert any(row.startswith(mine["name"]) for row in rows)
    assert remit("needs-you", "--company", mine["id"]).out.split()[0] == "WHAT"
    refused(remit("send", "boss", "x"), 2, "several companies")
    sent = remit.json("send", "boss", "x", "--company", mine["name"])
    short = sent["id"][:18]
    assert remit.json("read", short, "--company", mine["id"])["id"] == sent["id"]
    # What a list over all companies shows is enough, without saying which company.
    assert remit.json("read", sent["id"][-12:], "--keep")["id"] == sent["id"]
    refused(remit("read", "0123456789ab", "--keep"), 3, "message")
    refused(remit("read", "01234567", "--company", mine["id"]), 3, "message")
    asked = ask(boss, "Well?")
    done = remit("question", "answer", asked["id"][:18], "Yes", "--company", mine["id"])
    assert done.code == 0, done.err
    remit("read", found[0]["id"], "--company", mine["id"])
    assert remit.json("inbox", "--company", mine["id"]) == []


@pytest.mark.requirement("AG-48")
def test_a_capability_is_asked_for_and_given_in_one_step(staffed: Home, boss: Home) -> None:
    file = staffed.json("kb", "create", "Secret", stdin=b"secret")["id"]
    refused(boss("kb", "cat", file), 1, "no capability")
    wish = {"resource": f"kb_file:{file}", "level": "read", "why": "I need it."}
    asked = tool(boss, "capability_request", **wish)
    shown = staffed("read", asked["id"]).out
    assert f"read on kb_file:{file[-12:]}; remit grant give --request {asked['id'][-12:]}" in shown
    given = staffed("grant", "give", "--request", asked["id"][-12:]).out.splitlines()
    assert given[0] == f"boss has read on kb_file:{file[-12:]}."
    assert boss("kb", "cat", file).out == "secret"
    plain = boss.json("send", "board", "no request")
    refused(staffed("grant", "give", "--request", plain["id"]), 2, "asks for nothing")
    refused(staffed("grant", "give", "boss", "--request", plain["id"]), 2, "--request")
    refused(staffed("grant", "give", "boss"), 2, "RESOURCE")
    refused(staffed("grant", "give"), 2, "AGENT")


def test_mail_needs_an_instance(tmp_path: Path) -> None:
    home = Home(tmp_path, {"REMIT_URL": "http://127.0.0.1:1", "REMIT_TOKEN": "rmt_user_x"})
    for command in (["send", "boss", "x"], ["inbox"], ["read", "0123456789ab"], ["needs-you"]):
        refused(home(*command), 5, "No instance")


def test_what_could_not_be_shown_was_not_read(staffed: Home, boss: Home) -> None:
    sent = boss.json("send", "board", stdin=b"line\n" * 60_000)
    with subprocess.Popen(
        staffed.command("read", sent["id"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=staffed.environment,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert [one["id"] for one in staffed.json("inbox")] == [sent["id"]]


# Wishes


@pytest.mark.requirement("FX-07", "FX-19")
def test_sending_can_wait_for_the_answer(staffed: Home, boss: Home) -> None:
    with subprocess.Popen(
        staffed.command("send", "boss", "What is 2+2?", "--wait"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=staffed.environment,
        text=True,
    ) as waiting:
        assert waiting.stderr is not None
        assert waiting.stdout is not None
        # It says meanwhile why nothing happens.
        assert "boss has not read it yet" in waiting.stderr.readline()
        (letter,) = boss.json("inbox")
        boss.json("send", "board", "It is 4.", "--reply-to", letter["id"])
        shown = waiting.stdout.read()
        assert waiting.wait(60) == 0
    assert "│ It is 4." in shown
    assert staffed.json("inbox") == [], "what was printed was read"
    (sent,) = staffed.json("inbox", "--sent")
    assert (sent["id"], sent["state"]) == (letter["id"], "answered")
    listed = staffed("inbox", "--sent").out.splitlines()
    assert listed[0].split()[:5] == ["ID", "TO", "AGE", "STATE", "LETTER"]
    assert "answered" in listed[1]
    assert "State of" in staffed("read", letter["id"]).out
    refused(staffed("inbox", "--sent", "--all"), 2, "--sent")


@pytest.mark.requirement("FX-07")
def test_who_stops_waiting_leaves_the_letter_where_it_is(staffed: Home) -> None:
    late = staffed("send", "boss", "Slow", "--wait", "--timeout", "0.3")
    assert late.code == 1
    assert "There is no answer yet" in late.err
    assert "remit cancel" in late.err
    with subprocess.Popen(
        staffed.command("send", "boss", "Slower", "--wait"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=staffed.environment,
        text=True,
    ) as waiting:
        assert waiting.stderr is not None
        waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        said = waiting.stderr.read()
        assert waiting.wait(60) == 130
    assert "The work continues. The answer will be in: remit read" in said
    assert len(staffed.json("inbox", "--agent", "boss")) == 2
    refused(staffed("send", "boss", "x", "--timeout", "1"), 2, "--wait")


def test_a_message_is_answered_by_its_id(staffed: Home, boss: Home) -> None:
    asked = boss.json("send", "board", "Shall I?", "--subject", "Plan")
    done = staffed("reply", asked["id"][:18], "Yes.")
    assert done.out.endswith(" to boss.\n")
    (answer,) = boss.json("inbox")
    assert (answer["body"], answer["subject"]) == ("Yes.", "Re: Plan")
    assert answer["reply_to"] == asked["id"]
    # To one's own letter one adds something for the same reader.
    staffed.json("reply", answer["id"], "-", stdin=b"And soon.")
    assert boss.json("inbox")[-1]["body"] == "And soon."
    assert boss.json("inbox")[-1]["subject"] == "Re: Plan"
    refused(staffed("reply", "01234567-89ab-7def-8123-456789abcdef", "x"), 3, "")


def test_an_agent_answers_a_chat_there_and_a_person_answers_the_agent(
    staffed: Home, boss: Home
) -> None:
    place = "https://chat.example.org/a"
    token = staffed.json("bind", "add", "boss", "webhook", "--to", place)["token"]
    said = {"id": "m-1", "conversation": "room-7", "body": "Are you there?"}
    outside = Client(staffed.json("status")["url"], token)
    outside.must("POST", "/api/channels/webhook", said)
    (letter,) = boss.json("inbox")
    assert boss.json("reply", letter["id"], "Yes.")["to"] == "channel:webhook:room-7"
    staffed.json("reply", letter["id"], "Be kind.")
    assert boss.json("inbox")[-1]["body"] == "Be kind."


@pytest.mark.requirement("FX-51")
def test_a_letter_is_taken_back_after_a_preview(staffed: Home, boss: Home) -> None:
    wish = staffed.json("send", "boss", "Build it")
    shown = staffed("cancel", wish["id"][:18], "--dry-run")
    assert "unread: Build it (to boss)" in shown.out
    assert len(boss.json("inbox")) == 1
    refused(staffed("cancel", wish["id"]), 2, "confirm")
    assert len(boss.json("inbox")) == 1
    done = staffed("cancel", wish["id"], "--yes")
    assert done.out.endswith(f"{wish['id']} is taken back.\n")
    assert boss.json("inbox") == []
    assert staffed.json("inbox", "--sent")[0]["state"] == "taken_back"
    refused(staffed("cancel", wish["id"], "--yes"), 4, "already")
    refused(boss("cancel", staffed.json("send", "boss", "x")["id"], "--yes"), 3, "")


@pytest.mark.requirement("FX-52")
def test_a_command_is_set_on_the_machine_of_the_instance_alone(
    staffed: Home, boss: Home, tmp_path: Path
) -> None:
    assert "command  none" in staffed("notify", "show").out
    told = tmp_path / "told"
    assert staffed("notify", "set", "--command", f"tee {told}").out == "The command is set.\n"
    kept = staffed.folder / "notify.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "command  set" in staffed("notify", "show").out
    refused(staffed("notify", "set", "--command", "no-such-program"), 2, "no-such-program")
    url = process.holder(load(staffed.environment)).url
    token = (staffed.folder / "board.token").read_text().strip()
    elsewhere = Home(tmp_path / "other", {"REMIT_URL": str(url), "REMIT_TOKEN": token})
    refused(elsewhere("notify", "set", "--command", "true"), 1, "does not run from")
    refused(boss("notify", "set", "--command", "true"), 1, "people")
    refused(staffed("notify", "set"), 2, "--command")
    hook = staffed("notify", "set", "--webhook", "https://chat.example.org/x")
    assert "It is signed with this key" in hook.out
    assert "https://chat.example.org/x" in staffed("notify", "show").out
    tested = staffed("notify", "test").out
    assert tested.startswith("A test goes out by command and by webhook;")
    assert staffed("notify", "set", "--no-command", "--no-webhook").out == (
        "No command is run any more.\nNothing is posted.\n"
    )
