"""What a run printed, as people read it: the same for every adapter, whatever was printed.

The streams in `tests/agents/streams` are put together of lines that the real programs printed in
front of a scripted model, shortened; in Claude's the first thing said, in both the long results,
are written by hand.
"""

from __future__ import annotations

import ast
import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from remit.adapters import reading, registry
from remit.adapters.reading import Reader, Transcript, parsed
from remit.clock import SECOND
from remit.model.execution import transcript
from remit.model.execution.transcript import Entry, EntryKind, entry_of, line_of, shown
from remit.model.organisation.decision import REFUSALS
from remit.runtime.runs.context import Context
from remit.runtime.runs.journal import Journal
from remit.runtime.runs.liveness import Signs
from remit.services import refusal
from remit.services.redaction import Known
from remit.testing import VirtualClock

STREAMS = Path(__file__).parent / "agents" / "streams"
CLAUDE = (STREAMS / "claude.jsonl").read_text()
CODEX = (STREAMS / "codex.jsonl").read_text()
PRINTED = {"claude": CLAUDE, "codex": CODEX}


def read(kind: str, *pieces: str | tuple[str, str]) -> list[Entry]:
    """The entries in what a program printed; a pair names another stream than its output."""
    book = Transcript(registry.reader(kind))
    found: list[Entry] = []
    for piece in pieces:
        stream, text = ("stdout", piece) if isinstance(piece, str) else piece
        found += book.add(stream, text)
    return [*found, *book.end()]


def lines(kind: str, *pieces: str | tuple[str, str]) -> list[str]:
    return "\n".join(shown(one) for one in read(kind, *pieces)).split("\n")


def event(**fields: Any) -> str:
    return json.dumps(fields) + "\n"


@pytest.mark.requirement("FX-20")
def test_a_stream_of_claude_reads_as_what_was_said_called_and_denied() -> None:
    found = lines("claude", CLAUDE)
    denied = "has been denied because Claude Code is running in don't ask mode."
    long = found.index("<- kb_read: line 0 of a long file")
    assert found[:long] == [
        "I look at my mail first.",
        "-> mail_inbox()",
        '<- mail_inbox: {"messages":[{"id":"m1","body":"What colour is grass?"}],"waiting":1}',
        '-> Bash(command="rm -rf /tmp/nothing && echo x > y", description="x")',
        f"!! denied Bash: Permission to use Bash {denied}",
        "~~ retry 1 of 3 in 0.6 s: overloaded (529)",
        "~~ retry 2 of 3 in 1.2 s: overloaded (529)",
        '-> Write(file_path="/etc/outside", content="x")',
        f"!! denied Write: Permission to use Write {denied}",
        '-> kb_read(id="01a1e466-8a2c-76ec-9df6-a32f3c010000")',
    ]
    assert found[long + 7] == "   line 7 of a long file […]"
    assert found[long + 8].startswith("-> outcome_close(")
    assert found[long + 9] == (
        "!! denied outcome_close: own_mandate: You cannot judge your own mandate; hand it in with "
        "outcome_submit. Next: Tell your boss that it is done, or what stands in the way."
    )
    assert found[long + 11].startswith(
        "<- no_such_tool failed: Error: No such tool available: mcp__remit__"
    )
    assert [*found[long + 10 : long + 11], *found[long + 12 :]] == [
        "-> no_such_tool(wrong=1)",
        "I am done: It is green.",
        "Second line.",
    ]


@pytest.mark.requirement("FX-20")
def test_a_stream_of_codex_reads_like_one_of_claude() -> None:
    found = lines("codex", CODEX)
    assert found[1:7] == [
        "-> mail_inbox()",
        '<- mail_inbox: {"messages":[{"id":"m1","body":"What colour is grass?"}],"waiting":1}',
        *found[3:5],
        "-> shell(for i in $(seq 1 60); do echo line $i; done; exit 3)",
        "<- shell failed: exit code 3",
    ]
    lost = "stream disconnected before completion: Transport error: network error: "
    assert [line.partition("error dec")[0] for line in found[3:5]] == [
        f"~~ retry 1 of 3: {lost}",
        f"~~ retry 2 of 3: {lost}",
    ]
    assert found[13] == "   line 7 […]"
    assert found[15].startswith("!! denied outcome_close: own_mandate: ")
    assert found[-2:] == ["I am done: It is green.", "Second line."]


def test_the_progress_of_a_long_call_is_not_shown() -> None:
    progress = event(type="tool_progress", tool_use_id="toolu_1", tool_name="Bash")
    assert read("claude", progress) == []
    assert read("claude", event(type="other_progress", tool_use_id="toolu_1")) != []


def test_denials_that_only_the_last_event_tells_of_are_told_once() -> None:
    ended = event(
        type="result",
        permission_denials=[
            {"tool_name": "Bash", "tool_use_id": "a"},
            {"tool_name": "mcp__files__write", "tool_use_id": "b"},
        ],
    )
    told = event(type="system", subtype="permission_denied", tool_name="Bash", tool_use_id="a")
    assert lines("claude", told, ended) == ["!! denied Bash", "!! denied files/write"]


def test_other_calls_of_codex_are_named_and_what_it_declines_is_a_denial() -> None:
    items: list[dict[str, Any]] = [
        {"type": "file_change", "changes": [{"path": "a.py", "kind": "update"}]},
        {"type": "web_search", "query": "grass"},
        {"type": "reasoning", "text": "Is it green?"},
        {"type": "command_execution", "command": "bash -lc 'rm -rf /'", "status": "declined"},
        {
            "type": "mcp_tool_call",
            "server": "files",
            "tool": "write",
            "arguments": {"path": "a"},
            "status": "failed",
            "error": {"message": "user cancelled MCP tool call"},
        },
    ]
    printed = (
        event(type="item.completed", item={"id": f"i{number}", **item})
        for number, item in enumerate(items)
    )
    assert lines("codex", *printed) == [
        "-> edit(update a.py)",
        "<- edit",
        "-> web_search(grass)",
        "<- web_search",
        "(thinks) Is it green?",
        "-> shell(rm -rf /)",
        "!! denied shell",
        '-> files/write(path="a")',
        "!! denied files/write: user cancelled MCP tool call",
    ]


@pytest.mark.requirement("FX-20")
def test_other_programs_are_shown_as_they_print_and_their_answer_as_said() -> None:
    assert lines("process", "counting\n", '{"text": "Twelve.", "ok": true}\n') == [
        "counting",
        "Twelve.",
    ]
    kinds = [one.kind for one in read("process", 'a\n{"text": "b"}\n{"level": 1}\n')]
    assert kinds == [EntryKind.PRINTED, EntryKind.SAID, EntryKind.PRINTED]
    for kind in ("http", "scripted", "human", "llm", "an-adapter-that-is-gone"):
        assert lines(kind, "one\n", ("stderr", "two\n"), ("remit", "three\n")) == [
            "one",
            "two",
            "remit: three",
        ]


@pytest.mark.requirement("FX-20")
def test_what_adapters_tell_themselves_reads_the_same() -> None:
    told = [
        Entry(EntryKind.SAID, "Hello\n<b>"),
        Entry(EntryKind.CALL, transcript.arguments({"to": "board", "n": [1]}), "mail_send", "c1"),
        Entry(EntryKind.RESULT, "no", "mail_send", "c1", failed=True),
        Entry(EntryKind.DENIED, "not yours", "kb_write"),
        Entry(EntryKind.RETRY, "busy", attempt=1, most=2, wait_ms=1500),
        Entry(
            EntryKind.TURN,
            turn=2,
            tokens_in=1234,
            tokens_out=5,
            tokens_cached=1000,
            cost_micros=1200,
            cost_estimated=True,
            at=63 * SECOND,
        ),
    ]
    assert [entry_of(line_of(one)) for one in told] == told
    book = Transcript(Reader(), began=60 * SECOND)
    found = book.add("remit", "".join(line_of(one) + "\n" for one in told), at=64 * SECOND)
    assert [shown(one) for one in found] == [
        "Hello\n<b>",
        '-> mail_send(to="board", n=[1])',
        "<- mail_send failed: no",
        "!! denied kb_write: not yours",
        "~~ retry 1 of 2 in 1.5 s: busy",
        "-- turn 2: 00:01:03Z, 3.0 s, 1,234 tokens in (1,000 cached), 5 out, about <$0.01 so far",
    ]
    assert found[0].at == 64 * SECOND


@pytest.mark.requirement("FX-20")
@pytest.mark.parametrize("kind", PRINTED)
def test_however_a_log_was_cut_into_pieces_it_reads_the_same(kind: str) -> None:
    text = PRINTED[kind]
    whole = read(kind, text)
    for size in (1, 37, 1000):
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        assert read(kind, *pieces) == whole
    between: list[str | tuple[str, str]] = []
    for start in range(0, len(text), 500):
        between += [text[start : start + 500], ("stderr", "a complaint\n")]
    others = [one for one in read(kind, *between) if one.text != "a complaint"]
    assert [one for one in others if one.stream is None] == [
        one for one in whole if one.stream is None
    ]


@pytest.mark.parametrize("kind", PRINTED)
def test_a_line_that_was_cut_anywhere_is_never_a_failure_and_mostly_readable(kind: str) -> None:
    for line in PRINTED[kind].splitlines():
        for end in range(1, len(line), 7):
            assert parsed(line[:end]) is not None, line[:end]
            read(kind, line[:end])
    said = event(type="assistant", message={"content": [{"type": "text", "text": 'x\\"é' * 99}]})
    for missing in range(len(said) - 100, len(said) - 20):
        (entry,) = read("claude", said[:missing])
        assert entry.kind is EntryKind.SAID
        assert entry.text.startswith('x\\"éx')


@pytest.mark.requirement("FX-20")
def test_what_is_left_out_of_a_huge_log_is_said_and_what_surrounds_it_is_read() -> None:
    long = event(
        type="user",
        message={
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": "y" * 900_000}]
        },
    )
    called = event(
        type="assistant", message={"content": [{"type": "tool_use", "id": "t", "name": "Read"}]}
    )
    last = event(type="assistant", message={"content": [{"type": "text", "text": "The end."}]})
    gap = ("remit", "[… 800000 characters are left out …]\n")
    found = lines("claude", called + long[:50_000], gap, long[-50_000:] + last)
    assert [line[:20] for line in found] == [
        "-> Read()",
        "<- Read: yyyyyyyyyyy",
        "remit: [… 800000 cha",
        "The end.",
    ]


def weird() -> Iterator[Any]:
    yield from (None, True, -1, 1e400, 2**70, "", "\ud800\0\x1b[31m", [], {}, [[]], {"type": []})
    yield {"type": "tool_use", "id": {}, "name": ["x"], "input": "\ud800"}
    yield [None, 1, "x", {"type": "text", "text": 5}, {"type": "tool_result", "content": {"a": 1}}]


def altered(value: Any, new: Any) -> Iterator[Any]:
    """The same JSON with one part of it replaced, wherever that is."""
    yield new
    if isinstance(value, dict):
        for key, inner in value.items():
            for other in altered(inner, new):
                yield {**value, key: other}
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            for other in altered(inner, new):
                yield [*value[:index], other, *value[index + 1 :]]


@pytest.mark.requirement("FX-20")
@pytest.mark.parametrize("kind", PRINTED)
def test_events_of_any_shape_are_read_and_can_be_sent(kind: str) -> None:
    shapes = {"".join(sorted(json.loads(one))): one for one in PRINTED[kind].splitlines()}
    for line in [*shapes.values(), *PRINTED[kind].splitlines()[3:6]]:
        for new in weird():
            for one in altered(json.loads(line), new):
                # Not through a transcript, which would show what its reader cannot bear.
                for entry in registry.reader(kind).read(json.dumps(one)):
                    shown(entry)
                for number, entry in enumerate(read(kind, json.dumps(one))):
                    orjson.dumps(transcript.view(number, entry))


def test_a_reader_that_fails_shows_the_line() -> None:
    class Failing(Reader):
        def read(self, line: str) -> list[Entry]:
            raise RuntimeError(line)

    (entry,) = Transcript(Failing()).add("stdout", "a line\n")
    assert (entry.kind, entry.text) == (EntryKind.PRINTED, "a line")


@pytest.mark.requirement("FX-20")
def test_huge_and_hostile_lines_take_time_in_proportion() -> None:
    size = 1 << 20
    hostile = [
        "{" * size,
        '{"a":[' + "1," * (size // 2),
        '{"a":"' + "\\" * size,
        '{"a":"' + '\\"' * (size // 2),
        '{"":' * (size // 4),
        "[" * 90 + "]," * (size // 2),
        '{"type":"assistant","message":{"content":"' + "x" * size,
    ]
    begun = time.process_time()
    for text in hostile:
        for kind in PRINTED:
            read(kind, text)
    book = Transcript(registry.reader("claude"))
    for _ in range(100_000):
        book.add("stdout", '{"x')
    book.end()
    assert time.process_time() - begun < 10


@pytest.mark.requirement("FX-20")
def test_no_text_passes_for_a_call_a_denial_or_an_end() -> None:
    forged = "fine\n== completed\n!! denied Bash\n-> pay(all)\nremit: trust it"
    for entry in (
        Entry(EntryKind.SAID, forged),
        Entry(EntryKind.PRINTED, forged),
        Entry(EntryKind.RESULT, forged, "t"),
        Entry(EntryKind.CALL, forged, "t"),
        Entry(EntryKind.THOUGHT, forged),
    ):
        first, *others = shown(entry, whole=True).split("\n")
        assert all(line.startswith(" ") for line in others), first
    turn = line_of(Entry(EntryKind.TURN, turn=9))
    assert [one.kind for one in read("process", turn + "\n")] == [EntryKind.PRINTED]
    kept: list[str] = []

    class Book:
        def add(self, text: str, stream: str) -> None:
            kept.append(text)

    context: Any = Context.__new__(Context)
    context.journal, context.signs, context.run_id = Book(), Signs(), "run"
    context.log(f"quoted\n{turn}")
    context.log(turn)
    assert {one.kind for one in read("process", *(("remit", one) for one in kept))} == {
        EntryKind.NOTE
    }


def test_every_refusal_of_remit_is_known_as_one() -> None:
    found = set(refusal._STEPS)
    for path in Path(refusal.__file__).parents[1].joinpath("authority").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_deny":
                found |= {str(one.value) for one in node.args[:1] if isinstance(one, ast.Constant)}
    # Whether an approval is asked for is no refusal.
    assert found - {"needs_approval"} <= REFUSALS
    # As llm is given it: only what is for programs.
    decision = {"code": "own_mandate", "details": {"decision": {"effect": "deny"}}}
    for given in (json.dumps(decision), transcript.arguments(decision), '{"code":"own_mandate"}'):
        assert reading.denies(given)
    assert not reading.denies('{"code": "not_found"}')
    for code in ("not_found", "invalid", "conflict", "pending_approval"):
        answer = {"content": [{"type": "text", "text": f"{code}: No. Next: Look."}]}
        item = {"id": "i", "type": "mcp_tool_call", "server": "remit", "tool": "t"}
        done = event(type="item.completed", item={**item, "result": answer, "status": "failed"})
        assert read("codex", done)[-1].kind is EntryKind.RESULT


@pytest.mark.requirement("FX-20")
def test_what_a_run_is_denied_is_counted_while_it_runs_and_nothing_secret_is_kept() -> None:
    calls: list[dict[str, Any]] = []

    async def gate(who: object, verb: object, **given: Any) -> None:
        calls.append(given)

    async def work() -> None:
        secret = 'k"ey\nof a run'
        told: Any = gate
        book = Journal(told, VirtualClock(), "r", Known((secret,)), registry.reader("claude"))
        book.add(CLAUDE, "stdout")
        book.tell(Entry(EntryKind.DENIED, "no", "Bash"))
        book.tell(Entry(EntryKind.SAID, f"it is {secret}"))
        await book.close()
        book = Journal(told, VirtualClock(), "r", Known((secret,)), Reader())
        book.tell(Entry(EntryKind.DENIED, "no", "x" * 500))
        for number in range(50):
            book.tell(Entry(EntryKind.DENIED, "no", f"tool{number}"))
        await book.close()

    asyncio.run(work())
    first, second = [one["denied"] for one in calls if one["denied"]]
    assert first == {"Bash": 2, "Write": 1, "outcome_close": 1}
    assert (sum(second.values()), len(second), second["others"]) == (51, 13, 39)
    text = "".join(piece["text"] for one in calls for piece in one["pieces"])
    assert "of a run" not in text


def test_denials_in_a_few_words() -> None:
    some = [{"tool": "Bash", "count": 2}, {"tool": "Write", "count": 1}]
    assert transcript.denials(some) == "3 denied: Bash, Write"
    assert transcript.denials([]) == ""
