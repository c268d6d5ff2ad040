"""What happened, in words: an event as a sentence with links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from remit.entrypoints.web import asking
from remit.entrypoints.web.site import Visit
from remit.services import naming

#: What somebody did, and what somebody was not allowed to do.
_WORDS: Final = {
    "agent.abort": ("aborted", "abort"),
    "agent.configure": ("changed the configuration of", "configure"),
    "agent.control": ("controlled", "control"),
    "agent.create": ("created", "create"),
    "agent.delete": ("deleted", "delete"),
    "agent.hire": ("hired", "hire"),
    "agent.import": ("brought in", "bring in"),
    "agent.pause": ("paused", "pause"),
    "agent.permit": ("changed what is permitted to", "permit something to"),
    "agent.read": ("looked at", "look at"),
    "agent.reinstate": ("reinstated", "reinstate"),
    "agent.restart": ("restarted", "restart"),
    "agent.resume": ("resumed", "resume"),
    "agent.start": ("started", "start"),
    "agent.stop": ("stopped", "stop"),
    "agent.terminate": ("terminated", "terminate"),
    "agent.update": ("updated", "update"),
    "agent.wake": ("woke", "wake"),
    "approval.approve": ("approved", "approve"),
    "approval.cancel": ("withdrew", "withdraw"),
    "approval.collect": ("took up the answer to", "take up the answer to"),
    "approval.comment": ("commented on", "comment on"),
    "approval.decide": ("decided", "decide"),
    "approval.expire": ("let lapse", "let lapse"),
    "approval.refer": ("passed on", "pass on"),
    "approval.reject": ("rejected", "reject"),
    "approval.remind": ("reminded of", "remind of"),
    "approval.request": ("asked for", "ask for"),
    "approval.resubmit": ("asked again for", "ask again for"),
    "approval.revise": ("sent back", "send back"),
    "approval.use": ("made use of", "make use of"),
    "binding.change": ("changed the settings of", "change"),
    "binding.create": ("made", "make"),
    "binding.delete": ("ended", "end"),
    "binding.read": ("looked at", "look at"),
    "binding.restore": ("brought back", "bring back"),
    "company.change": ("changed the settings of", "change"),
    "company.create": ("founded", "found"),
    "company.export": ("exported", "export"),
    "company.import": ("imported", "import"),
    "event.read": ("looked at", "look at"),
    "event.verify": ("verified", "verify"),
    "file.audit": ("looked at who read", "know who read"),
    "file.create": ("made the file", "make a file"),
    "file.describe": ("renamed", "rename"),
    "file.read": ("read", "read"),
    "file.see": ("looked at", "look at"),
    "file.write": ("wrote", "write"),
    "account.check": ("looked whether it works again:", "look at"),
    "account.close": ("closed", "close"),
    "account.open": ("opened", "open"),
    "account.retry": ("had tried again", "try"),
    "agent.check": ("looked whether it can work again:", "look at"),
    "grant.give": ("gave", "give"),
    "grant.import": ("brought in", "bring in"),
    "grant.read": ("looked at", "look at"),
    "grant.revoke": ("took back", "take back"),
    "halt.go": ("let go on", "let go on"),
    "halt.stop": ("stopped", "stop"),
    "limit.reach": ("reached a limit of", "reach a limit of"),
    "level.change": ("changed the level of", "change the level of"),
    "log.submit": ("wrote in its log", "write in the log"),
    "mail.due": ("delivered what was due", "deliver"),
    "message.ack": ("read", "mark as read"),
    "message.cancel": ("took back", "take back"),
    "message.discard": ("put away", "put away"),
    "message.deliver": ("delivered", "deliver"),
    "message.put_back": ("put back in line", "put back in line"),
    "message.read": ("read", "read"),
    "message.revive": ("put back in line", "put back in line"),
    "message.send": ("sent", "send"),
    "message.undelivered": ("could not deliver", "deliver"),
    "notice.set": ("said how to tell", "say how to tell"),
    "notice.try": ("tried how to tell", "try how to tell"),
    "outcome.change": ("changed", "change"),
    "outcome.close": ("closed", "close"),
    "outcome.complete": ("completed", "complete"),
    "outcome.create": ("created", "create a part of"),
    "outcome.delegate": ("delegated", "delegate"),
    "outcome.finish": ("finished", "complete or close"),
    "outcome.read": ("looked at", "read"),
    "outcome.reclaim": ("took back", "take back"),
    "outcome.reopen": ("reopened", "reopen"),
    "policy.change": ("changed the permission levels of", "change the permission levels of"),
    "policy.read": ("looked at the permission levels of", "look at the permission levels of"),
    "question.answer": ("answered", "answer"),
    "question.ask": ("asked", "ask"),
    "question.cancel": ("withdrew", "withdraw"),
    "question.pass_on": ("passed on", "pass on"),
    "run.end": ("ended", "end"),
    "run.report": ("reported on", "report on"),
    "run.start": ("started", "start"),
    "run.undelivered": ("could not deliver to", "deliver to"),
    "schedule.add": ("set up", "set up"),
    "schedule.cancel": ("cancelled", "cancel"),
    "schedule.failed": ("could not carry out", "carry out"),
    "session.end": ("ended", "end"),
    "token.create": ("made", "make"),
    "token.revoke": ("took back", "take back"),
    "user.add": ("let in", "let in"),
    "user.remove": ("removed", "remove"),
}
#: What a resource is called that has no name of its own, and where its page is.
_KINDS: Final = {
    "agent": ("an agent", "/agents/"),
    "outcome": ("an outcome", "/outcomes/"),
    "kb_file": ("a file", "/files/"),
    "approval": ("an approval", "/approvals/"),
    "message": ("a message", "/inbox/"),
    "run": ("a run", "/runs/"),
    "event": ("an event", "/events/"),
    "company": ("the company", "/companies/"),
    "account": ("an account", ""),
    "grant": ("a capability", ""),
    "question": ("a question", ""),
    "schedule": ("a schedule", ""),
    "session": ("a session", ""),
    "token": ("a token", ""),
    "user": ("somebody", ""),
    "log": ("", ""),
}
#: Kinds of events that there is something to look for in; others can be typed into the address.
NOUNS: Final = (
    ("agent", "Agents"),
    ("approval", "Approvals"),
    ("company", "Company"),
    ("file", "Files"),
    ("grant", "Capabilities"),
    ("log", "Activity logs"),
    ("message", "Mail"),
    ("org", "Reorganisations"),
    ("outcome", "Outcomes"),
    ("question", "Questions"),
    ("run", "Runs"),
    ("schedule", "Schedules"),
    ("token", "Tokens"),
    ("user", "People"),
)


def past(action: str) -> str:
    """What somebody did."""
    return _WORDS[action][0] if action in _WORDS else f"did {action.replace('_', ' ')} on"


def infinitive(action: str) -> str:
    """What somebody was not allowed to do."""
    return _WORDS[action][1] if action in _WORDS else f"do {action.replace('_', ' ')} on"


async def told(visit: Visit, events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Events with all that a page says about them."""
    found = [dict(event) for event in events]
    names = await asking.names(visit, {one for event in found for one in _mentioned(event)})
    titles = await visit.ask(
        naming.titles,
        company=visit.company_id,
        resources={f"{kind}:{own}" for kind, own in map(_thing, found) if own},
    )
    for event in found:
        event["actor_kind"], _, event["actor_id"] = event["actor"].partition(":")
        event["actor_name"] = names[event["actor_id"]] if event["actor_id"] else "Remit"
        kind, own = _thing(event)
        plain, page = _KINDS.get(kind, (str(event["resource"]), ""))
        name = titles.get(f"{kind}:{own}") or names.get(own, "")
        event["thing"] = name or str(event["details"].get("name") or "") or plain
        event["thing_page"] = f"{page}{own}" if page and own else ""
        event["said"] = past(event["action"])
        event["more"] = ""
        if event["allowed"]:
            _Teller(event, names).tell()
        else:
            event["said"] = f"was not allowed to {infinitive(event['action'])}"
            event["more"] = str(event["details"].get("sentence") or "")
    return found


def counted(told: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same over and over again is said once, with how often."""
    found: list[dict[str, Any]] = []
    for event in told:
        if found and all(found[-1][key] == event[key] for key in _SENTENCE):
            found[-1]["times"] += 1
        else:
            found.append({**event, "times": 1})
    return found


class _Teller:
    """Makes a sentence say what happened, with the little that the details have to add."""

    def __init__(self, event: dict[str, Any], names: Mapping[str, str]) -> None:
        self.event = event
        self.details: dict[str, Any] = event["details"]
        self.names = names

    def name(self, key: str) -> str:
        """Somebody whom the details mention."""
        value = self.details.get(key)
        return self.names.get(value.rpartition(":")[2], "") if isinstance(value, str) else ""

    def tell(self) -> None:
        event, details = self.event, self.details
        noun, _, verb = event["action"].partition(".")
        match noun, verb:
            case "approval", _:
                event["thing"] = self._asked_for()
            case "token", "create":
                event["said"], event["thing"] = self._token()
            case "file", "write":
                event["said"] = f"wrote version {details.get('version')} of"
            case "grant", "give" | "revoke":
                level = details.get("level") or "something"
                event["said"] = f"{event['said']} {level} on"
                way = "to" if verb == "give" else "from"
                event["more"] = f"{way} {self.name('holder')}" if self.name("holder") else ""
            case "outcome", "delegate":
                event["more"] = f"from {self.name('from')} to {self.name('to')}"
            case "outcome", "create":
                event["more"] = f"owned by {self.name('owner')}" if self.name("owner") else ""
            case ("message", "send") | ("question", "ask"):
                event["more"] = f"to {self.name('to') or details.get('to') or 'somebody'}"
            case "run", _:
                status = f", {details['status']}" if details.get("status") else ""
                event["more"] = f"of {self.name('agent_id') or 'an agent'}{status}"
            case _:
                words = details.get("note") or details.get("reason") or details.get("summary")
                event["more"] = words if isinstance(words, str) else ""

    def _asked_for(self) -> str:
        who = self.name("agent") or "somebody"
        return {
            "hire_agent": f"the hire of {who}",
            "config_change": f"a change of {who}",
            "capability_use": "the use of a capability",
            "budget": f"a budget for {who}",
        }.get(str(self.details.get("type")), "an approval")

    def _token(self) -> tuple[str, str]:
        kinds = {"session": ("signed in", ""), "login": ("asked for a link to sign in", "")}
        if self.details.get("kind") in kinds:
            return kinds[self.details["kind"]]
        return "made a key for", self.name("agent_id") or self.name("user_id") or "somebody"


def _thing(event: Mapping[str, Any]) -> tuple[str, str]:
    """What an event is about; a capability is about what it is for."""
    resource = event["resource"]
    if event["action"].startswith("grant.") and event["details"].get("resource"):
        resource = event["details"]["resource"]
    kind, _, own = str(resource).partition(":")
    return kind, own


_SENTENCE: Final = ("actor", "said", "thing", "more", "allowed")
_PEOPLE: Final = ("holder", "owner", "from", "to", "agent", "agent_id", "user_id")


def _mentioned(event: Mapping[str, Any]) -> list[str]:
    kind, own = _thing(event)
    people = [event["details"].get(name) for name in _PEOPLE]
    return [
        event["actor"].partition(":")[2],
        *([own] if kind in ("agent", "user", "log") else []),
        *(one.rpartition(":")[2] for one in people if isinstance(one, str)),
    ]
