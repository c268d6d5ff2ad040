"""Events as sentences: who did what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

#: What was done, after the name of who did it. `{name}` is what the record calls the thing, `{it}`
#: whom or what it was done to, as far as it has a name.
_WORDS: Final = {
    "agent.abort": "ended what {it} was doing",
    "agent.configure": "changed the configuration of {it}",
    "agent.create": "brought {it} in",
    "agent.delete": "deleted the disapproved agent {name}",
    "agent.hire": "asked to hire {name}",
    "agent.import": "imported {it}",
    "agent.pause": "paused {it}",
    "agent.permit": "changed what {it} is permitted",
    "agent.reinstate": "put {it} back into its place",
    "agent.restart": "restarted {it}",
    "agent.resume": "resumed {it}",
    "agent.start": "let {it} work again",
    "agent.stop": "stopped {it}",
    "agent.terminate": "terminated {it}",
    "agent.wake": "woke {it}",
    "approval.approve": "approved a request",
    "approval.cancel": "cancelled a request",
    "approval.comment": "commented on a request",
    "approval.expire": "let a request expire",
    "approval.reject": "rejected a request",
    "approval.remind": "reminded the board of a request",
    "approval.request": "asked for an approval",
    "approval.resubmit": "sent a request again",
    "approval.revise": "sent a request back",
    "approval.use": "made use of an approval",
    "company.change": "changed the company's settings",
    "company.create": "founded the company",
    "company.export": "exported the company",
    "company.import": "imported the company",
    "file.create": "created a file",
    "file.describe": "described a file",
    "file.write": "wrote a file",
    "grant.give": "gave a right",
    "grant.revoke": "took a right back",
    "log.submit": "noted what it did",
    "message.ack": "dealt with a message",
    "message.cancel": "cancelled a message",
    "message.discard": "put a message away",
    "message.revive": "put a message back in line",
    "message.send": "sent a message to {to}",
    "org.change": "reorganised the company",
    "org.undo": "took a reorganisation back",
    "outcome.change": "changed an outcome",
    "outcome.close": "closed an outcome",
    "outcome.complete": "completed an outcome",
    "outcome.create": "opened the outcome “{title}”",
    "outcome.delegate": "delegated an outcome",
    "outcome.reclaim": "took an outcome back",
    "outcome.reopen": "reopened an outcome",
    "question.answer": "answered a question",
    "question.ask": "asked a question",
    "run.end": "ended a run of {agent}",
    "run.report": "reported on a run",
    "run.start": "started a run of {agent}",
    "schedule.add": "set up a schedule",
    "schedule.cancel": "ended a schedule",
    "session.end": "ended a session",
    "token.create": "made a token",
    "token.revoke": "ended a token",
    "user.add": "gave {name} a part in the company",
    "user.remove": "took {name} out of the company",
}
_PLACES: Final = {"agent": "/agents/", "outcome": "/outcomes/", "approval": "/approvals/"}
_PLACES_MORE: Final = {"run": "/runs/", "kb_file": "/files/", "message": "/inbox/"}
_LONGEST: Final = 120


def concerned(events: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """The ids that the sentences name."""
    for one in events:
        for text in (one["actor"], one["resource"], str(one["details"].get("to", ""))):
            kind, _, who = text.partition(":")
            if kind in ("agent", "user", "log"):
                yield who
        yield str(one["details"].get("agent_id") or "")


def sentences(
    events: Iterable[Mapping[str, Any]], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """One for each event; the same over and over again is said once, with how often."""
    found: list[dict[str, Any]] = []
    for event in events:
        new = sentence(event, names)
        if found and all(found[-1][key] == new[key] for key in ("who", "what", "refused")):
            found[-1]["times"] += 1
        else:
            found.append(new)
    return found


def sentence(event: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Who, what, and where to look at it."""
    details, actor = event["details"], event["actor"].partition(":")[2]
    kind, _, what = event["resource"].partition(":")
    to = str(details.get("to", "")).partition(":")[2]
    it = names[what] if kind in ("agent", "user", "log") and what else str(details.get("name", ""))
    found = {
        "it": it or "somebody",
        "name": str(details.get("name") or it or "somebody"),
        "title": str(details.get("title", "")),
        "to": names[to] if to else "the board",
        "agent": names[str(details.get("agent_id"))] if details.get("agent_id") else "an agent",
    }
    action = event["action"]
    words = _WORDS.get(action, "did: " + action.replace(".", " ").replace("_", " "))
    if not event["allowed"]:
        words = "was refused: " + action.replace(".", " ").replace("_", " ")
        if it:
            words += f" ({it})"
    else:
        for field, value in found.items():
            words = words.replace(f"{{{field}}}", value[:_LONGEST])
    place = _PLACES.get(kind) or _PLACES_MORE.get(kind)
    return {
        "who": names[actor] if actor else "Remit",
        "what": words,
        "at": event["at"],
        "refused": not event["allowed"],
        "times": 1,
        "link": f"{place}{what}" if place and what and event["allowed"] else "",
    }
