"""How far a tool call walks through the source: the files it enters, and how often the verb goes
back to a service that it had left.

Counted are calls of functions, on every thread of an instance in this process, from the request to
the answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from benchmarks.harness import Plan, Row
from remit.services.organisation import agents
from remit.services.people import companies
from remit.testing import ScriptedAgent
from tests.test_mcp_tools import Site, serving
from tests.walking import Walk, re_entries

MOST_FILES = 35
MOST_RE_ENTRIES = 3


def hire(site: Site, walk: Walk) -> None:
    """An agent with a CEO's rights hires over MCP, in a company that wants to be asked."""
    made = site.call(site.board, companies.create, name="Walked", root_name="chief")
    key = site.call(site.board, agents.create_key, agent=made["root_agent_id"])
    with ScriptedAgent(site.url, key["token"]) as agent:
        agent.call("hire_agent", name="first", role="engineer", purpose="Be there")
        walk.recording = True
        agent.call("hire_agent", name="second", role="engineer", purpose="Be there")
        walk.recording = False


def measure(plan: Plan) -> Iterator[Row]:
    walk = Walk()
    threading.setprofile(walk)
    try:
        with serving(plan.folder / "walk") as site:
            hire(site, walk)
    finally:
        threading.setprofile(None)
    files, back = len(walk.files), re_entries(walk.services)
    yield Row("hire_agent: files", f"{files}", budget=f"≤ {MOST_FILES}", ok=files <= MOST_FILES)
    yield Row(
        "hire_agent: re-entries",
        f"{back}",
        " → ".join(walk.services),
        budget=f"≤ {MOST_RE_ENTRIES}",
        ok=back <= MOST_RE_ENTRIES,
    )
