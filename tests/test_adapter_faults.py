"""Whose fault it was, by what providers and their programs say; the messages are real ones."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from remit.adapters import faults
from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros, from_iso
from remit.model.fault import Fault

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
