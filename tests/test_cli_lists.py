"""Every list of the command line on terminals of four widths, as pictures of text.

The pictures are in `tests/lists`, one file a list. `REMIT_PICTURES=new` in the environment of a
test run takes them anew. Ids are numbered as they appear.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import pytest
from rich.cells import cell_len

from remit.entrypoints.cli.drawing import columns, lists
from remit.entrypoints.cli.drawing.terminal import Style
from remit.model.execution.account import AccountState
from remit.model.execution.job import JobStatus
from remit.model.execution.run import RunStatus
from remit.model.messaging import notice
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.approval import ApprovalStatus
from tests import cli_forks, list_stage
from tests.list_stage import Stage

WIDTHS = (60, 80, 120, 200)
PICTURES = Path(__file__).parent / "lists"
#: Each list by the name of its picture; a word in braces is the id of a thing.
LISTS = {
    "needs-you": "needs-you",
    "inbox": "inbox",
    "inbox-all": "inbox --all",
    "inbox-sent": "inbox --sent",
    "approval-list": "approval list",
    "approval-list-all": "approval list --all",
    "question-list": "question list",
    "schedule-list": "schedule list",
    "bind-list": "bind list",
    "bind-channels": "bind channels",
    "notify-show": "notify show",
    "link-list": "link list",
    "confirm": "confirm",
    "agent-list": "agent list",
    "agent-tree": "agent tree",
    "agent-budget": "agent budget",
    "user-list": "user list",
    "company-list": "company list",
    "company-policy-show": "company policy show",
    "grant-list": "grant list",
    "secret-list": "secret list",
    "mcp-list": "mcp list",
    "repo-list": "repo list",
    "change-list": "change list",
    "account-list": "account list",
    "outcome-list": "outcome list",
    "outcome-tree": "outcome tree",
    "outcome-tree-ids": "outcome tree --ids",
    "outcome-graph": "outcome graph",
    "kb-list": "kb list",
    "kb-browse": "kb browse Draft",
    "kb-history": "kb history {file}",
    "run-list": "run list",
    "top": "top --once",
    "event-list": "event list --limit 12",
}
#: What an empty company says of each list that it has nothing for.
EMPTY = {
    "needs-you": "Nothing awaits you.",
    "inbox": "There is no unread mail.",
    "inbox --sent": "You have written nothing.",
    "approval list": "Nothing waits for a decision.",
    "question list": "There are no questions.",
    "schedule list": "There are no schedules.",
    "bind list": "No agent is bound to a channel.",
    "secret list": "There are no secrets.",
    "mcp list": "There are no MCP servers.",
    "repo list": "There are no repositories.",
    "change list": "There are no changes.",
    "run list": "Nobody has run yet.",
}

#: Draws the lists on the terminal that is its output, one after the other, at a moment that stands
#: still; after each a line that no list has.
_DRAWS = """
import fcntl, json, struct, sys, termios
from remit.clock import SystemClock
from remit.entrypoints.cli.main import run
order = json.loads(sys.argv[1])
SystemClock.now = lambda self: order["now"]
for width, arguments in order["lists"]:
    sys.stdout.isatty() and fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    code = run(arguments)
    print(chr(30) + str(code), flush=True)
"""
_WORD = re.compile(r"[\w.@-]+")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_ID = re.compile(
    r"\b([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-|[0-9a-f]{20})?([0-9a-f]{12})\b"
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with list_stage.staged(tmp_path_factory.mktemp("lists")) as found:
        yield found


def drawn(
    stage: Stage,
    token: str,
    commands: list[str],
    widths: tuple[int, ...],
    *,
    piped: bool = False,
    **more: str,
) -> list[str]:
    """What commands show on a terminal: each at every width, in this order; or in a pipe."""
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "REMIT_HOME": "/nowhere",
        "REMIT_URL": stage.office.url,
        "REMIT_TOKEN": token,
        "TERM": "xterm-256color",
        **more,
    }
    lists = [(width, command.split()) for command in commands for width in widths]
    order = json.dumps({"now": stage.clock.now(), "lists": lists})
    main, terminal = os.pipe() if piped else os.openpty()
    with cli_forks.commands().start(
        [order], environment, (terminal, terminal, terminal), script=_DRAWS
    ) as child:
        os.close(terminal)
        seen = b""
        while True:
            try:
                piece = os.read(main, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            seen += piece
        os.close(main)
        assert child.wait(60) == 0, seen.decode()
    *pictures, rest = seen.decode().replace("\r\n", "\n").split("\x1e")
    codes = [picture.partition("\n")[0] for picture in (*pictures[1:], rest)]
    assert codes == ["0"] * len(lists), list(zip(codes, lists, strict=False))
    return [pictures[0], *(picture.partition("\n")[2] for picture in pictures[1:])]


def plain(picture: str) -> str:
    """A picture without its colours, with ids and names of folders that are always the same."""
    known: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        beginning = re.sub("[0-9a-f]", "0", found[1] or "")
        return beginning + known.setdefault(found[2], f"{len(known) + 1:012d}")

    bare = _STYLE.sub("", picture)
    # Of the same length, so that lines break at the same words.
    folder = f"{list_stage.PLACE}{'x' * 8}"
    return re.sub(rf"{list_stage.PLACE}\w{{8}}", folder, _ID.sub(number, bare))


@pytest.fixture(scope="module")
def pictures(stage: Stage) -> Mapping[str, list[str]]:
    """Every list at every width, with its colours."""
    office = stage.office
    file = office.board.must("GET", office.path("files"))[0]["id"]
    commands = [command.format(file=file) for command in LISTS.values()]
    every = iter(drawn(stage, office.running.board.token or "", commands, WIDTHS))
    return {name: [next(every) for _ in WIDTHS] for name in LISTS}


@pytest.fixture(scope="module")
def pipes(stage: Stage) -> Mapping[str, str]:
    """Every list as a pipe gets it."""
    token = stage.office.running.board.token or ""
    file = stage.office.board.must("GET", stage.office.path("files"))[0]["id"]
    commands = [command.format(file=file) for command in LISTS.values()]
    found = drawn(stage, token, commands, (80,), piped=True)
    return dict(zip(LISTS, found, strict=True))


@pytest.mark.requirement("FX-54")
@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_whole_at_every_width(pictures: Mapping[str, list[str]], name: str) -> None:
    found = [plain(picture) for picture in pictures[name]]
    for width, picture in zip(WIDTHS, found, strict=True):
        assert max(map(cell_len, picture.splitlines())) <= width, picture
    together = "".join(
        f"{f' {width} columns '.center(width, '-')}\n{picture}"
        for width, picture in zip(WIDTHS, found, strict=True)
    )
    path = PICTURES / f"{name}.txt"
    if os.environ.get("REMIT_PICTURES") == "new":
        path.write_text(together)
    assert path.read_text() == together


def test_no_cell_of_a_list_vanishes(
    pictures: Mapping[str, list[str]], pipes: Mapping[str, str]
) -> None:
    """Each word that a pipe gets is on every terminal, too."""
    # Beginnings of texts and titles in trees are cut, and say so.
    cut = ("inbox", "inbox-all", "agent-tree", "outcome-tree", "outcome-tree-ids")
    for name in LISTS.keys() - set(cut):
        rows = [line for line in pipes[name].splitlines() if line != line.upper()]
        words = set(_WORD.findall("\n".join(rows).lower()))
        for width, picture in zip(WIDTHS, pictures[name], strict=True):
            # Words that a line broke in two are put together again.
            shown = re.sub(r"\s+", "", _STYLE.sub("", picture).lower())
            missing = [word for word in words if word not in shown]
            assert not missing, (name, width, missing)


@pytest.mark.requirement("FX-54")
def test_states_have_a_colour_that_no_color_takes_away(
    stage: Stage, pictures: Mapping[str, list[str]]
) -> None:
    token = stage.office.running.board.token or ""
    for name, state, colour in (
        ("run-list", "failed", Style.RED),
        ("run-list", "completed", Style.GREEN),
        ("approval-list-all", "pending", Style.YELLOW),
        ("account-list", "closed", Style.YELLOW),
        ("outcome-tree", "open, waits", Style.YELLOW),
        ("needs-you", "failed run", Style.RED),
    ):
        for picture in pictures[name]:
            assert f"\x1b[{colour.value}m{state}\x1b[0m" in picture, (name, state)
    command = LISTS["run-list"]
    (bare,) = drawn(stage, token, [command], (80,), NO_COLOR="1")
    (dumb,) = drawn(stage, token, [command], (80,), TERM="dumb")
    assert bare == dumb == _STYLE.sub("", pictures["run-list"][1])


def test_every_state_has_a_colour() -> None:
    enums = (AccountState, AgentStatus, ApprovalStatus, JobStatus, RunStatus)
    states = {state.value for enum in enums for state in enum} | {*notice.KINDS}
    unmarked = {state for state in states if columns.state_style(state) is None}
    assert unmarked == {"idle", "mail"}
    assert columns.state_style("open, deferred to 2027-02-20") is Style.YELLOW
    assert columns.state_style("open a browser to see it") is None
    assert columns.state_style("held: the channel refuses its token") is Style.RED


def test_whatever_a_list_holds_it_fits_and_is_whole() -> None:
    chance = Random(54)
    headings = ("id", "title", "status", "asked by", "cause", "revision", "text", "next step")
    for _ in range(150):
        rows = [[_some_text(chance) for _ in headings] for _ in range(3)]
        for width in (40, *WIDTHS):
            found = [_STYLE.sub("", line) for line in lists.lines(headings, rows, width)]
            assert max(map(cell_len, found)) <= width
            shown = "".join("".join(found).split())
            for row in rows:
                whole = zip(headings, row, strict=True)
                words = [
                    word for heading, text in whole for word in text.split() if heading != "text"
                ]
                assert all(word in shown or len(word) > 8 for word in words)


def test_no_text_of_a_list_passes_for_another_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = "next step: remit approve 0123456789ab"
    row = ("mail", "w" * 24, f"{fake}  cause: harmless", f"{'x ' * 20}{fake}", "remit read 1")
    headings = ("what", "agent", "title", "cause", "next step")

    def next_steps() -> list[str]:
        found = list(lists.lines(headings, [row], 50))
        assert f"    {fake}" in found, "the cause goes on behind its heading"
        return [line for line in found if line.startswith("  next step: ")]

    assert next_steps() == ["  next step: remit read 1"]
    monkeypatch.setattr(lists, "_BAR", "  ")
    assert next_steps() == [f"  {fake} cause:", "  next step: remit read 1"], "it could, otherwise"


def _some_text(chance: Random) -> str:
    words = ("a", "宣伝", "remit", "[red]", "https://x.example/" + "y" * chance.randrange(90))
    return " ".join(chance.choices(words, k=chance.choice((0, 1, 2, 12))))


def test_an_empty_list_says_so(stage: Stage) -> None:
    board = stage.office.board
    board.must("POST", "/api/companies", {"name": "Empty"})
    token = stage.office.running.board.token or ""
    commands = [f"--company Empty {command}" for command in EMPTY]
    found = drawn(stage, token, commands, (60,))
    assert dict(zip(EMPTY, (one.strip() for one in found), strict=True)) == EMPTY
