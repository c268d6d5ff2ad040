"""Whose fault it was, by what providers and their programs say; the messages are real ones."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.adapters import faults, program_answer
from remit.adapters.claude import claude_cli
from remit.adapters.codex import codex_cli
from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros, from_iso
from remit.model.execution.fault import Fault, fault_of
from remit.runtime.runs.processes import LONGEST_LINE, ChildProcess
from tests.company import Company
from tests.mailing import look, send
from tests.working import at_work, listed, over, program

NOW = from_iso("2026-03-02T10:00:00+00:00")


@pytest.fixture(autouse=True)
def clock_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs name times as their clock shows them."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def at(text: str) -> Micros:
    return from_iso(text)


#: What is said, whose fault it is, and until when.
SAID: list[tuple[str, Fault | None, Micros | None]] = [
    # Claude Code
    (f"Claude AI usage limit reached|{NOW // SECOND + 3600}", Fault.RATE, NOW + HOUR),
    (
        "Claude usage limit reached. Your limit will reset at 3pm (America/New_York).",
        Fault.RATE,
        at("2026-03-02T20:00:00+00:00"),
    ),
    (
        "You've hit your limit · resets 3:45pm (Europe/Berlin)",
        Fault.RATE,
        at("2026-03-02T14:45:00+00:00"),
    ),
    ("5-hour limit reached ∙ resets 9am (UTC)", Fault.RATE, at("2026-03-03T09:00:00+00:00")),
    (
        "You've hit your weekly limit · resets Mar 5, 9am (UTC)",
        Fault.RATE,
        at("2026-03-05T09:00:00+00:00"),
    ),
    (
        'API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}',
        Fault.OVERLOAD,
        None,
    ),
    ("API Error: Repeated 529 Overloaded errors", Fault.OVERLOAD, None),
    (
        'API Error: 500 {"type":"error","error":{"type":"api_error","message":"Internal server"}}',
        Fault.OVERLOAD,
        None,
    ),
    (
        (
            'API Error: 401 {"type":"error","error":{"type":"authentication_error","message":'
            '"invalid x-api-key"}} · Please run /login'
        ),
        Fault.AUTH,
        None,
    ),
    ("Invalid API key · Please run /login", Fault.AUTH, None),
    ("Not logged in · Please run /login", Fault.AUTH, None),
    ("Credit balance is too low", Fault.BILLING, None),
    (
        'API Error: 400 {"error":{"message":"Your credit balance is too low to access the API."}}',
        Fault.BILLING,
        None,
    ),
    ("API Error: Connection error.", Fault.NETWORK, None),
    ("API Error: Unable to connect to API (ECONNREFUSED)", Fault.NETWORK, None),
    ("getaddrinfo ENOTFOUND api.anthropic.com", Fault.NETWORK, None),
    (
        "API Error: Connection to the API was lost (ECONNRESET). This is usually temporary.",
        Fault.NETWORK,
        None,
    ),
    ("API Error: API returned an empty or malformed response (HTTP 200)", Fault.NETWORK, None),
    ("Prompt is too long", Fault.CONTEXT, None),
    ("error: unknown option '--exclude-dynamic-system-prompt-sections'", Fault.SETUP, None),
    # Codex
    (
        (
            "You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or "
            "try again in 2 days 3 hours 5 minutes."
        ),
        Fault.RATE,
        NOW + 2 * DAY + 3 * HOUR + 5 * MINUTE,
    ),
    (
        "You've hit your usage limit. Try again at Mar 20th, 2026 3:05 PM.",
        Fault.RATE,
        at("2026-03-20T15:05:00+00:00"),
    ),
    (
        "exceeded retry limit, last status: 429 Too Many Requests, request id: req_1",
        Fault.RATE,
        None,
    ),
    (
        (
            "Rate limit reached for gpt-5 in organization org-x on tokens per min (TPM): Limit "
            "30000, Used 29000. Please try again in 11.5s."
        ),
        Fault.RATE,
        NOW + 11_500_000,
    ),
    ("unexpected status 401 Unauthorized: Missing bearer", Fault.AUTH, None),
    (
        "We're currently experiencing high demand, which may cause temporary errors.",
        Fault.OVERLOAD,
        None,
    ),
    (
        "stream disconnected before completion: stream closed before response.completed",
        Fault.NETWORK,
        None,
    ),
    (
        "You exceeded your current quota, please check your plan and billing details.",
        Fault.BILLING,
        None,
    ),
    ("error sending request for url (http://127.0.0.1:9/v1/responses)", Fault.NETWORK, None),
    ("error: unexpected argument '--json' found", Fault.SETUP, None),
    ("Missing environment variable: `OPENAI_API_KEY`.", Fault.AUTH, None),
    # Libraries and servers
    ("status_code: 429, model_name: x, body: {'retry_after': 30}", Fault.RATE, NOW + 30 * SECOND),
    ("Failed to decode response as JSON: Unterminated string", Fault.NETWORK, None),
    ("status_code: 503, model_name: x, body: None", Fault.OVERLOAD, None),
    ("HTTP/1.1 402 Payment Required", Fault.BILLING, None),
    ("Too many requests, retry after 2m 30s", Fault.RATE, NOW + 150 * SECOND),
    ("rate limit: resets at 2026-03-02T12:00:00Z", Fault.RATE, NOW + 2 * HOUR),
    ("try again in 2h (rate limit)", Fault.RATE, NOW + 2 * HOUR),
    ("overloaded, retry in 250 ms", Fault.OVERLOAD, NOW + SECOND // 4),
    # What is somebody else's
    ("the program ended with 3: KeyError: 'name'", None, None),
    ("I read 429 letters and 500 pages.", None, None),
    ("", None, None),
]


@pytest.mark.requirement("FX-09")
@pytest.mark.parametrize(("said", "fault", "until"), SAID, ids=[one[0][:40] for one in SAID])
def test_what_is_said_tells_whose_fault_it_is_and_until_when(
    said: str, fault: Fault | None, until: Micros | None
) -> None:
    seen = faults.in_words(said, NOW)
    assert (seen.fault if seen else None) == fault
    assert (seen.until if seen else None) == until


@pytest.mark.requirement("FX-09")
@pytest.mark.parametrize(
    ("status", "headers", "fault", "until"),
    [
        (401, {}, Fault.AUTH, None),
        (403, {}, Fault.AUTH, None),
        (402, {}, Fault.BILLING, None),
        (429, {}, Fault.RATE, None),
        (429, {"Retry-After": "20"}, Fault.RATE, NOW + 20 * SECOND),
        (429, {"retry-after-ms": "1500"}, Fault.RATE, NOW + 1_500_000),
        (429, {"Retry-After": "Mon, 02 Mar 2026 11:00:00 GMT"}, Fault.RATE, NOW + HOUR),
        (429, {"Retry-After": "soon"}, Fault.RATE, None),
        (500, {}, Fault.OVERLOAD, None),
        (503, {"Retry-After": "60"}, Fault.OVERLOAD, NOW + MINUTE),
        (529, {}, Fault.OVERLOAD, None),
        (400, {}, None, None),
        (404, {}, None, None),
        (200, {}, None, None),
    ],
)
def test_a_status_tells_whose_fault_it_is(
    status: int, headers: dict[str, str], fault: Fault | None, until: Micros | None
) -> None:
    seen = faults.by_status(status, headers=headers, now=NOW)
    assert (seen.fault if seen else None) == fault
    assert (seen.until if seen else None) == until


def test_a_time_that_passed_and_one_that_is_none_are_no_times() -> None:
    for said in (
        "usage limit reached|1000000000",
        "rate limit: resets at 2025-03-02T12:00:00Z",
        "usage limit, try again at Feb 31st, 2027 3:05 PM",
        "usage limit, resets 99:99",
        "usage limit reached · resets 3pm (Nowhere/Atlantis)x",
    ):
        seen = faults.in_words(said, NOW)
        assert seen is not None
        assert seen.fault is Fault.RATE
        assert seen.until is None or seen.until > NOW


# ── as programs say it ──────────────────────────────────────────────────────────────────────────


def heard(*events: dict[str, Any]) -> claude_cli.Events:
    """What Claude printed, read."""
    found = claude_cli.Events(with_tools=False)
    for event in events:
        found.read(json.dumps(event))
    return found


def streamed(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": {"type": kind, **more}, "parent_tool_use_id": None}


BEGUN = streamed("message_start", message={"id": "m", "usage": {"input_tokens": 5}})
ENDED = streamed("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3})
GOOD = {"type": "result", "subtype": "success", "is_error": False, "result": "I am going to"}


@pytest.mark.requirement("FX-09")
def test_an_answer_that_was_cut_off_in_the_middle_is_no_result() -> None:
    torso = heard(BEGUN, streamed("content_block_delta"), GOOD).outcome(0)
    assert (torso.ok, torso.reason, torso.text) == (False, "cut_off", "")
    assert fault_of(torso.fault, torso.reason) is Fault.NETWORK
    whole = heard(BEGUN, ENDED, GOOD).outcome(0)
    assert (whole.ok, whole.text) == (True, "I am going to")
    # It tried again, and that time the answer came, streamed or in one piece.
    again = heard(BEGUN, BEGUN, ENDED, GOOD).outcome(0)
    message = {"id": "n", "stop_reason": "end_turn", "usage": {}}
    at_once = heard(BEGUN, {"type": "assistant", "message": message}, GOOD).outcome(0)
    assert again.ok
    assert at_once.ok
    # What a helper of it says is not its own answer.
    of_helper = {**BEGUN, "parent_tool_use_id": "t"}
    assert heard(BEGUN, ENDED, of_helper, GOOD).outcome(0).ok


@pytest.mark.requirement("FX-09")
def test_what_claude_says_has_its_fault() -> None:
    def failed(said: str, **more: Any) -> tuple[str | None, bool]:
        event = {"type": "result", "is_error": True, "terminal_reason": "api_error", **more}
        found = heard({**event, "result": said}).outcome(1)
        assert not found.ok
        return found.fault, found.until is not None

    assert failed("API Error: 500 x", api_error_status=500) == ("overload", False)
    assert failed("x", api_error_status=429) == ("rate", False)
    limit = "You've hit your limit · resets 3pm (UTC)"
    assert failed(limit, api_error_status=429) == ("rate", True)
    assert failed("Credit balance is too low", api_error_status=400) == ("billing", False)
    assert failed("Not logged in · Please run /login", terminal_reason=None) == ("auth", False)
    assert failed("I met a rate limit in the text.", terminal_reason="error") == (None, False)
    turns = heard({"type": "result", "subtype": "error_max_turns", "is_error": True}).outcome(1)
    assert turns.reason == "max_turns"
    retry = {"type": "system", "subtype": "api_retry", "error_status": 429}
    waits = heard({**retry, "retry_delay_ms": 3_600_000, "error": "rate_limit"})
    assert waits.hopeless is not None
    assert (waits.outcome(143).fault, waits.outcome(143).until is not None) == ("rate", True)
    unpaid = heard({**retry, "error_status": 402, "error": "x"}).outcome(143)
    assert (unpaid.fault, unpaid.reason) == ("billing", "billing")


@pytest.mark.requirement("FX-09")
def test_a_flag_that_is_rejected_is_named_and_a_matter_of_the_set_up() -> None:
    complaint = "(node) a warning\nerror: unknown option '--strict-mcp-config'"
    found = heard().outcome(1, complaint)
    assert found.error == (
        "Claude ended with 1 and no result: error: unknown option '--strict-mcp-config'"
    )
    assert found.fault == "setup"
    codex = codex_cli.Events().outcome(2, "error: unexpected argument '--ephemeral' found")
    assert (codex.fault, codex.reason) == ("setup", "program")
    assert heard().outcome(1).fault is None
    # Once it talked to a model, what it printed at the end is no matter of how it was called.
    assert heard(BEGUN).outcome(1, complaint).fault is None


@pytest.mark.requirement("FX-09")
def test_last_words_of_megabytes_are_cut_and_not_dropped() -> None:
    def printed(**event: Any) -> str:
        return json.dumps(event, separators=(",", ":"))

    words = "long words " * 300_000
    cut = claude_cli.Events(with_tools=False)
    cut.read(printed(duration_api_ms=5, session_id="s", is_error=False, result=words)[:2_000_000])
    found = cut.outcome(0)
    assert found.ok
    assert words.startswith(found.text)
    assert len(found.text) >= 10_000
    half = claude_cli.Events(with_tools=False)
    half.read(printed(duration_api_ms=5, result='a "quoted"\nü' * 9)[:81])
    assert half.outcome(0).text.startswith('a "quoted"\nü')


def test_a_line_of_three_megabytes_comes_whole(tmp_path: Path) -> None:
    async def lines() -> list[int]:
        child = await ChildProcess.begin(
            ["/bin/sh", "-c", r"head -c 3000000 /dev/zero | tr '\0' x; echo; echo end"],
            env={"PATH": "/usr/bin:/bin"},
            cwd=tmp_path,
            stdin=b"",
            log=lambda *_: None,
        )
        found = [len(line) async for line in child.lines()]
        await child.wait()
        return found

    assert LONGEST_LINE > 3_000_000
    assert asyncio.run(lines()) == [3_000_000, 3]


def test_a_program_and_an_agent_elsewhere_name_the_fault_themselves() -> None:
    def said(**more: Any) -> tuple[str | None, Micros | None]:
        found = program_answer.result_of({"ok": False, **more})
        return found.fault, found.until

    assert said(fault="rate", until="2026-03-02T10:00:00Z") == ("rate", NOW)
    assert said(fault="rate", until=NOW // SECOND) == ("rate", NOW)
    assert said(fault="overload", until="soon") == ("overload", None)
    assert said(fault="nonsense", until=5) == (None, None)
    assert said(fault=5) == said(until=5) == (None, None)
    assert program_answer.result_of({"ok": True, "fault": "rate"}).fault is None


@pytest.mark.requirement("FX-08", "FX-09")
def test_a_program_that_is_not_there_holds_its_set_up_and_its_letter_waits(small: Company) -> None:
    dev = program(small, "dev", "true", config={"command": "/no/such/program", "args": []})
    send(small, small.board, "agent:dev")
    at_work(small, over(small, dev))
    (run,) = listed(small, dev)
    assert (run["fault"], run["status"]) == ("setup", "failed"), run
    assert "/no/such/program" in run["error"]
    (letter,) = look(small, dev)
    assert (letter["attempt"], letter["may_have_been_handled"]) == (1, False)


@pytest.mark.requirement("FX-08")
def test_a_program_that_says_that_a_limit_is_reached_is_waited_for(small: Company) -> None:
    script = """echo '{"ok": false, "fault": "rate", "until": 4102444800, "error": "Enough."}'"""
    dev = program(small, "dev", script)
    send(small, small.board, "agent:dev")
    at_work(small, over(small, dev))
    (run,) = listed(small, dev)
    assert (run["fault"], run["error"]) == ("rate", "Enough.")
    assert run["fault_until"].startswith("2100-01-01")
